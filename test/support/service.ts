/**
 * Runs the real service for tests, in this process or in processes of its own, and does what its operator does with
 * it: makes accounts and keys, calls commands, ends it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { Accounts } from '../../src/accounts/accounts.ts'
import { ApiKeys } from '../../src/api-keys/api-keys.ts'
import { startService } from '../../src/app.ts'
import { operator } from '../../src/audit-log/audit-log.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { knownScopes } from '../../src/documents.ts'
import { openStore } from '../../src/installation.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const noWorker = fileURLToPath(new URL('../contract/no-worker.ts', import.meta.url))

/** Workflows that are quick, hold, fail, or say a secret, as tests need it; and the example that the documents name. */
export const testWorkflows = fileURLToPath(new URL('../contract/workflows', import.meta.url))

type Environment = Record<string, string>
export type LogLine = Record<string, unknown> & { msg: string }

export interface TestKey {
  id: string
  value: string
}

export interface TestAccount {
  id: string
  /** The value of a key that may do everything. */
  key: string
  createKey(options?: { scopes?: string[]; expiresAt?: number }): Promise<TestKey>
  deleteKey(id: string): Promise<void>
}

export interface Addresses {
  dashboardUrl: string
  executionUrl: string
  browserContextUrl: string
  managementUrl: string
}

export interface TestService extends Addresses {
  dataDirectory: string
  /** What the service has logged, at every level; a worker logs nothing. */
  log: LogLine[]
  /** A connection of the tests' own to the store. */
  database: DatabaseSync
  createAccount: CreateAccount
  /** Does `act` while the store's file cannot be read as a database. */
  whileUnreadable<Result>(act: () => Promise<Result>): Promise<Result>
  stop(): Promise<void>
}

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'execution-service-'))
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

/**
 * Starts the service in this process, one for each test file: its worker takes its settings from the environment of
 * this process, which is changed for it. Without a worker, runs stay queued.
 */
export async function startTestService({ worker = true }: { worker?: boolean } = {}): Promise<TestService> {
  const dataDirectory = temporaryDirectory()
  Object.assign(process.env, settingsOf(dataDirectory), { LOG_LEVEL: 'silent' })
  const config = readConfig(process.env)
  const log: LogLine[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const service = await startService(config, logger, worker ? main : noWorker)
  const administration = await openAdministration(config)
  const path = join(dataDirectory, 'service.db')
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: 5000 })
  // Not closed before the service stops: closing any descriptor of a file ends all locks that the process has on it.
  const file = openSync(path, 'r+')
  return {
    ...service,
    dataDirectory,
    log,
    database,
    createAccount: administration.createAccount,
    whileUnreadable: (act) => whileUnreadable(database, file, act),
    async stop() {
      await service.stop()
      await administration.close()
      database.close()
      closeSync(file)
      removeDirectory(dataDirectory)
    },
  }
}

/** On ports that the system chooses, so that any number of services run at the same time. */
export function settingsOf(dataDirectory: string): Environment {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  return { ...ports, DATA_DIR: dataDirectory, WORKFLOWS_DIR: testWorkflows }
}

type CreateAccount = (options?: { scopesEnabled?: boolean }) => Promise<TestAccount>

/** A store of its own, as the operator's commands have beside a service that runs. */
async function openAdministration(config: Config): Promise<{ createAccount: CreateAccount; close(): Promise<void> }> {
  const store = await openStore(config)
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  return {
    async createAccount({ scopesEnabled = true } = {}) {
      const { id } = await accounts.create({ name: 'Test', scopesEnabled })
      const userId = await accounts.ownerOf(id)
      const createKey = ({
        scopes = null,
        expiresAt = null,
      }: {
        scopes?: string[] | null
        expiresAt?: number | null
      } = {}) => apiKeys.create({ accountId: id, userId, name: 'test', scopes, expiresAt }, operator)
      const deleteKey = async (keyId: string) => {
        if (!(await apiKeys.delete(id, keyId, operator))) throw new Error(`There is no key ${keyId}.`)
      }
      return { id, key: (await createKey()).value, createKey, deleteKey }
    },
    async close() {
      await apiKeys.close()
      await store.close()
    },
  }
}

const headerBytes = 100

/**
 * Overwrites the header of the database's file. Its connections notice because a commit before has made what they
 * remember of the file stale, and recover because a commit after it does so again; nobody writes in between.
 */
