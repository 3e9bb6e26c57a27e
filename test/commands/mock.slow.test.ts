/** The mock: Prism behind a table of keys. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Mock, startMock } from '../../src/commands/mock.ts'
import { mockKeys, validKey } from '../../src/commands/mock-keys.ts'
import { ListenError } from '../../src/contract/listener.ts'
import { expectDocumented, operationOf, operations } from '../operations/document.ts'
import { addressOf, type Filled, requestOf } from '../operations/requests.ts'
import { startBrowser } from '../support/browser.ts'

const freePorts = { MOCK_EXECUTION_PORT: '0', MOCK_BROWSER_CONTEXT_PORT: '0' }

let mock: Mock
beforeAll(async () => {
  mock = await startMock(freePorts)
})
afterAll(() => mock.stop())

const names: Record<string, string> = {
  workflowId: 'count-words',
  deploymentId: '5f1c0d0f2c5b1f0d8a6de21c0a3a3a1c8f61d5ce5c0a7b0f4a9f2de1c3b7a904',
  artifactName: 'invoice.pdf',
  stepName: 'charge',
  attempt: '1',
  version: '1',
  name: 'SHOP_TOKEN',
}

/** A request with the first example of the body. */
function filledFrom(id: Parameters<typeof operationOf>[0]): Filled {
  const { parameters, body } = operationOf(id)
  const [example] = Object.values(body ?? {})
  const inPath = parameters.filter((each) => each.in === 'path')
  return {
    path: Object.fromEntries(inPath.map(({ name }) => [name, names[name] ?? '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'])),
    query: id === 'getUsage' ? 'from=2026-11-01&to=2026-11-30' : '',
    ...(example !== undefined && { body: example }),
  }
}

async function call(id: Parameters<typeof operationOf>[0], headers: Record<string, string> = {}, key = validKey) {
  const operation = operationOf(id)
  const { path, headers: own, ...request } = requestOf(operation, key, filledFrom(id))
  const init = { ...request, headers: { ...(own as Record<string, string>), ...headers } } as RequestInit
  const response = await fetch(addressOf(mock, operation) + path, init)
  return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
}

test.each(operations)('$id responds with a documented success', async ({ id }) => {
  const { status, text } = await call(id)
  expect(operationOf(id).responses.has(status), text).toBe(true)
  expect(status, text).toBeLessThan(300)
})

test('a call that queues or creates gets 202 or 201, and an awaited one 200', async () => {
  expect((await call('queueRemoteRun')).status).toBe(202)
  expect((await call('queueRemoteRun', { Prefer: 'wait=10' })).status).toBe(200)
  expect((await call('createSchedule')).status).toBe(201)
})

describe('a key', () => {
  test.each(mockKeys.filter(({ status }) => status !== '200'))('$value gets $status', async ({ value, status }) => {
    const response = await call('listRuns', { Accept: 'application/json' }, value)
    expect(String(response.status)).toBe(status)
    if (status === '403') expect(response.text).toBe('Forbidden')
  })

  test('that is unknown or missing gets 401 before anything else is checked', async () => {
    const headers = { Authorization: `Bearer ${crypto.randomUUID()}`, 'Content-Type': 'application/json' }
    const url = `${mock.executionUrl}/v1/execution/queue-remote/greet`
    const unknown = await fetch(url, { method: 'PUT', headers, body: '{' })
    const missing = await fetch(`${mock.browserContextUrl}/alpha/browser-contexts`)
    for (const response of [unknown, missing]) {
      expect([response.status, await response.text()]).toEqual([401, 'Unauthorized'])
      expect(response.headers.get('www-authenticate')).toMatch(/^(Bearer|ApiKey) realm="execution-service"/)
    }
  })
})

test('`Prefer` selects any documented response', async () => {
  const conflict = await call('queueRemoteRun', { Prefer: 'code=409, example=deletedRun' })
  expect(conflict.status).toBe(409)
  expect(
    expectDocumented(operationOf('queueRemoteRun'), { ...conflict, headers: documentedHeaders(conflict) }),
  ).toMatchObject({
    errors: [{ detail: 'was used for a run that has been deleted' }],
  })
})

/** Prism sends the examples of headers, not those of every response. */
const documentedHeaders = ({ headers }: { headers: Record<string, string> }) => ({
  ...headers,
  'cache-control': 'no-store',
})

test('malformed JSON gets 400, at which Prism alone never responds', async () => {
  const headers = { Authorization: `Bearer ${validKey}`, 'Content-Type': 'application/json' }
  const url = `${mock.executionUrl}/v1/execution/queue-remote/count-words`
  const response = await fetch(url, { method: 'PUT', headers, body: '{"variableData":' })
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { errors: [{ pointer: '', detail: 'is not JSON' }] },
  ])
})

test('a page of another origin can call the mock, and read a refusal', async (context) => {
  const site = createServer((_request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>'))
  await once(site.listen(0, '127.0.0.1'), 'listening')
  const browser = await startBrowser()
  context.onTestFinished(async () => {
    await browser.close()
    site.close()
  })
  const page = await browser.newPage(context)
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
  const read = async ([address, keys]: [string, string[]]) => {
    const responses = keys.map((key) => fetch(address, { headers: { Authorization: `Bearer ${key}` } }))
    return (await Promise.all(responses)).map(({ status }) => status)
  }
  const keys = [validKey, '00000000-0000-4000-8000-000000000403', crypto.randomUUID()]
  const address = `${mock.executionUrl}/v1/execution/runs`
  expect(await page.evaluate(read, [address, keys] as [string, string[]])).toEqual([200, 403, 401])
})

test('the docs are served, to which the type of a problem links', async () => {
  expect((await fetch(`${mock.executionUrl}/docs/errors`)).status).toBe(200)
})

test('a port in use is reported in one sentence', async (context) => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await expect(startMock({ ...freePorts, MOCK_BROWSER_CONTEXT_PORT: String(port) })).rejects.toThrow(
    new ListenError(
      `127.0.0.1:${port} is in use by another program: set MOCK_BROWSER_CONTEXT_PORT to another port, or HOST to another address.`,
    ),
  )
})

function start(environment: Record<string, string>, args: string[] = []) {
  const child = spawn(process.execPath, ['src/main.ts', 'mock', ...args], {
    env: { ...process.env, ...freePorts, ...environment },
  })
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  return { child: child as ChildProcess, stderr: () => text }
}

test('the command prints addresses and keys, and exits on SIGTERM', async (context) => {
  const { child, stderr } = start({})
  context.onTestFinished(() => void child.kill('SIGKILL'))
  while (!stderr().includes('Prefer: code')) await once(child.stderr as NodeJS.ReadableStream, 'data')
  for (const { value, status, meaning } of mockKeys) expect(stderr()).toContain(`  ${value}  ${status}  ${meaning}\n`)
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
})

test.each([
  [{ MOCK_EXECUTION_PORT: 'http' }, [], 'MOCK_EXECUTION_PORT is "http": set it to a whole number from 0 to 65535.\n'],
  [{}, ['--workflows', 'docs'], '--workflows needs --simulate.\n'],
])('the command refuses %j %j in one sentence', async (environment, args, message) => {
  const { child, stderr } = start(environment, args)
  expect((await once(child, 'close'))[0]).toBe(1)
  expect(stderr()).toBe(message)
})

test('the guide has the table of mock keys', () => {
  const rows = mockKeys.map(({ value, status, meaning }) => `| \`${value}\` | ${status} | ${meaning} |`)
  expect(readFileSync('docs/guides/mock.md', 'utf8')).toContain(`\n${rows.join('\n')}\n`)
})
