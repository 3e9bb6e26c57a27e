/** The real service as a child process, started as `npm start` does, and its command line. */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { setInterval, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Why the demo cannot go on, in one sentence for the person who started it. */
export class DemoFailed extends Error {}

const root = fileURLToPath(new URL('../..', import.meta.url))
const main = fileURLToPath(new URL('../main.ts', import.meta.url))

const startSecondsMax = 30
/** Beyond the time that the service takes by itself when its requests and runs do not finish. */
const stopSecondsMax = 30

export interface ServiceProcess {
  /** Rejects with the service's reason when it ends without having been told to. */
  ended: Promise<never>
  /** Waits until `readyUrl` says that the service is ready. */
  ready(readyUrl: string, signal: AbortSignal): Promise<void>
  /** The warnings and errors in its log since it was started. */
  complaints(): Promise<string[]>
  /** Leaves no process behind. */
  stop(): Promise<void>
}

/** @param environment complete; the service reads nothing else. */
export async function startService(environment: NodeJS.ProcessEnv, logPath: string): Promise<ServiceProcess> {
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
  const said = child.stderr ? text(child.stderr) : Promise.resolve('')
  const exited = once(child, 'exit')
  let started = false
  let stopping = false
  const ended = exited.then(async ([code, signal]) => {
    endGroup(child)
    if (stopping) return new Promise<never>(() => {})
    // Once it has started, what it said was its welcome.
    const reason = started ? '' : reasonIn(await said)
    throw new DemoFailed(reason || `The service has ended (${signal ?? `exit code ${code}`}).`)
  })
  // Whoever waits for it is told; nobody waiting is no reason to crash.
  ended.catch(() => {})
  return {
    ended,
    async ready(readyUrl, signal) {
      const over = new AbortController()
      const ready = untilReady(readyUrl, AbortSignal.any([signal, over.signal]))
      await Promise.race([ended, ready]).finally(() => over.abort())
      started = true
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

async function untilReady(readyUrl: string, signal: AbortSignal): Promise<void> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(startSecondsMax * 1000)])
  try {
    for await (const _ of setInterval(25, undefined, { signal: inTime })) {
      const ready = await fetch(readyUrl, { signal: inTime }).then(
        ({ ok }) => ok,
        () => false,
      )
      if (ready) return
    }
  } catch {
    signal.throwIfAborted()
    throw new DemoFailed(`The service was not ready within ${startSecondsMax} s.`)
  }
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
