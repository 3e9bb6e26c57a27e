/** Runs the service and its commands in separate processes on a new data directory. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { readConfig } from '../../src/config/config.ts'
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

/** A data directory, and the services and commands that run on it. */
export interface Installation {
  dataDirectory: string
  settings: Environment
  /** Returns all stored bytes, by file or store. */
  contents: Storage['contents']
  createAccount: CreateAccount
  /** Closes the connection of `createAccount`, after which only services have the store open. */
  closeAdministration(): Promise<void>
  /** Starts a service. Resolves when its worker is ready, or once it has logged the given message. */
  start(untilLogged?: string): Promise<ServiceProcess>
  /** Starts a process with some roles only. Addresses of other roles are empty. */
  startOnly(roles: string, changes?: Environment): Promise<ServiceProcess>
  /** Runs a command, and waits until it has ended. */
  runCommand(...args: string[]): ReturnType<typeof runCommand>
  /** Kills all processes, and removes the directory. */
  remove(): Promise<void>
}

export async function newInstallation(changes: Environment = {}): Promise<Installation> {
  const storage = await newStorage()
  const settings = { ...serviceSettings(storage.settings), ...changes }
  const administration = await openAdministration(readConfig(settings))
  let closing: Promise<void> | undefined
  const closeAdministration = () => {
    closing ??= administration.close()
    return closing
  }
  const starts: Promise<ServiceProcess>[] = []
  const spawnTracked = (...call: Parameters<typeof spawnService>) => {
    const start = spawnService(...call)
    starts.push(start)
    return start
  }
  return {
    dataDirectory: storage.dataDirectory,
    settings,
    contents: storage.contents,
    createAccount: administration.createAccount,
    closeAdministration,
    start: (untilLogged) => spawnTracked(settings, untilLogged),
    startOnly(roles, changes) {
      const untilLogged = roles.includes('worker') ? 'worker ready' : 'service ready'
      return spawnTracked({ ...settings, ...changes }, untilLogged, roles)
    },
    runCommand: (...args) => runCommand(args, settings),
    async remove() {
      await closeAdministration()
      // Includes processes that are still starting after another one has failed.
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

/** The service with its worker, like `npm start`, in a separate process group. */
export interface ServiceProcess extends Addresses {
  pid: number
  /** Everything that the service and its worker have printed. */
  output(): string
  log: LogLine[]
  ended: Promise<Exit>
  /** Whether any process of the service, its worker or its runs is running. */
  anyAlive(): boolean
  /** Kills every process of the service. */
  killAll(): Promise<void>
  /** Stops the service with SIGTERM, and waits until it has ended. */
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
  const output = capture(child, (line) => {
    if (line.startsWith('{')) log.push(JSON.parse(line))
  })
  const ended = waitForExit(child)
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  const banner = () => (hasEnded ? `${output()}(ended)` : parseAddresses(output(), only))
  const isReady = () => banner() && (hasEnded || log.some(({ msg }) => msg === untilLogged))
  await until('the service is ready', isReady).catch((error) => {
    // The caller does not have the process yet.
    process.kill(-pid, 'SIGKILL')
    throw error
  })
  const addresses = parseAddresses(output(), only)
  if (hasEnded || !addresses) throw new Error(`The service ended during startup:\n${output()}`)
  const anyAlive = () => {
    try {
      // The process group: the service and everything it has started.
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
    output,
    log,
    ended,
    anyAlive,
    killAll,
    stop,
  }
}

/** Runs a command, and waits until it has ended. */
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

/** Returns a minimal environment, without settings that tests have made in this process. */
export function cleanEnvironment(environment: Environment): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  return { PATH, HOME, NODE_ENV: 'test', ...environment }
}

/** Calls `onLine` for each line that the process prints. Returns a function for the output so far. */
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
    // 'exit' may precede the last output.
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}

export function parseAddresses(banner: string, only?: string): Addresses | undefined {
  const find = (name: string) => new RegExp(`^${name} +(http://[^/\\s]+)`, 'm').exec(banner)?.[1]
  const names = ['Dashboard', 'Execution API', 'Browser Context API', 'Management']
  const [dashboardUrl = '', executionUrl = '', browserContextUrl = '', managementUrl] = names.map(find)
  const isComplete = only !== undefined || (dashboardUrl && executionUrl && browserContextUrl)
  return managementUrl && isComplete ? { dashboardUrl, executionUrl, browserContextUrl, managementUrl } : undefined
}
