/** Runs the service in the process of the tests, and administers accounts and keys like an operator. */
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { type Service, startService } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { Environments } from '../../src/domain/accounts/environments.ts'
import { ApiKeys } from '../../src/domain/api-keys/api-keys.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { openStore } from '../../src/domain/installation.ts'
import { knownScopes } from '../../src/openapi/served-documents.ts'
import { Contents } from '../../src/storage/blobs/contents.ts'
import type { Store, Value } from '../../src/storage/store.ts'
import { readRoles } from '../../src/surfaces/roles.ts'
import { type Environment, newStorage, type Storage } from './service-storage.ts'
import { buildOnce } from './snapshots.ts'
import { waitLimits } from './timeouts.ts'

export { type Environment, removeDirectory, temporaryDirectory } from './service-storage.ts'

export const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const noWorker = fileURLToPath(new URL('../operations/idle-worker.ts', import.meta.url))

/** Workflows for tests: quick, blocking, failing, leaking a secret; and the example of the OpenAPI documents. */
export const testWorkflows = fileURLToPath(new URL('../operations/workflows', import.meta.url))

export type LogLine = Record<string, unknown> & { msg: string }

export interface TestKey {
  id: string
  value: string
}

export interface TestAccount {
  id: string
  /** The value of a key with full access. */
  key: string
  createKey(options?: { scopes?: string[]; workflowIds?: string[]; expiresAt?: number }): Promise<TestKey>
  deleteKey(id: string): Promise<void>
}

export interface Addresses {
  dashboardUrl: string
  executionUrl: string
  browserContextUrl: string
  managementUrl: string
}

export interface TestService extends Addresses, Omit<Storage, 'contents' | 'remove'> {
  /** Where the surfaces listen; their public addresses may differ. */
  listening: Service['listening']
  /** Log lines of the service at every level. The worker logs nothing. */
  log: LogLine[]
  createAccount: CreateAccount
  /** Adds an environment to the account, with a key. */
  createEnvironment(account: Pick<TestAccount, 'id'>): Promise<TestAccount>
  /** Queries the store directly, with `?` for each value. */
  rows<Row extends object>(sql: string, ...values: Value[]): Promise<Row[]>
  /** Changes the store directly. */
  change(sql: string, ...values: Value[]): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts the service in this process, at most one per test file: its worker inherits the environment of this process, which
 * this function changes. Without a worker, runs stay queued.
 */
export async function startTestService({
  worker = true,
  settings = {},
}: {
  worker?: boolean
  /** Settings of the service only, not of its worker. */
  settings?: Environment
} = {}): Promise<TestService> {
  const storage = await newStorage()
  Object.assign(process.env, serviceSettings(storage.settings), { LOG_LEVEL: 'silent' })
  const config = readConfig({ ...process.env, ...settings })
  const log: LogLine[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const service = await startService(config, logger, worker ? main : noWorker, readRoles([]), { build: buildOnce })
  const { store, ...administration } = await openAdministration(config)
  return {
    ...storage,
    ...service,
    log,
    createAccount: administration.createAccount,
    createEnvironment: administration.createEnvironment,
    rows: (sql, ...values) => store.read.all(sql, values),
    change: async (sql, ...values) => void (await store.write((tx) => tx.all(sql, values))),
    async stop() {
      await service.stop()
      await administration.close()
      await storage.remove()
    },
  }
}

/** Rate limit for tests that reach it. */
export const requestsPerMinute = 40
/** Limit of queued runs for tests that reach it. */
export const queuedRunsMax = 20
/** Limit of schedules for tests that reach it. */
export const schedulesMax = 20
/** Maximum size of a file for tests that reach it. */
export const fileMegabytesMax = 2
/** Storage quota for tests that reach it. */
export const storageQuotaMegabytes = 5

/** Returns settings with ports that the system chooses, so that several services can run at once. */
export function serviceSettings(storage: Environment): Environment {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  return { ...ports, ...storage, WORKFLOWS_DIR: testWorkflows, API_DEPLOYMENTS: 'on' }
}

export type CreateAccount = (options?: { scopesEnabled?: boolean }) => Promise<TestAccount>

/** Opens the store like an operator's command, while a service may be running. */
export async function openAdministration(
  config: Config,
): Promise<Pick<TestService, 'createAccount' | 'createEnvironment'> & { store: Store; close(): Promise<void> }> {
  const store = await openStore(config)
  const { close, ...administration } = administer(store)
  return {
    store,
    ...administration,
    async close() {
      await close()
      await store.close()
    },
  }
}

/** Creates accounts in the store of a service. Call `close` before the store is closed. */
export function administer(
  store: Store,
): Pick<TestService, 'createAccount' | 'createEnvironment'> & { close(): Promise<void> } {
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  const environments = new Environments(store, new Contents(store), 100)
  const withKeys = async (id: string): Promise<TestAccount> => {
    const userId = await accounts.findAdminId(id)
    const createKey = ({
      scopes = null,
      workflowIds = null,
      expiresAt = null,
    }: {
      scopes?: string[] | null
      workflowIds?: string[] | null
      expiresAt?: number | null
    } = {}) => apiKeys.create({ accountId: id, userId, name: 'test', scopes, workflowIds, expiresAt }, operator)
    const deleteKey = async (keyId: string) => {
      if (!(await apiKeys.delete(id, keyId, operator))) throw new Error(`There is no key ${keyId}.`)
    }
    return { id, key: (await createKey()).value, createKey, deleteKey }
  }
  return {
    async createAccount({ scopesEnabled = true } = {}) {
      return withKeys((await accounts.create({ name: 'Test', scopesEnabled })).id)
    },
    async createEnvironment({ id }) {
      const name = `e${(await environments.list(id)).length}`
      return withKeys((await environments.add(id, { name }, operator)).id)
    },
    close: () => apiKeys.close(),
  }
}

/** Polls `condition` until it returns a truthy value. The error after a timeout names `what`. */
export async function until<Result>(
  what: string,
  condition: () => Result | Promise<Result>,
): Promise<Exclude<Result, undefined | false | null | '' | 0>> {
  const deadline = performance.now() + waitLimits.timeout
  for (;;) {
    const result = await condition()
    if (result) return result as Exclude<Result, undefined | false | null | '' | 0>
    if (performance.now() > deadline) throw new Error(`Timed out waiting until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, waitLimits.interval))
  }
}
