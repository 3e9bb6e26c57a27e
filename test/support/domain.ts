/** Fixtures for tests of the domain: a store, the domain's services, accounts, workflows and runs. */
import { hash } from 'node:crypto'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import type { TestContext } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { Principal } from '../../src/domain/api-keys/api-key.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { createDomain } from '../../src/domain/create-domain.ts'
import { Deployments, type WorkflowRegistry } from '../../src/domain/deployments/deployments.ts'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'
import type { QueueRequest } from '../../src/domain/queue/queue-request.ts'
import type { RunObserver } from '../../src/domain/runs/run-state.ts'
import type { Workflow } from '../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { Maintenance } from '../../src/maintenance/maintenance.ts'
import { type Retention, retentionFrom } from '../../src/maintenance/retention.ts'
import type { BlobStore } from '../../src/storage/blobs/blob-store.ts'
import { Encryption, FixedKeys } from '../../src/storage/encryption.ts'
import type { Store } from '../../src/storage/store.ts'
import { workflow } from './snapshots.ts'
import { type LentStore, type StoreKind, sqlite } from './store-kinds.ts'

export { workflow } from './snapshots.ts'

/** The part of a test's context that helpers need: cleanup after the test. */
export type Test = Pick<TestContext, 'onTestFinished'>

/** Returns an empty directory, which is removed with the test. */
export const newDirectory = (test: Test): Promise<string> => newStoreLocation(test, sqlite, { empty: true })

/** Creates a location for a store: an empty directory for SQLite, a database for PostgreSQL. It is removed with the test. */
export async function newStoreLocation(
  test: Test,
  kind: StoreKind = sqlite,
  options: Parameters<StoreKind['prepare']>[0] = {},
): Promise<string> {
  const location = await kind.prepare(options)
  test.onTestFinished(() => kind.remove(location))
  return location
}

/** Opens a store that is closed with the test. */
export async function openStore(test: Test, location: string, kind: StoreKind = sqlite): Promise<Store> {
  const store = await kind.open(location)
  test.onTestFinished(() => store.close())
  return store
}

async function lendStore(test: Test, kind: StoreKind): Promise<LentStore> {
  const lent = await kind.lend()
  test.onTestFinished(() => lent.giveBack())
  return lent
}

/** The default retention. */
export const retention: Retention = retentionFrom(readConfig({}))

export interface DomainOptions {
  kind?: StoreKind
  /** Location of the store; default a new one. */
  location?: string
  workflows?: readonly Workflow[]
  /** Deployed for the installation, instead of `workflows` that are in no deployment. */
  snapshot?: Snapshot
  now?: () => number
  /** Number of versions kept of each browser context. */
  versionsKept?: number
  accountConcurrency?: number
  retention?: Retention
  /** Limit of queued runs per account; default none. */
  queuedRunsMax?: number
  /** Limit of schedules per account; default none. */
  schedulesMax?: number
  observer?: RunObserver
  /** What is deployed; default `workflows`. */
  registry?: WorkflowRegistry
  /** Default none. */
  storageQuotaMegabytes?: number
  /** For contents above 1 MiB; default none. */
  blobs?: BlobStore
  /** Encryption keys, the current one first; default one that belongs to the location. */
  encryptionKeys?: readonly Buffer[]
}

/** Cached, since compiling its schemas takes longer than opening a store. */
let anything: Workflows | undefined

function createWorkflows(listed: readonly Workflow[] | undefined): Workflows {
  if (listed) return new Workflows(listed)
  anything ??= new Workflows([workflow()])
  return anything
}

/** Makes the snapshot current for the installation, and returns its workflows. */
export async function deploySnapshot(store: Store, snapshot: Snapshot, directory = '/'): Promise<Workflows> {
  const deployments = new Deployments(store)
  const { deployment } = await deployments.deploy(snapshot, { accountId: null, by: operator, directory })
  return new Workflows(deployment.workflows, deployment.id)
}

export type Domain = Awaited<ReturnType<typeof openDomain>>

/** Opens the domain on a store. Two domains on one store behave like two processes of an installation. */
export async function openDomain(test: Test, options: DomainOptions = {}) {
  const { kind = sqlite, now = Date.now } = options
  const { location, store } = options.location
    ? { location: options.location, store: await openStore(test, options.location, kind) }
    : await lendStore(test, kind)
  const workflows = options.snapshot
    ? await deploySnapshot(store, options.snapshot)
    : createWorkflows(options.workflows)
  const encryption = new Encryption(new FixedKeys(options.encryptionKeys ?? [hash('sha256', location, 'buffer')]))
  const fail = (error: unknown) => {
    throw error
  }
  const config = {
    ...readConfig({}),
    ACCOUNT_CONCURRENCY: options.accountConcurrency ?? 0,
    QUEUED_RUNS_MAX: options.queuedRunsMax ?? 0,
    SCHEDULES_MAX: options.schedulesMax ?? 0,
    STORAGE_QUOTA_MB: options.storageQuotaMegabytes ?? 0,
    BROWSER_CONTEXT_VERSIONS: options.versionsKept ?? 5,
  }
  const { workflows: registry, ...domain } = createDomain({
    ...{ config, store, encryption, now, observer: options.observer, blobs: options.blobs },
    workflows: options.registry ?? { current: () => workflows },
    artifactRetentionDays: retention.artifacts,
    log: pino({ level: 'silent' }),
    measuring: { measureMilliseconds: Number.POSITIVE_INFINITY },
  })
  test.onTestFinished(async () => {
    domain.feed.close()
    await domain.apiKeys.close()
    await domain.refusals.close()
  })
  const maintenance = new Maintenance({
    ...{ ...domain, workflows: registry, retention: options.retention ?? retention },
    log: { warn: fail },
  })
  return { ...domain, location, workflows, maintenance }
}

/** Creates an account with its owner and an API key. */
export async function newAccount({ accounts, apiKeys }: Domain, { scopesEnabled = false } = {}) {
  const { id: accountId } = await accounts.create({ name: 'Test', scopesEnabled })
  const userId = await accounts.findAdminId(accountId)
  const key = await apiKeys.create({ accountId, userId, name: 'Test', scopes: null, expiresAt: null }, operator)
  const principal: Principal = { accountId, apiKeyId: key.id }
  return { accountId, userId, key, principal }
}

/** Adds a user to the account, and returns the id. */
export async function newUser({ store }: Pick<Domain, 'store'>, accountId: string): Promise<string> {
  const id = uuid()
  const user = { id, account_id: accountId, name: 'Another', role: 'developer', created_at: Date.now() }
  await store.write(({ query }) => query.insertInto('users').values(user).execute())
  return id
}

/** Queues a run of the workflow `anything`, except for `changes`, and returns it. */
export async function queueRun({ runs }: Domain, principal: Principal, changes: Partial<QueueRequest> = {}) {
  const queued = await runs.queue(principal, { ...request, ...changes })
  if (queued.kind !== 'queued') throw new Error(`The run was not queued: ${JSON.stringify(queued)}`)
  return queued.run
}

/** A request without options. */
export const request: QueueRequest = {
  workflowId: 'anything',
  variables: {},
  idempotencyKey: undefined,
  delaySeconds: 0,
  expiresInSeconds: undefined,
  priority: 0,
}
