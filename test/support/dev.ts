/** Runs `npm run dev` in a copy of this checkout, which tests and benchmarks may change. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Checkout, copyCheckout } from './checkout.ts'
import { until } from './service.ts'
import { waitLimits } from './timeouts.ts'

/** Longer than the half minute after which a version that hangs is replaced. */
const outputMillisecondsMax = 2 * waitLimits.timeout

export interface Dev extends Checkout {
  child: ChildProcess
  /** The address printed by the latest start. */
  executionUrl(): string
  /** Lines printed so far. */
  lines: string[]
  /** Calls `act`, and resolves with the first matching line printed since. The error after a timeout has all lines. */
  waitForLine(act: () => void, pattern: RegExp): Promise<string>
  /** Whether any process of its group is running. */
  anyAlive(): boolean
  end(): Promise<void>
}

/** @param args of Node, run in the copy. */
export async function startDev(args = ['src/tools/dev.ts']): Promise<Dev> {
  const checkout = copyCheckout()
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const { PATH, HOME, NODE_COMPILE_CACHE = 'node_modules/.cache/node' } = process.env
  const directories = { DATA_DIR: join(checkout.directory, 'data'), WORKFLOWS_DIR: 'examples/workflows' }
  const env = { PATH, HOME, NODE_COMPILE_CACHE, ...ports, ...directories }
  // In a separate process group, as in a terminal.
  const child = spawn(process.execPath, args, {
    cwd: checkout.directory,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const outputLines: string[] = []
  const lines = createInterface({ input: child.stderr })
  lines.on('line', (line) => outputLines.push(line))
  const waitForLine = async (act: () => void, pattern: RegExp) => {
    const from = outputLines.length
    act()
    const deadline = AbortSignal.timeout(outputMillisecondsMax)
    for (;;) {
      const match = outputLines.slice(from).find((line) => pattern.test(line))
      if (match !== undefined) return match
      if (deadline.aborted || child.exitCode !== null) {
        const problem = deadline.aborted
          ? `No line matched ${pattern} in time`
          : `It ended before a line matched ${pattern}`
        throw new Error(`${problem}:\n${outputLines.join('\n')}`)
      }
      await Promise.race([once(lines, 'line', { signal: deadline }).catch(() => {}), ended])
    }
  }
  const ended = once(child, 'exit')
  const anyAlive = () => {
    try {
      return process.kill(-(child.pid as number), 0)
    } catch {
      return false
    }
  }
  const end = async () => {
    if (anyAlive()) process.kill(-(child.pid as number), 'SIGKILL')
    await until('its processes have ended', () => !anyAlive())
    checkout.remove()
  }
  await waitForLine(() => {}, /^Execution API/).catch(async (error) => {
    await end()
    throw error
  })
  const executionUrl = () =>
    outputLines
      .findLast((line) => line.startsWith('Execution API'))
      ?.split(/ +/)
      .at(-1) ?? ''
  return { ...checkout, child, executionUrl, lines: outputLines, waitForLine: waitForLine, anyAlive, end }
}
