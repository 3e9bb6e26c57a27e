/** Runs the real service for tests in their own process, and does what its operator does: makes accounts and keys. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

export const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const noWorker = fileURLToPath(new URL('../contract/no-worker.ts', import.meta.url))

/** Workflows that are quick, hold, fail, or say a secret, as tests need it; and the example that the documents name. */
export const testWorkflows = fileURLToPath(new URL('../contract/workflows', import.meta.url))

export type Environment = Record<string, string>
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
export async function startTestService({
  worker = true,
  settings = {},
}: {
  worker?: boolean
  /** Of the service alone; its worker does not get them. */
  settings?: Environment
} = {}): Promise<TestService> {
  const dataDirectory = temporaryDirectory()
  Object.assign(process.env, settingsOf(dataDirectory), { LOG_LEVEL: 'silent' })
  const config = readConfig({ ...process.env, ...settings })
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

/** How many requests a key may make where a test reaches the limit. */
export const requestsPerMinute = 100

/** On ports that the system chooses, so that any number of services run at the same time. */
export function settingsOf(dataDirectory: string): Environment {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  return { ...ports, DATA_DIR: dataDirectory, WORKFLOWS_DIR: testWorkflows }
}

export type CreateAccount = (options?: { scopesEnabled?: boolean }) => Promise<TestAccount>

/** A store of its own, as the operator's commands have beside a service that runs. */
export async function openAdministration(
  config: Config,
): Promise<{ createAccount: CreateAccount; close(): Promise<void> }> {
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
