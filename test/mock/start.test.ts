/** `npm run mock`: what it says at its start, and how it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { ListenError } from '../../src/contract/listener.ts'
import { goodKey, keyTable, mockKeys } from '../../src/tools/mock/keys.ts'
import { startMock } from '../../src/tools/mock/mock.ts'

/** Runs it on ports that the system chooses, unless the environment says otherwise. */
function start(environment: Record<string, string> = {}): {
  child: ChildProcess
  said: () => string
  logged: () => string
} {
  // Other tests of this process set another level for their workers.
  const usual = { MOCK_EXECUTION_PORT: '0', MOCK_BROWSER_CONTEXT_PORT: '0', LOG_LEVEL: 'info' }
  const child = spawn(process.execPath, ['src/tools/mock/main.ts'], {
    env: { ...process.env, ...usual, ...environment },
  })
  let text = ''
  let log = ''
  child.stdout.setEncoding('utf8').on('data', (part) => {
    log += part
  })
  child.stderr.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  return { child, said: () => text, logged: () => log }
}

test('says where it is, which keys there are and that it keeps no state, and ends when it is told to', async (context) => {
  const { child, said, logged } = start()
  context.onTestFinished(() => void child.kill('SIGKILL'))
  while (!said().includes('Prefer: code')) await once(child.stderr as NonNullable<ChildProcess['stderr']>, 'data')
  for (const { value, status, meaning } of mockKeys) expect(said()).toContain(`  ${value}  ${status}  ${meaning}\n`)
  expect(said()).toContain('It keeps no state')
  const [executionUrl, browserContextUrl] = said().match(/http:\/\/127\.0\.0\.1:\d+/g) ?? []
  const bearer = { Authorization: `Bearer ${goodKey.value}` }
  const contexts = { 'x-service-api-key': goodKey.value }
  expect((await fetch(`${executionUrl}/v1/execution/runs`, { headers: bearer })).status).toBe(200)
  expect((await fetch(`${browserContextUrl}/alpha/browser-contexts`, { headers: contexts })).status).toBe(200)
  // Of two things by which an answer differs, neither hides the other.
  expect((await fetch(`${executionUrl}/docs/limits`)).headers.get('vary')).toBe('Origin, Accept-Encoding')
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
  const [line = ''] = logged().split('\n')
  expect(JSON.parse(line)).toMatchObject({ operationId: 'listRuns', status: 200 })
  // As the service logs: the same wherever it runs.
  expect(line).not.toContain('hostname')
})

test('does not start with a port that is taken or is none, and says so in one sentence', async (context) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  context.onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const ports = { executionPort: 0, browserContextPort: port }
  const taken = startMock({ host: '127.0.0.1', ...ports, log: pino({ level: 'silent' }) })
  await expect(taken).rejects.toThrow(
    new ListenError(
      `127.0.0.1:${port} is in use by another program: set MOCK_BROWSER_CONTEXT_PORT to another port, or HOST to another address.`,
    ),
  )
  const none = start({ MOCK_EXECUTION_PORT: 'http' })
  expect((await once(none.child, 'close'))[0]).toBe(1)
  expect(none.said()).toBe('MOCK_EXECUTION_PORT is "http": set it to a whole number from 0 to 65535.\n')
})

test('its guide shows the keys that it has', () => {
  expect(readFileSync('docs/guides/mock.md', 'utf8')).toContain(`\n${keyTable()}\n`)
})
