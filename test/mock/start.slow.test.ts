/** `npm run mock`: its output, its signals, and its errors at start. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { ListenError } from '../../src/contract/listener.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { startMock } from '../../src/tools/mock/mock.ts'
import { mockKeys, renderKeyTable, validKey } from '../../src/tools/mock/mock-keys.ts'

/** On free ports by default. */
function start(
  environment: Record<string, string> = {},
  args: string[] = [],
): {
  child: ChildProcess
  stderr: () => string
  stdout: () => string
} {
  // Other tests of this process set another LOG_LEVEL.
  const defaults = { MOCK_EXECUTION_PORT: '0', MOCK_BROWSER_CONTEXT_PORT: '0', LOG_LEVEL: 'info' }
  const child = spawn(process.execPath, ['src/tools/mock/main.ts', ...args], {
    env: { ...process.env, ...defaults, ...environment },
  })
  let text = ''
  let log = ''
  child.stdout.setEncoding('utf8').on('data', (part) => {
    log += part
  })
  child.stderr.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  return { child, stderr: () => text, stdout: () => log }
}

test('the mock prints addresses and keys, serves both APIs and the docs, and exits on SIGTERM', async (context) => {
  const { child, stderr, stdout } = start()
  context.onTestFinished(() => void child.kill('SIGKILL'))
  while (!stderr().includes('Prefer: code')) await once(child.stderr as NonNullable<ChildProcess['stderr']>, 'data')
  for (const { value, status, meaning } of mockKeys) expect(stderr()).toContain(`  ${value}  ${status}  ${meaning}\n`)
  expect(stderr()).toContain('Workflows: build-manifest, check-links')
  const [executionUrl, browserContextUrl] = stderr().match(/http:\/\/127\.0\.0\.1:\d+/g) ?? []
  const bearer = { Authorization: `Bearer ${validKey.value}` }
  const contexts = { 'x-service-api-key': validKey.value }
  expect((await fetch(`${executionUrl}/v1/execution/runs`, { headers: bearer })).status).toBe(200)
  expect((await fetch(`${browserContextUrl}/alpha/browser-contexts`, { headers: contexts })).status).toBe(200)
  // Both stages that vary the response are listed.
  expect((await fetch(`${executionUrl}/docs/limits`)).headers.get('vary')).toBe('Origin, Accept-Encoding')
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
  const [line = ''] = stdout().split('\n')
  expect(JSON.parse(line)).toMatchObject({ operationId: 'listRuns', status: 200 })
  // Like the log of the service.
  expect(line).not.toContain('hostname')
})

test('a port that is in use or invalid is reported in one sentence', async (context) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  context.onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const ports = { executionPort: 0, browserContextPort: port }
  const workflows = new Workflows([])
  const starting = startMock({ host: '127.0.0.1', ...ports, workflows, log: pino({ level: 'silent' }) })
  await expect(starting).rejects.toThrow(
    new ListenError(
      `127.0.0.1:${port} is in use by another program: set MOCK_BROWSER_CONTEXT_PORT to another port, or HOST to another address.`,
    ),
  )
  const invalid = start({ MOCK_EXECUTION_PORT: 'http' })
  expect((await once(invalid.child, 'close'))[0]).toBe(1)
  expect(invalid.stderr()).toBe('MOCK_EXECUTION_PORT is "http": set it to a whole number from 0 to 65535.\n')
})

test.each([
  ['/none-such', 'The directory of workflows (/none-such) cannot be read'],
  ['docs', 'docs has no workflows'],
])('--workflows %s is refused in one sentence', async (directory, message) => {
  const { child, stderr } = start({}, ['--workflows', directory])
  expect((await once(child, 'close'))[0]).toBe(1)
  expect(stderr()).toContain(message)
  expect(stderr().trim().split('\n')).toHaveLength(1)
})

test('the guide has the table of mock keys', () => {
  expect(readFileSync('docs/guides/mock.md', 'utf8')).toContain(`\n${renderKeyTable()}\n`)
})

test('--bare runs prism mock on both documents', async (context) => {
  const { child, stdout } = start({}, ['--bare'])
  context.onTestFinished(() => void child.kill('SIGTERM'))
  const listening = () => [...stdout().matchAll(/Prism is listening on (\S+)/g)].map(([, url]) => url)
  while (listening().length < 2) await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')
  const headers = { Authorization: 'Bearer any' }
  const responses = await Promise.all(listening().map((url) => fetch(`${url}/v1/execution/workflows`, { headers })))
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 404])
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
})