async function whileUnreadable<Result>(
  database: DatabaseSync,
  file: number,
  act: () => Promise<Result>,
): Promise<Result> {
  const header = Buffer.alloc(headerBytes)
  await until('the log is in the database', () => {
    database.exec('PRAGMA user_version = 1')
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0
  })
  database.exec('BEGIN IMMEDIATE')
  readSync(file, header, 0, headerBytes, 0)
  writeSync(file, Buffer.alloc(headerBytes, '?'), 0, headerBytes, 0)
  try {
    return await act()
  } finally {
    writeSync(file, header, 0, headerBytes, 0)
    database.exec('PRAGMA user_version = 2; COMMIT')
  }
}

/** A data directory of its own, and the services and commands that are started on it. */
export interface Installation {
  dataDirectory: string
  settings: Environment
  createAccount: CreateAccount
  /** Resolves when the service serves and its worker is ready, or as soon as it has logged something else. */
  start(untilLogged?: string): Promise<ServiceProcess>
  /** Calls the command line, and waits until it has ended. */
  command(...args: string[]): ReturnType<typeof command>
  /** Ends everything, and removes the directory. */
  remove(): Promise<void>
}

export async function newInstallation(changes: Environment = {}): Promise<Installation> {
  const dataDirectory = temporaryDirectory()
  const settings = { ...settingsOf(dataDirectory), ...changes }
  const administration = await openAdministration(readConfig(settings))
  const services: ServiceProcess[] = []
  return {
    dataDirectory,
    settings,
    createAccount: administration.createAccount,
    async start(untilLogged) {
      const service = await spawnService(settings, untilLogged)
      services.push(service)
      return service
    },
    command: (...args) => command(args, settings),
    async remove() {
      await administration.close()
      await Promise.all(services.map((service) => service.killAll()))
      removeDirectory(dataDirectory)
    },
  }
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
}

/** The service as `npm start` runs it, with its worker, in a process group of its own. */
export interface ServiceProcess extends Addresses {
  pid: number
  /** Everything that the service and its worker have written. */
  output(): string
  log: LogLine[]
  ended: Promise<Ended>
  /** Whether any process of the service, its worker or its runs exists. */
  anyAlive(): boolean
  /** Ends every process of the service at the same moment. */
  killAll(): Promise<void>
  /** Tells the service to stop, and waits until it has. */
  stop(): Promise<Ended>
}

async function spawnService(environment: Environment, untilLogged = 'worker ready'): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [main, 'start'], { env: withoutOwn(environment), detached: true })
  const pid = child.pid as number
  const log: LogLine[] = []
  const written = capture(child, (line) => {
    if (line.startsWith('{')) log.push(JSON.parse(line))
  })
  const ended = endOf(child)
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  const banner = () => (hasEnded ? `${written()}(ended)` : addressesIn(written()))
  await until('the service is ready', () => banner() && (hasEnded || log.some(({ msg }) => msg === untilLogged)))
  const addresses = addressesIn(written())
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
  return { ...addresses, pid, output: written, log, ended, anyAlive, killAll, stop }
}

/** Calls the command line, and waits until it has ended. */
export async function command(args: string[], environment: Environment) {
  const child = spawn(process.execPath, [main, ...args], { env: withoutOwn(environment) })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const { code } = await endOf(child)
  return { code, stdout, stderr }
}

/** The environment of this process without the settings that a test may have made for itself. */
function withoutOwn(environment: Environment): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  return { PATH, HOME, NODE_ENV: 'test', ...environment }
}

function capture(child: ChildProcess, onLine: (line: string) => void): () => string {
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

function endOf(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    // Not 'exit', which may come before the last of what was written.
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}

function addressesIn(banner: string): Addresses | undefined {
  const of = (name: string) => new RegExp(`^${name} +(http://[^/\\s]+)`, 'm').exec(banner)?.[1]
  const names = ['Dashboard', 'Execution API', 'Browser Context API', 'Management']
  const [dashboardUrl, executionUrl, browserContextUrl, managementUrl] = names.map(of)
  return dashboardUrl && executionUrl && browserContextUrl && managementUrl
    ? { dashboardUrl, executionUrl, browserContextUrl, managementUrl }
    : undefined
}

const untilMilliseconds = 15_000

/** Looks again and again until `condition` gives something; fails with what was waited for. */
export async function until<Result>(
  what: string,
  condition: () => Result | Promise<Result>,
): Promise<Exclude<Result, undefined | false | null | '' | 0>> {
  const deadline = performance.now() + untilMilliseconds
  for (;;) {
    const result = await condition()
    if (result) return result as Exclude<Result, undefined | false | null | '' | 0>
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
