/** The docs as a service serves them, on all of its hosts; and the commands of the guides, sent to it as they stand. */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { docsSite } from '../../src/surfaces/docs/site.ts'
import { sendRaw } from '../operations/http.ts'
import { pathWithCurl } from '../support/curl.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { addressesIn, textIn, textOf } from './site.ts'

let service: TestService
/** What the service must show: the docs with its own addresses. */
let ownSite: ReturnType<typeof docsSite>

beforeAll(async () => {
  service = await startTestService()
  ownSite = docsSite({ execution: service.executionUrl, 'browser-context': service.browserContextUrl })
})

afterAll(() => service.stop())

const hosts = ['dashboardUrl', 'executionUrl', 'browserContextUrl'] as const

function get(path: string, init: RequestInit = {}, host: (typeof hosts)[number] = 'executionUrl') {
  return fetch(`${service[host]}${path}`, { redirect: 'manual', ...init })
}

describe.each(hosts)('at %s', (host) => {
  test('the docs are there for whoever has no key and is not signed in', async () => {
    const start = await get('/docs', {}, host)
    expect([start.status, start.headers.get('location')]).toEqual([308, 'docs/'])
    const page = await get('/docs/', {}, host)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await page.text()).toBe(textIn(await ownSite, 'index.html'))
    expect(page.headers.get('set-cookie')).toBeNull()
  })

  test('the address in the type of a problem leads to its page', async () => {
    const problem = await (await get('/v1/nothing', {}, 'executionUrl')).json()
    const page = await get(new URL(problem.type, service[host]).pathname, {}, host)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('id="not-found"')
  })

  test('an address that leads nowhere is answered with a page that leads on', async () => {
    for (const path of [
      '/docs/nothing',
      '/docs/a/b.html',
      '/docs/%zz',
      '/docs/constructor',
      '/docs/../v1/x',
      '/docs//',
      '/docs/404',
      '/docs/404.html',
    ]) {
      const answer = await sendRaw(service[host], { method: 'GET', path })
      expect([path, answer.status]).toEqual([path, 404])
      expect(answer.text).toContain('There is no such page')
      // Wherever the host is served: its links are relative to where the reader is.
      const links = addressesIn(answer.text).filter((address) => !address.startsWith('#'))
      expect(links.filter((address) => !/^(\.\/|(\.\.\/)+)[\w.-]+$/.test(address))).toEqual([])
      for (const link of path.includes('..') ? [] : links) {
        expect(new URL(link, `http://host${path}`).pathname).toMatch(/^\/docs\/[^/]+$/)
      }
    }
  })
})

test("guides, reference and samples show the service's own addresses; the documents stay as they are hashed", async () => {
  const guide = await (await get('/docs/quick-start')).text()
  expect(guide).toContain(`${service.executionUrl}/v1/execution/queue-remote/count-words`)
  const page = await (await get('/docs/browser-context')).text()
  const [script = ''] = page.match(/browser-context\.[\w-]+\.js/) ?? []
  const reference = await (await get(`/docs/${script}`)).text()
  expect(reference).toContain(`${service.browserContextUrl}/alpha/browser-contexts`)
  for (const text of [guide, reference]) expect(text).not.toMatch(/127\.0\.0\.1:300[12]\b/)
  expect(await (await get('/docs/execution.v1.json')).text()).toContain('http://127.0.0.1:3001')
})

