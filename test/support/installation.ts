/** Runs the real service for tests in processes of its own, on a data directory of its own: starts it, calls commands, ends it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { readConfig } from '../../src/config.ts'
import { withPrismProxies } from './prism-proxy.ts'
import {
  type Addresses,
  type CreateAccount,
  type Environment,
  type LogLine,
  main,
  openAdministration,
  serviceSettings,
  until,
} from './service.ts'
import { newStorage, type Storage } from './service-storage.ts'

/** A data directory of its own, and the services and commands that are started on it. */
export interface Installation {
  dataDirectory: string
  settings: Environment
  /** Every byte that is kept, by the file or store that keeps it. */
  contents: Storage['contents']
  createAccount: CreateAccount
  /** Resolves when the service serves and its worker is ready, or as soon as it has logged something else. */
  start(untilLogged?: string): Promise<ServiceProcess>
  /** The same for a process that does only some of the work; it has no addresses but those that it serves. */
  startOnly(roles: string, changes?: Environment): Promise<ServiceProcess>
  /** Calls the command line, and waits until it has ended. */
  runCommand(...args: string[]): ReturnType<typeof runCommand>
  /** Ends everything, and removes the directory. */
  remove(): Promise<void>
}

export async function newInstallation(changes: Environment = {}): Promise<Installation> {
  const storage = await newStorage()
  const settings = { ...serviceSettings(storage.settings), ...changes }
  const administration = await openAdministration(readConfig(settings))
  const starts: Promise<ServiceProcess>[] = []
  const spawned = (...call: Parameters<typeof spawnService>) => {
    const start = spawnService(...call)
    starts.push(start)
    return start
  }
  return {
    dataDirectory: storage.dataDirectory,
    settings,
    contents: storage.contents,
    createAccount: administration.createAccount,
    start: (untilLogged) => spawned(settings, untilLogged),
    startOnly(roles, changes) {
      const untilLogged = roles.includes('worker') ? 'worker ready' : 'service ready'
      return spawned({ ...settings, ...changes }, untilLogged, roles)
    },
    runCommand: (...args) => runCommand(args, settings),
    async remove() {
      await administration.close()
      // Also of those that are still starting, where another did not.
      for (const start of await Promise.allSettled(starts))
        if (start.status === 'fulfilled') await start.value.killAll()
      await storage.remove()
    },
  }
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** The service as `npm start` runs it, with its worker, in a process group of its own. */
export interface ServiceProcess extends Addresses {
  pid: number
  /** Everything that the service and its worker have written. */
  output(): string
  log: LogLine[]
  ended: Promise<Exit>
  /** Whether any process of the service, its worker or its runs exists. */
  anyAlive(): boolean
  /** Ends every process of the service at the same moment. */
  killAll(): Promise<void>
  /** Tells the service to stop, and waits until it has. */
  stop(): Promise<Exit>
}

async function spawnService(
  environment: Environment,
  untilLogged = 'worker ready',
  only?: string,
): Promise<ServiceProcess> {
  const args = [main, 'start', ...(only ? ['--only', only] : [])]
  const child = spawn(process.execPath, args, { env: cleanEnvironment(environment), detached: true })
  const pid = child.pid as number
  const log: LogLine[] = []
  const written = capture(child, (line) => {
    if (line.startsWith('{')) log.push(JSON.parse(line))
  })
  const ended = waitForExit(child)
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  const banner = () => (hasEnded ? `${written()}(ended)` : parseAddresses(written(), only))
  const isReady = () => banner() && (hasEnded || log.some(({ msg }) => msg === untilLogged))
  await until('the service is ready', isReady).catch((error) => {
    // Nobody else knows of it yet.
    process.kill(-pid, 'SIGKILL')
    throw error
  })
  const addresses = parseAddresses(written(), only)
  if (hasEnded || !addresses) throw new Error(`The service ended at its start:\n${written()}`)
  const anyAlive = () => {
    try {
      // The group of the processes that the service has started, and itself.
      return process.kill(-pid, 0)
    } catch {
      return false
    }
  }
  const killAll = async () => {
    if (anyAlive()) process.kill(-pid, 'SIGKILL')
    await ended
  }
  const stop = () => {
    child.kill('SIGTERM')
    return ended
  }
  return {
    ...(only ? addresses : await withPrismProxies(addresses)),
    pid,
    output: written,
    log,
    ended,
    anyAlive,
    killAll,
    stop,
  }
}

/** Calls the command line, and waits until it has ended. */
export async function runCommand(args: string[], environment: Environment) {
  const child = spawn(process.execPath, [main, ...args], { env: cleanEnvironment(environment) })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const { code } = await waitForExit(child)
  return { code, stdout, stderr }
}

/** The environment of this process without the settings that a test may have made for itself. */
export function cleanEnvironment(environment: Environment): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  return { PATH, HOME, NODE_ENV: 'test', ...environment }
}

/** Hears every line that the process writes; returns what it has written until now. */
export function capture(child: ChildProcess, onLine: (line: string) => void): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue
    createInterface({ input: stream }).on('line', (line) => {
      text += `${line}\n`
      onLine(line)
    })
  }
  return () => text
}

export function waitForExit(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    // Not 'exit', which may come before the last of what was written.
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}

export function parseAddresses(banner: string, only?: string): Addresses | undefined {
  const of = (name: string) => new RegExp(`^${name} +(http://[^/\\s]+)`, 'm').exec(banner)?.[1]
  const names = ['Dashboard', 'Execution API', 'Browser Context API', 'Management']
  const [dashboardUrl = '', executionUrl = '', browserContextUrl = '', managementUrl] = names.map(of)
  const isWhole = only !== undefined || (dashboardUrl && executionUrl && browserContextUrl)
  return managementUrl && isWhole ? { dashboardUrl, executionUrl, browserContextUrl, managementUrl } : undefined
}
