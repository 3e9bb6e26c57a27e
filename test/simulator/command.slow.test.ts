/** `mock --simulate`: its output, its clock, its signals, and its errors at start. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { defaultApiKey } from '../../src/simulator/simulator.ts'

const ports = ['DASHBOARD', 'EXECUTION', 'BROWSER_CONTEXT', 'MANAGEMENT']
const freePorts = Object.fromEntries(ports.map((name) => [`MOCK_${name}_PORT`, '0']))

function start(args: string[], environment: Record<string, string> = {}): ChildProcess & { stderr: object } {
  const child = spawn(process.execPath, ['src/main.ts', 'mock', ...args], {
    env: { ...process.env, ...freePorts, ...environment },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child as ChildProcess & { stderr: object }
}

test('the command serves the example workflows by a clock, and exits on SIGTERM', async () => {
  const child = start(['--simulate', '--speed', '0', '--now', '2030-01-01T00:00:00Z'])
  let output = ''
  child.stderr?.setEncoding('utf8').on('data', (part) => {
    output += part
  })
  await expect.poll(() => output).toContain('/links/')
  const [executionUrl, , , , managementUrl] = output.match(/http:\/\/127\.0\.0\.1:\d+/g) ?? []
  const headers = { Authorization: `Bearer ${defaultApiKey}` }
  const workflows = await fetch(`${executionUrl}/v1/execution/workflows`, { headers })
  expect(JSON.stringify(await workflows.json())).toContain('"count-words"')
  const clock = await fetch(`${managementUrl}/simulator/clock`, { method: 'POST', body: '{"advanceSeconds":3600}' })
  expect(await clock.json()).toMatchObject({ now: '2030-01-01T01:00:00.000Z', speed: 0 })
  const page = await fetch(`${executionUrl}/docs/`)
  expect(page.status).toBe(200)
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
})

test('what cannot be used is refused in one sentence', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const refusals: [string[], Record<string, string>, string][] = [
    [['--simulate'], { MOCK_EXECUTION_PORT: `${port}` }, 'set MOCK_EXECUTION_PORT to another port'],
    [['--simulate', '--now', 'yesterday'], {}, '--now is "yesterday": set it to a time'],
    [['--simulate', '--speed', 'fast'], {}, '--speed is "fast": set it to a number'],
    [['--speed', '2'], {}, '--speed needs --simulate.'],
  ]
  for (const [args, environment, message] of refusals) {
    const child = start(args, environment)
    const printed = await text(child.stderr as never)
    expect(printed).toContain(message)
    expect(printed.trim().split('\n')).toHaveLength(1)
    expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(1)
  }
})
