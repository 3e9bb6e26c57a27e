/** Serves the docs under /docs/: built when somebody first asks for one of their pages, and compressed once. */
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { gzip } from 'node:zlib'
import type { Request, RequestHandler, Response } from 'express'
import type { Addresses } from './contracts.ts'
import type { Site, SiteFile } from './files.ts'

const root = '/docs/'

export function isDocsPath(path: string): boolean {
  return path === '/docs' || path.startsWith(root)
}

/** Redoc writes its styles into the page, has a font within itself, and colours code in workers that it makes. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  'worker-src blob:',
  "img-src 'self' data:",
  'font-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const protection = {
  'Content-Security-Policy': policy,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
}

export interface Building {
  /** Posts the site to its parent. */
  thread: URL
  /** A build takes about a second; on a busy machine some. */
  secondsMax: number
}

const usualBuilding: Building = { thread: new URL('./site-thread.ts', import.meta.url), secondsMax: 60 }

/** Settles in any case: whoever asks for a page must not wait for a thread that says nothing. */
async function build({ thread: file, secondsMax }: Building, addresses: Addresses): Promise<Site> {
  const thread = new Worker(file, { workerData: addresses })
  const { promise, resolve, reject } = Promise.withResolvers<Site>()
  const give = (reason: string) => reject(new Error(`The docs were not built: ${reason}.`))
  const timer = setTimeout(() => give(`it took more than ${secondsMax} seconds`), secondsMax * 1000)
  thread.once('message', resolve).once('error', reject)
  thread.once('exit', (code) => give(`their thread ended with ${code} before it was done`))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    void thread.terminate()
  }
}

/**
 * One for all hosts of a service, since it keeps what it has built. Other paths go on.
 *
 * @param addresses asked when the site is built: where its readers reach the APIs.
 */
export function docsHandler(addresses: () => Addresses, building = usualBuilding): RequestHandler {
  const compressed = new WeakMap<SiteFile, Promise<Buffer>>()
  let site: Promise<Site> | undefined

  const built = () => {
    site ??= build(building, addresses()).catch((error) => {
      site = undefined
      throw error
    })
    return site
  }

  const compress = (file: SiteFile) => {
    const known = compressed.get(file) ?? promisify(gzip)(file.content)
    compressed.set(file, known)
    return known
  }

  return async function docs(request, response, next) {
    const [path = ''] = request.originalUrl.split('?')
    if (!isDocsPath(path)) return next()
    response.set(protection)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.status(405).set('Allow', 'GET, HEAD').type('text').send('The docs have GET and HEAD.')
    }
    // Relative, because a proxy may serve the host below a path of its own.
    if (path === '/docs') return void response.redirect(308, 'docs/')
    const files = await built()
    const name = path.slice(root.length) || 'index.html'
    const nowhere = files.get('404.html') as SiteFile
    const file = files.get(name) ?? files.get(`${name}.html`) ?? nowhere
    if (file !== nowhere) await send(request, response, file, compress)
    else await send(request, response.status(404), asSeenFrom(name, nowhere), compress)
  }
}

/** The page of an address that leads nowhere: its links lead to the site from there, whatever stands before /docs/. */
function asSeenFrom(name: string, page: SiteFile): SiteFile {
  const up = '../'.repeat(name.split('/').length - 1) || './'
  return { ...page, content: Buffer.from(Buffer.from(page.content).toString().replaceAll(`="${root}`, `="${up}`)) }
}

async function send(
  request: Request,
  response: Response,
  file: SiteFile,
  compress: (file: SiteFile) => Promise<Buffer>,
) {
  const { content, mediaType, digest, lasting } = file
  const compresses = content.length > 1024 && request.acceptsEncodings('gzip', 'identity') === 'gzip'
  response.set({
    'Content-Type': mediaType,
    'Cache-Control': lasting ? 'public, max-age=31536000, immutable' : 'no-cache',
    // A compressed file is another representation (RFC 9110, section 8.8.3.3).
    ETag: compresses ? `"${digest}-gzip"` : `"${digest}"`,
    ...(compresses && { 'Content-Encoding': 'gzip' }),
  })
  // The mock's answers vary by Origin, too.
  response.vary('Accept-Encoding')
  if (request.fresh) return response.status(304).end()
  // Node sends no content in answer to HEAD.
  response.end(compresses ? await compress(file) : content)
}
