/** The docs as a service serves them on each host, and the shell commands of the guides, run against it. */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { executionContract } from '../../src/openapi/served-documents.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { pathWithCurl } from '../support/curl.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { addresses } from './site.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

const hosts = ['dashboardUrl', 'executionUrl', 'browserContextUrl'] as const

function get(path: string, init: RequestInit = {}, host: (typeof hosts)[number] = 'executionUrl') {
  return fetch(`${service[host]}${path}`, { redirect: 'manual', ...init })
}

describe.each(hosts)('at %s', (host) => {
  test('the docs are served without a key or a session', async () => {
    const redirect = await get('/docs', {}, host)
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, 'docs/'])
    const page = await get('/docs/', {}, host)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await page.text()).toContain('<h1 id="introduction">Introduction</h1>')
    expect(page.headers.get('set-cookie')).toBeNull()
    expect(page.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  test("a problem's type leads to its section", async () => {
    const problem = await (await get('/v1/nothing', {}, 'executionUrl')).json()
    const page = await get(new URL(problem.type, service[host]).pathname, {}, host)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('id="not-found"')
  })

  test('an unknown path returns a 404 page whose links work from there', async () => {
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
      const response = await sendRaw(service[host], { method: 'GET', path })
      expect([path, response.status]).toEqual([path, 404])
      expect(response.text).toContain('Page not found')
      const links = addresses(response.text).filter(
        (each) => !each.startsWith('#') && !each.startsWith(service.dashboardUrl),
      )
      expect(links.filter((address) => !/^(\.\/|(\.\.\/)+)[\w.-]+$/.test(address))).toEqual([])
      for (const link of path.includes('..') ? [] : links) {
        expect(new URL(link, `http://host${path}`).pathname).toMatch(/^\/docs\/[^/]+$/)
      }
    }
  })
})

test("guides, reference, samples and documents have the service's own addresses", async () => {
  const guide = await (await get('/docs/quick-start')).text()
  expect(guide).toContain(`${service.executionUrl}/v1/execution/queue-remote/count-words`)
  const overview = await (await get('/docs/browser-context')).text()
  const reference = await (await get('/docs/browser-context-browser-contexts')).text()
  expect(reference).toContain(`${service.browserContextUrl}/alpha/browser-contexts`)
  for (const text of [guide, overview, reference]) expect(text).not.toMatch(/127\.0\.0\.1:300[12]\b/)
  const { servers, ...document } = await (await get('/docs/execution.v1.json')).json()
  expect(servers).toEqual([{ url: service.executionUrl, description: 'This service.' }])
  expect(document).toEqual({ ...executionContract.document, servers: undefined })
  expect(parse(await (await get('/docs/browser-context.alpha.yaml')).text()).servers).toEqual([
    { url: service.browserContextUrl, description: 'This service.' },
  ])
})

test('pages are revalidated at each visit; files with a digest in their name are cached for good', async () => {
  const page = await get('/docs/errors')
  expect(page.headers.get('cache-control')).toBe('no-cache')
  // `fetch` adds Cache-Control to conditional requests.
  const headers = ['If-None-Match', page.headers.get('etag') ?? '', 'Accept-Encoding', 'gzip']
  const again = await sendRaw(service.executionUrl, { method: 'GET', path: '/docs/errors', headers })
  expect([again.status, again.text]).toEqual([304, ''])
  const [script = ''] = (await page.text()).match(/docs\.[\w-]+\.js/) ?? []
  const cached = await get(`/docs/${script}`)
  expect(cached.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
})

test('large files are compressed for clients that accept gzip, with another ETag', async () => {
  const tags = new Set<string | null>()
  for (const encoding of ['gzip', 'identity']) {
    const response = await get('/docs/execution.v1.json', { headers: { 'Accept-Encoding': encoding } })
    expect(response.headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null)
    expect(response.headers.get('vary')).toBe('Accept-Encoding')
    expect(await response.json()).toMatchObject({ info: executionContract.document.info })
    tags.add(response.headers.get('etag'))
  }
  expect(tags.size).toBe(2)
})

test('pages load nothing from another host, run no unknown script, and cannot be framed', async () => {
  for (const path of ['/docs/', '/docs/execution.html', '/docs/execution-runs.html']) {
    const { headers } = await get(path)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toMatch(/script-src 'self'( 'sha256-[\w+/=]+')*;/)
    expect(policy).not.toContain('connect-src')
    expect(policy).not.toMatch(/https?:|\*/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('HEAD returns the headers of GET; other methods are refused', async () => {
  const [head, response] = [await get('/docs/llms.txt', { method: 'HEAD' }), await get('/docs/llms.txt')]
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect(head.headers.get('etag')).toBe(response.headers.get('etag'))
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const refused = await get('/docs/', { method })
    expect([method, refused.status, refused.headers.get('allow')]).toEqual([method, 405, 'GET, HEAD'])
  }
})

test('an API logs requests for the docs under their request id', async () => {
  const response = await get('/docs/limits')
  await response.text()
  const requestId = response.headers.get('x-request-id')
  await expect.poll(() => service.log.find((line) => line.requestId === requestId)).toMatchObject({ status: 200 })
})

test('X-Document-Hash is the hash of the document that the docs serve', async () => {
  for (const [host, file, path] of [
    ['executionUrl', 'execution.v1', '/v1/execution/runs'],
    ['browserContextUrl', 'browser-context.alpha', '/alpha/browser-contexts'],
  ] as const) {
    const { servers, ...document } = await (await get(`/docs/${file}.json`, {}, host)).json()
    const response = await get(path, {}, host)
    const expected = hash('sha256', JSON.stringify(document), 'hex').slice(0, 16)
    expect(response.headers.get('x-document-hash')).toBe(expected)
  }
})

/** Runs the shell blocks of a guide, one after another in one shell, and returns what they print. */
async function runCommands(guide: string, variables: Record<string, string>): Promise<string> {
  const text = await (await get(`/docs/${guide}.md`)).text()
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  expect(blocks.length).toBeGreaterThan(0)
  const script = blocks.join('\n').replace(/^export API_KEY=.*$/m, '')
  const environment = { ...process.env, PATH: pathWithCurl, ...variables }
  const { stdout } = await promisify(execFile)('sh', ['-euc', script], { env: environment })
  expect(stdout).not.toMatch(/\/docs\/errors#|Unauthorized|Forbidden/)
  return stdout
}

test('the commands of the guides work as printed', async () => {
  const { key } = await service.createAccount()
  const output = await runCommands('quick-start', { API_KEY: key })
  expect(output).toContain('"id":"count-words"')
  expect(output.match(/"status":"succeeded"/g)?.length).toBeGreaterThanOrEqual(3)
  const [, runId = ''] = /([0-9a-f-]{36})\n/.exec(output) ?? []
  expect(output).toContain(`{"id":"${runId}"`)
  // `run-life-cycle` deletes the run.
  const guides = ['following-a-run', 'authentication', 'run-life-cycle', 'idempotency-and-retries', 'pagination']
  for (const guide of guides) {
    expect(await runCommands(guide, { API_KEY: key, RUN_ID: runId })).toMatch(/"(id|data)":/)
  }
  expect((await runCommands('versioning', {})).trim()).toBe(executionContract.documentHash)
})
