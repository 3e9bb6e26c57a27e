/** A page in a browser can call the mock from another origin, like a front end in development. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { mockKeys, validKey } from '../../src/tools/mock/mock-keys.ts'
import { mockPath, mockQueries, testedWorkflows } from '../mock/use-mock.ts'
import { operations } from '../operations/document.ts'
import { requestOf } from '../operations/requests.ts'
import { type Browser, startBrowser } from '../support/browser.ts'

let mock: Mock
let browser: Browser
let page: Page
const site = createServer((_request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>'))

beforeAll(async () => {
  mock = await startMock({
    host: '127.0.0.1',
    executionPort: 0,
    browserContextPort: 0,
    log: pino({ level: 'silent' }),
    workflows: await testedWorkflows(),
  })
  browser = await startBrowser()
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  site.close()
  await browser.close()
  await mock.stop()
})
beforeEach(async (context) => {
  page = await browser.newPage(context)
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
})

/** Fetches with credentials from a script of the page. */
function fetchInPage(url: string, init: { method: string; headers: object; body?: unknown }) {
  const call = async ([address, options]: [string, object]) => {
    const response = await fetch(address, { ...options, credentials: 'include' })
    const headers = Object.fromEntries(response.headers)
    return { status: response.status, headers, text: await response.text() }
  }
  return page.evaluate(call, [url, init] as [string, object])
}

test.each(operations)('a page of another origin can call $id and read the response', async (operation) => {
  const [body] = Object.values(operation.body ?? {})
  const { path: target, ...init } = requestOf(operation, validKey.value, {
    path: { ...mockPath, artifactName: 'shot.png' },
    query: mockQueries[operation.id] ?? '',
    body,
  })
  const origin = operation.surface === 'execution' ? mock.executionUrl : mock.browserContextUrl
  const response = await fetchInPage(origin + target, { ...init, headers: { ...init.headers, Prefer: 'wait=10' } })
  expect(operation.responses.has(response.status)).toBe(true)
  expect(response.status).toBeLessThan(300)
  const { headers = {} } = operation.responses.get(response.status) ?? {}
  for (const [name, { required }] of Object.entries(headers)) {
    if (required) expect(response.headers[name.toLowerCase()], name).toBeDefined()
  }
})

test.each(mockKeys)('a page can read a response of $status and its headers', async ({ value, status }) => {
  const init = { method: 'GET', headers: { Authorization: `Bearer ${value}` } }
  const response = await fetchInPage(`${mock.executionUrl}/v1/execution/runs`, init)
  expect(response.status).toBe(status)
  expect(response.headers['x-request-id']).toBeDefined()
  if (status === 401) expect(response.headers['www-authenticate']).toBeDefined()
  if (status === 429) expect(response.headers).toMatchObject({ 'retry-after': '2', ratelimit: '"api-key";r=0;t=2' })
})

test('a page can read the problem of an invalid request', async () => {
  const init = { method: 'GET', headers: { Authorization: `Bearer ${validKey.value}` } }
  const response = await fetchInPage(`${mock.executionUrl}/v1/execution/runs?limit=1000`, init)
  expect(response.status).toBe(400)
  expect(JSON.parse(response.text).errors).toEqual([{ parameter: 'limit', detail: 'must be <= 100' }])
})

test.each(['shot.png', 'shot.jpg', 'shot.webp'])('a page can decode the artifact %s', async (name) => {
  const decode = async ([address, key]: [string, string]) => {
    const response = await fetch(address, { headers: { Authorization: `Bearer ${key}` } })
    const { width, height } = await createImageBitmap(await response.blob())
    return [width, height]
  }
  const address = `${mock.executionUrl}/v1/execution/runs/${mockPath.runId}/artifacts/${name}`
  expect(await page.evaluate(decode, [address, validKey.value] as [string, string])).toEqual([16, 16])
})
