/** `npm run dev` in a copy of this checkout, which a test or a measurement may change. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Checkout, copyCheckout } from './checkout.ts'
import { until } from './service.ts'
import { waitLimits } from './timeouts.ts'

/** A version that hangs is ended after half a minute, and another may start then. */
const saidMilliseconds = 2 * waitLimits.timeout

export interface Dev extends Checkout {
  child: ChildProcess
  /** Of the latest start that has told its addresses. */
  executionUrl(): string
  /** What it has told people, line by line. */
  lines: string[]
  /** Resolves with the first line that fits after `act` has begun; gives up with all that was said. */
  waitForLine(act: () => void, pattern: RegExp): Promise<string>
  /** Whether any of its processes exists. */
  anyAlive(): boolean
  end(): Promise<void>
}

/** @param args what Node runs, in the copy. */
export async function startDev(args = ['src/tools/dev/main.ts']): Promise<Dev> {
  const checkout = copyCheckout()
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const { PATH, HOME, NODE_COMPILE_CACHE = 'node_modules/.cache/node' } = process.env
  const env = { PATH, HOME, NODE_COMPILE_CACHE, ...ports, DATA_DIR: join(checkout.directory, 'data') }
  // A group of its own, as a terminal makes one.
  const child = spawn(process.execPath, args, {
    cwd: checkout.directory,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const said: string[] = []
  const lines = createInterface({ input: child.stderr })
  lines.on('line', (line) => said.push(line))
  const saidAfter = async (act: () => void, pattern: RegExp) => {
    const from = said.length
    act()
    const over = AbortSignal.timeout(saidMilliseconds)
    for (;;) {
      const found = said.slice(from).find((line) => pattern.test(line))
      if (found !== undefined) return found
      if (over.aborted || child.exitCode !== null) {
        const what = over.aborted ? `It has not said ${pattern} in time` : `It ended without saying ${pattern}`
        throw new Error(`${what}, but:\n${said.join('\n')}`)
      }
      await Promise.race([once(lines, 'line', { signal: over }).catch(() => {}), ended])
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
    await until('its processes are gone', () => !anyAlive())
    checkout.remove()
  }
  await saidAfter(() => {}, /^Execution API/).catch(async (error) => {
    await end()
    throw error
  })
  const executionUrl = () =>
    said
      .findLast((line) => line.startsWith('Execution API'))
      ?.split(/ +/)
      .at(-1) ?? ''
  return { ...checkout, child, executionUrl, lines: said, waitForLine: saidAfter, anyAlive, end }
}
