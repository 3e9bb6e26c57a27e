/** The real service as a child process, started as `npm start` does, and its command line. */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { setInterval, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Surface, surfaces } from '../../surfaces/roles.ts'
import type { PortName } from './ports.ts'

/** Why the demo cannot go on, in one sentence for the person who started it. */
export class DemoFailed extends Error {}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const main = fileURLToPath(new URL('../../main.ts', import.meta.url))

const startSecondsMax = 30
/** Beyond the time that the service takes by itself when its requests and runs do not finish. */
const stopSecondsMax = 30

export interface ServiceProcess {
  /** Rejects with the service's reason when it ends without having been told to. */
  ended: Promise<never>
  /** Waits until it is ready; resolves with where it listens, by its own words. */
  ready(signal: AbortSignal): Promise<Places>
  /** The warnings and errors in its log since it was started. */
  complaints(): Promise<string[]>
  /** Leaves no process behind. */
  stop(): Promise<void>
}

/** The origins of a service, by the settings that choose their ports. */
export type Places = Record<PortName, string>

export interface StartOptions {
  /** Complete: the service gets no other variable. */
  environment: NodeJS.ProcessEnv
  /** Where its log is appended to. */
  logPath: string
}

export async function startService({ environment, logPath }: StartOptions): Promise<ServiceProcess> {
  const log = await open(logPath, 'a+', 0o600)
  const { size } = await log.stat()
  const child = fork(main, ['start'], {
    cwd: root,
    env: environment,
    execArgv: [],
    // A group of its own: Ctrl-C reaches the demo alone, which then stops the service once and in order.
    detached: true,
    // The service stops when the channel closes, even when the demo was killed.
    stdio: ['ignore', log.fd, 'pipe', 'ipc'],
  })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
  })
  const exited = once(child, 'exit')
  const closed = once(child, 'close')
  let stopping = false
  const ended = exited.then(async ([code, signal]) => {
    endGroup(child)
    if (stopping) return new Promise<never>(() => {})
    await closed
    const reason = placesIn(said) ? '' : reasonIn(said)
    throw new DemoFailed(reason || `The service has ended (${signal ?? `exit code ${code}`}).`)
  })
  // Whoever waits for it is told; nobody waiting is no reason to crash.
  ended.catch(() => {})
  return {
    ended,
    async ready(signal) {
      const over = new AbortController()
      const isReady = async () => {
        const places = placesIn(said)
        return places && (await answers(`${places.MANAGEMENT_PORT}/readyz`)) ? places : undefined
      }
      const ready = until(isReady, AbortSignal.any([signal, over.signal]))
      return Promise.race([ended, ready]).finally(() => over.abort())
    },
    complaints: async () => complaintsIn((await readFile(logPath)).subarray(size).toString()),
    async stop() {
      stopping = true
      child.kill('SIGTERM')
      const timer = new AbortController()
      const late = setTimeout(stopSecondsMax * 1000, undefined, { signal: timer.signal }).then(() => endGroup(child))
      late.catch(() => {})
      await exited
      timer.abort()
      await log.close()
    },
  }
}

/** Runs a command of the service's command line and returns what it prints. */
export async function runCommand(
  words: string[],
  environment: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<string> {
  try {
    const options = { cwd: root, env: environment, ...(signal && { signal }) }
    return (await promisify(execFile)(process.execPath, [main, ...words], options)).stdout
  } catch (error) {
    signal?.throwIfAborted()
    throw new DemoFailed(reasonIn((error as { stderr?: string }).stderr ?? '') || (error as Error).message)
  }
}

async function until<Result>(look: () => Promise<Result | undefined>, signal: AbortSignal): Promise<Result> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(startSecondsMax * 1000)])
  try {
    for await (const _ of setInterval(25, undefined, { signal: inTime })) {
      const found = await look()
      if (found !== undefined) return found
    }
  } catch {
    signal.throwIfAborted()
  }
  throw new DemoFailed(`The service was not ready within ${startSecondsMax} s.`)
}

async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(1000) }).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Where the service says in its welcome that it is; nothing until it has said all of it. */
function placesIn(said: string): Places | undefined {
  const of = (title: string) => new RegExp(`^${title} +(http://[^/\\s]+)(?:/\\S*)?\n`, 'm').exec(said)?.[1]
  const surface = (name: Surface) => of(surfaces[name].title)
  const [DASHBOARD_PORT, EXECUTION_PORT] = [surface('dashboard'), surface('execution')]
  const [BROWSER_CONTEXT_PORT, MANAGEMENT_PORT] = [surface('browser-context'), of('Management')]
  if (!DASHBOARD_PORT || !EXECUTION_PORT || !BROWSER_CONTEXT_PORT || !MANAGEMENT_PORT) return undefined
  return { DASHBOARD_PORT, EXECUTION_PORT, BROWSER_CONTEXT_PORT, MANAGEMENT_PORT }
}

/** What the service said before it ended, without the lines that only its authors need. */
function reasonIn(output: string): string {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s+at |^Node\.js v/.test(line))
    .join('\n')
}

/** Level 40 of the log is a warning. */
function complaintsIn(log: string): string[] {
  const lines = log.split('\n').filter((line) => line.startsWith('{'))
  const entries: { level: number; msg?: string; err?: { message?: string } }[] = lines.map((line) => JSON.parse(line))
  return entries
    .filter(({ level }) => level >= 40)
    .map(({ msg, err }) => [msg, err?.message].filter(Boolean).join(': '))
}

/** Ends what is left of the service's process group at once: its worker, and the processes of its runs. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing is left.
  }
}
