/** Crawls a website and lists its broken links: HTTP requests, a step for each page, retries, and a secret. */
import { defineWorkflow } from 'execution-service/workflow'
import { fetchPublic } from './access/addresses.ts'

const maxAttempts = 3
const pageSeconds = 10
const pagesMaxDefault = 50

/** The links of a page, or the problem with it. */
interface Page {
  links: string[]
  problem: string | null
  /** Whether a retry may succeed. */
  temporary: boolean
}

export default defineWorkflow({
  id: 'check-links',
  version: '1.0.0',
  title: 'Find the broken links of a website',
  description: 'Reads the pages of one origin, breadth first, and lists the broken links between them.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url'],
    properties: {
      url: { type: 'string', format: 'uri', pattern: '^https?://', description: 'The page to start from.' },
      pagesMax: {
        type: 'integer',
        minimum: 1,
        maximum: 500,
        default: pagesMaxDefault,
        description: 'Maximum number of pages to read.',
      },
      token: {
        type: 'string',
        minLength: 8,
        // A secret: encrypted at rest, and masked in everything that shows the run.
        writeOnly: true,
        description: 'Sent as `Authorization: Bearer`, for pages that require it.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['checked', 'unchecked', 'broken'],
    properties: {
      checked: { type: 'array', items: { type: 'string' }, description: 'The pages that were read.' },
      unchecked: { type: 'integer', description: 'Number of pages found beyond `pagesMax`.' },
      broken: {
        type: 'array',
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['url', 'foundOn', 'problem'],
          properties: {
            url: { type: 'string' },
            foundOn: { type: ['string', 'null'], description: 'The first page that links there.' },
            problem: { type: 'string' },
          },
        },
      },
    },
  },
  // 0.25 s for a page that was busy for a moment, then 2 s.
  retry: { maxAttempts, backoffSeconds: 0.25, backoffFactor: 8 },
  timeLimitSeconds: 300,
  async run({ variables, attempt, step, log, progress, signal }) {
    const { pagesMax = pagesMaxDefault, token } = variables
    const start = withoutHash(new URL(variables.url))
    const { origin } = new URL(start)
    const foundOn = new Map<string, string | null>([[start, null]])
    const checked: string[] = []
    const broken: { url: string; foundOn: string | null; problem: string }[] = []

    // Iterating a Map includes entries that are added meanwhile: the pages found on the way.
    for (const [url, from] of foundOn) {
      if (checked.length === pagesMax) break
      const path = url.slice(origin.length)
      const page = await step(`read ${path}`, async () => {
        const page = await readPage(url, token, signal)
        // The next attempt reads this page again, but no page whose step has finished.
        if (page.temporary && attempt < maxAttempts) throw new Error(`${path}: ${page.problem}`)
        return page
      })
      checked.push(url)
      if (page.problem !== null) {
        broken.push({ url, foundOn: from, problem: page.problem })
        log(`${path} is broken: ${page.problem}`, 'warn')
      }
      for (const link of page.links) {
        if (new URL(link).origin === origin && !foundOn.has(link)) foundOn.set(link, url)
      }
      const known = Math.min(foundOn.size, pagesMax)
      progress((checked.length / known) * 100, `${checked.length} of ${known} known pages`)
    }
    return { checked, unchecked: foundOn.size - checked.length, broken }
  },
})

async function readPage(url: string, token: string | undefined, signal: AbortSignal): Promise<Page> {
  try {
    const response = await fetchPublic(url, {
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      // A redirect is treated as a link, so that the token is never sent to another origin.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(pageSeconds * 1000)]),
    })
    const { status, statusText } = response
    const readable = response.headers.get('Content-Type')?.startsWith('text/html')
    const html = readable ? await response.text() : ''
    // Stop the download of what is not read.
    if (!readable) await response.body?.cancel()
    if (status >= 400) {
      return { links: [], problem: `${status} ${statusText}`, temporary: status === 429 || status >= 500 }
    }
    const location = response.headers.get('Location')
    return { links: linksIn(html, location ?? undefined, url), problem: null, temporary: false }
  } catch (error) {
    signal.throwIfAborted()
    return { links: [], problem: describeError(error), temporary: true }
  }
}

function linksIn(html: string, location: string | undefined, base: string): string[] {
  const anchors = [...html.matchAll(/<a\s[^>]*?href\s*=\s*["']([^"']*)["']/gi)].map(([, href = '']) => href)
  const links = [...anchors.map((href) => href.replaceAll('&amp;', '&')), ...(location === undefined ? [] : [location])]
  return [...new Set(links.flatMap((link) => URL.parse(link, base) ?? []).map(withoutHash))]
}

function withoutHash(url: URL): string {
  return Object.assign(new URL(url), { hash: '' }).href
}

function describeError(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return `no response within ${pageSeconds} s`
  const { code, message } = error as NodeJS.ErrnoException
  return `no response (${code ?? message})`
}