test('pages are asked for again each time and not sent again; what changes its name with its content is kept', async () => {
  const page = await get('/docs/errors')
  expect(page.headers.get('cache-control')).toBe('no-cache')
  // Not by `fetch`, which asks caches to ask anew when it is given a condition.
  const headers = ['If-None-Match', page.headers.get('etag') ?? '', 'Accept-Encoding', 'gzip']
  const again = await sendRaw(service.executionUrl, { method: 'GET', path: '/docs/errors', headers })
  expect([again.status, again.text]).toEqual([304, ''])
  const [script = ''] = (await textOf('errors.html')).match(/docs\.[\w-]+\.js/) ?? []
  const kept = await get(`/docs/${script}`)
  expect(kept.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
})

test('what is large is compressed for those who can take it, under another tag', async () => {
  const tags = new Set<string | null>()
  for (const encoding of ['gzip', 'identity']) {
    const answer = await get('/docs/execution.v1.json', { headers: { 'Accept-Encoding': encoding } })
    expect(answer.headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null)
    expect(answer.headers.get('vary')).toBe('Accept-Encoding')
    expect(await answer.text()).toBe(await textOf('execution.v1.json'))
    tags.add(answer.headers.get('etag'))
  }
  expect(tags.size).toBe(2)
})

test('pages may load nothing from another host, and may stand in no frame', async () => {
  const { headers } = await get('/docs/execution.html')
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('connect-src')
  expect(policy).not.toMatch(/https?:|\*/)
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test('HEAD tells what GET would, and nothing else may be done', async () => {
  const [head, answer] = [await get('/docs/llms.txt', { method: 'HEAD' }), await get('/docs/llms.txt')]
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect(head.headers.get('etag')).toBe(answer.headers.get('etag'))
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const refused = await get('/docs/', { method })
    expect([method, refused.status, refused.headers.get('allow')]).toEqual([method, 405, 'GET, HEAD'])
  }
})

test('a page has an id at each host, by which its failure is found in the log', async () => {
  for (const host of hosts) {
    for (const path of ['/docs', '/docs/limits', '/docs/nothing']) {
      expect((await get(path, {}, host)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
  }
})

test('an API logs a page that it serves, under the id that its answer has', async () => {
  const answer = await get('/docs/limits')
  await answer.text()
  const requestId = answer.headers.get('x-request-id')
  await expect.poll(() => service.log.find((line) => line.requestId === requestId)).toMatchObject({ status: 200 })
})

test('the hash in the header of an answer is that of the document that the docs serve', async () => {
  for (const [host, file, path] of [
    ['executionUrl', 'execution.v1', '/v1/execution/runs'],
    ['browserContextUrl', 'browser-context.alpha', '/alpha/browser-contexts'],
  ] as const) {
    const document = await (await get(`/docs/${file}.json`, {}, host)).text()
    const answer = await get(path, {}, host)
    expect(answer.headers.get('x-document-hash')).toBe(hash('sha256', document, 'hex').slice(0, 16))
  }
})

describe('the commands of the guides work as they stand', () => {
  /** What the guide's blocks of shell print, one after another in one shell. */
  async function outputOf(guide: string, variables: Record<string, string>): Promise<string> {
    const blocks = [...(await textOf(`${guide}.md`)).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
    expect(blocks.length).toBeGreaterThan(0)
    const script = blocks
      .join('\n')
      .replaceAll('http://127.0.0.1:3001', service.executionUrl)
      .replaceAll('http://127.0.0.1:3002', service.browserContextUrl)
      .replace(/^export API_KEY=.*$/m, '')
    const environment = { ...process.env, PATH: pathWithCurl, ...variables }
    const { stdout } = await promisify(execFile)('sh', ['-euc', script], { env: environment })
    expect(stdout).not.toMatch(/\/docs\/errors#|Unauthorized|Forbidden/)
    return stdout
  }

  test('a newcomer who follows the quick start gets what it promises', async () => {
    const { key } = await service.createAccount()
    const output = await outputOf('quick-start', { API_KEY: key })
    expect(output).toContain('"id":"count-words"')
    expect(output.match(/"status":"succeeded"/g)?.length).toBeGreaterThanOrEqual(3)
    const [, runId] = /([0-9a-f-]{36})\n/.exec(output) ?? []
    expect(output).toContain(`{"id":"${runId}"`)
    for (const guide of [
      'following-a-run',
      'run-life-cycle',
      'authentication',
      'idempotency-and-retries',
      'versioning',
    ]) {
      const { executionUrl } = service
      const answer = await fetch(`${executionUrl}/docs/execution.v1.json`)
      const printed = await outputOf(guide, { API_KEY: key, RUN_ID: runId ?? '' })
      if (guide === 'versioning') expect(printed.trim()).toBe(hash('sha256', await answer.text(), 'hex').slice(0, 16))
      else expect(printed).toMatch(/"(id|data)":/)
    }
  })
})
