/** Nothing on the way from a start to a finished run requires `/proc`, which macOS does not have. */
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Member, newFleet } from '../support/fleet.ts'
import { embeddedFleetStore } from '../support/fleet-stores.ts'
import { commandWithoutProc } from '../support/hidden-proc.ts'
import { capture, cleanEnvironment, waitForExit } from '../support/installation.ts'
import { queueRun, waitForOutcome } from '../support/ledger.ts'
import { type Environment, main, removeDirectory, until } from '../support/service.ts'

const through = commandWithoutProc()
const withoutProc = test.skipIf(typeof through === 'string')
if (typeof through === 'string') process.stdout.write(`Skipped: ${through}\n`)
const prefix = typeof through === 'string' ? [] : through

const demo = fileURLToPath(new URL('../../src/tools/demo.ts', import.meta.url))

/** Runs the file in a new directory, which is removed with the test. */
function run(context: { onTestFinished(act: () => unknown): void }, args: string[], environment: Environment) {
  const directory = mkdtempSync(join(tmpdir(), 'without-proc-'))
  const [program = '', ...parameters] = [...prefix, process.execPath, ...args]
  const env = cleanEnvironment({ TMPDIR: directory, ...environment })
  const child = spawn(program, parameters, { env, cwd: directory, detached: true })
  const output = capture(child, () => {})
  const ended = waitForExit(child)
  context.onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGKILL')
    await ended
    removeDirectory(directory)
  })
  return { child, output, ended }
}

const warnings = (member: Member) =>
  member
    .output()
    .split('\n')
    .filter((line) => line.includes('/proc'))

withoutProc('a service and a worker execute runs, and the worker warns once', async (context) => {
  const fleet = await newFleet(context, embeddedFleetStore)
  const service = await fleet.api({ through: prefix, worker: true })
  const worker = await fleet.worker({ through: prefix })
  const { key } = await fleet.createAccount()
  const queued = await Promise.all(
    Array.from({ length: 20 }, () => queueRun(service.executionUrl, key, 'greet', { name: 'Ada' })),
  )
  const ids = queued.flatMap((each) => each?.id ?? [])
  expect(ids).toHaveLength(20)
  const outcome = await fleet.withStore((store) => waitForOutcome(store, ids))
  expect(outcome).toMatchObject({ succeeded: 20, attempts: 20, unsuccessful: [] })
  expect((await fetch(`${service.managementUrl}/metrics`)).status).toBe(200)
  for (const member of [service, worker]) {
    expect(warnings(member)).toEqual([expect.stringContaining('no /proc: WORKFLOW_MEMORY_MB limits the heap')])
    member.signal('SIGTERM')
    expect(await member.ended).toEqual({ code: 0, signal: null })
  }
})

withoutProc(
  'a workflow that fills its heap is ended, and a killed worker leaves no process of a run',
  async (context) => {
    const fleet = await newFleet(context, embeddedFleetStore, { settings: { WORKFLOW_MEMORY_MB: '64' } })
    const service = await fleet.api()
    const worker = await fleet.worker({ through: prefix })
    const { key } = await fleet.createAccount()
    const leaking = await queueRun(service.executionUrl, key, 'misbehave', { how: 'exhaust' })
    const outcome = await fleet.withStore((store) => waitForOutcome(store, [leaking?.id ?? '']))
    expect(outcome.unsuccessful).toEqual([expect.stringContaining('HeapLimit')])
    worker.signal('SIGKILL')
    await worker.ended
    await until('its group has ended', () => {
      try {
        return !process.kill(-worker.pid, 0)
      } catch {
        return true
      }
    })
  },
)

withoutProc('the mock serves', async (context) => {
  const ports = { MOCK_EXECUTION_PORT: '0', MOCK_BROWSER_CONTEXT_PORT: '0' }
  const { child, output, ended } = run(context, [main, 'mock'], ports)
  const url = await until('the mock prints its address', () => /http:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0])
  expect((await fetch(`${url}/v1/execution/workflows`)).status).toBe(401)
  child.kill('SIGTERM')
  expect(await ended).toEqual({ code: 0, signal: null })
})

withoutProc('the demo runs once', async (context) => {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const { output, ended } = run(context, [demo, '--once'], ports)
  expect(await ended, output()).toEqual({ code: 0, signal: null })
})

withoutProc('doctor finds no failure but that of Chromium, which needs /proc on Linux', async (context) => {
  const fleet = await newFleet(context, embeddedFleetStore)
  await (await fleet.api({ worker: true })).kill()
  const { output, ended } = run(context, [main, 'doctor', '--json'], fleet.settings)
  await ended
  const { checks } = JSON.parse(output()) as { checks: { name: string; status: string }[] }
  const failed = checks.filter(({ status }) => status === 'fail').map(({ name }) => name)
  expect(failed).toEqual(['browser'])
})
