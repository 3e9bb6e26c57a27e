/** Runs the real service for tests in their own process, and does what its operator does: makes accounts and keys. */
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { startService } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { ApiKeys } from '../../src/domain/api-keys/api-keys.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { openStore } from '../../src/domain/installation.ts'
import { knownScopes } from '../../src/openapi/served-documents.ts'
import type { Store, Value } from '../../src/storage/store.ts'
import { type Environment, newStorage, type Storage } from './service-storage.ts'
import { waitLimits } from './timeouts.ts'

export { type Environment, removeDirectory, temporaryDirectory } from './service-storage.ts'

export const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const noWorker = fileURLToPath(new URL('../operations/no-worker.ts', import.meta.url))

/** Workflows that are quick, hold, fail, or say a secret, as tests need it; and the example that the documents name. */
export const testWorkflows = fileURLToPath(new URL('../operations/workflows', import.meta.url))

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

export interface TestService extends Addresses, Omit<Storage, 'contents' | 'remove'> {
  /** What the service has logged, at every level; a worker logs nothing. */
  log: LogLine[]
  createAccount: CreateAccount
  /** Reads from the store as nobody else does; `?` stands for each value. */
  rows<Row extends object>(sql: string, ...values: Value[]): Promise<Row[]>
  /** Writes to the store as nobody else does. */
  change(sql: string, ...values: Value[]): Promise<void>
  stop(): Promise<void>
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
  const storage = await newStorage()
  Object.assign(process.env, serviceSettings(storage.settings), { LOG_LEVEL: 'silent' })
  const config = readConfig({ ...process.env, ...settings })
  const log: LogLine[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const service = await startService(config, logger, worker ? main : noWorker)
  const { store, ...administration } = await openAdministration(config)
  return {
    ...storage,
    ...service,
    log,
    createAccount: administration.createAccount,
    rows: (sql, ...values) => store.read.all(sql, values),
    change: async (sql, ...values) => void (await store.write((tx) => tx.all(sql, values))),
    async stop() {
      await service.stop()
      await administration.close()
      await storage.remove()
    },
  }
}

/** How many requests a key may make where a test reaches the limit. */
export const requestsPerMinute = 100
/** How many runs an account may have queued where a test reaches the cap. */
export const queuedRunsMax = 50

/** On ports that the system chooses, so that any number of services run at the same time. */
export function serviceSettings(storage: Environment): Environment {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  return { ...ports, ...storage, WORKFLOWS_DIR: testWorkflows }
}

export type CreateAccount = (options?: { scopesEnabled?: boolean }) => Promise<TestAccount>

/** A store of its own, as the operator's commands have beside a service that runs. */
export async function openAdministration(
  config: Config,
): Promise<{ store: Store; createAccount: CreateAccount; close(): Promise<void> }> {
  const store = await openStore(config)
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  return {
    store,
    async createAccount({ scopesEnabled = true } = {}) {
      const { id } = await accounts.create({ name: 'Test', scopesEnabled })
      const userId = await accounts.findOwnerId(id)
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

/** Looks again and again until `condition` gives something; fails with what was waited for. */
export async function until<Result>(
  what: string,
  condition: () => Result | Promise<Result>,
): Promise<Exclude<Result, undefined | false | null | '' | 0>> {
  const deadline = performance.now() + waitLimits.timeout
  for (;;) {
    const result = await condition()
    if (result) return result as Exclude<Result, undefined | false | null | '' | 0>
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, waitLimits.interval))
  }
}
