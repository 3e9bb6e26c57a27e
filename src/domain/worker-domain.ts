/** Creates the domain objects that a worker needs. A service has them too, with those of `create-domain.ts`. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { BlobStore } from '../storage/blobs/blob-store.ts'
import { Contents } from '../storage/blobs/contents.ts'
import type { Encryption } from '../storage/encryption.ts'
import { dayMilliseconds } from '../storage/purge-target.ts'
import type { Store } from '../storage/store.ts'
import { DeclaredValuesReader } from './account-values/declared-values.ts'
import { createSecretStore, type SecretStoreSetting } from './account-values/secret-stores.ts'
import { StorageUsage, type UsageOptions } from './accounts/storage-usage.ts'
import { ContextVersions } from './browser-contexts/context-versions.ts'
import { RunContexts } from './browser-contexts/run-contexts.ts'
import type { WorkflowRegistry } from './deployments/deployments.ts'
import { Files } from './files/files.ts'
import { RunQueue } from './queue/run-queue.ts'
import { WaitingRunsLimit } from './queue/waits.ts'
import { Workers } from './queue/workers.ts'
import { LiveViews } from './run-api/live-views.ts'
import type { RunObserver } from './runs/run-state.ts'

type DomainSetting =
  | 'ACCOUNT_CONCURRENCY'
  | 'BROWSER_CONTEXT_VERSIONS'
  | 'FILE_RETENTION_DAYS'
  | 'STORAGE_QUOTA_MB'
  | 'WAITING_RUNS_MAX'
  | SecretStoreSetting

export interface WorkerDomainOptions<Setting extends keyof Config = never> {
  config: Pick<Config, DomainSetting | Setting>
  store: Store
  encryption: Encryption
  /** For runs that workflows call. */
  workflows: WorkflowRegistry
  log: Logger
  observer?: RunObserver | undefined
  now?: () => number
  /** For contents that are too large for rows; without it, all are in rows. */
  blobs?: BlobStore | undefined
  /** How this process measures what accounts store. */
  measuring?: Omit<UsageOptions, 'now'>
}

export type WorkerDomain = ReturnType<typeof createWorkerDomain>

export function createWorkerDomain(options: WorkerDomainOptions) {
  const { config, store, encryption, workflows, log, now = Date.now, blobs, measuring } = options
  const observer = withFailureLog(log, options.observer)
  const usage = new StorageUsage(store, config.STORAGE_QUOTA_MB, { ...measuring, now })
  const contextVersions = new ContextVersions(store, encryption, config.BROWSER_CONTEXT_VERSIONS, usage)
  const contents = new Contents(store, blobs, now)
  const fileRetentionMilliseconds = config.FILE_RETENTION_DAYS * dayMilliseconds
  const waitingRuns = new WaitingRunsLimit(config.WAITING_RUNS_MAX)
  const waits = { encryption, workflows, waitingRuns, fileRetentionMilliseconds }
  return {
    store,
    encryption,
    observer,
    now,
    usage,
    fileRetentionMilliseconds,
    contents,
    files: new Files({ store, contents, usage, retentionDays: config.FILE_RETENTION_DAYS, now }),
    queue: new RunQueue(store, { accountConcurrency: config.ACCOUNT_CONCURRENCY, now, observer, contents, waits }),
    workers: new Workers(store, now),
    declaredValues: new DeclaredValuesReader(store, encryption, createSecretStore(config)),
    contextVersions,
    runContexts: new RunContexts(contextVersions, usage),
    liveViews: new LiveViews(store, encryption, now),
  }
}

/** Logs each attempt that failed, timed out or lost its worker. Its message and stack are in the run only. */
function withFailureLog(log: Logger, observer: RunObserver | undefined): RunObserver {
  return {
    finished: (run) => observer?.finished(run),
    leasesExpired: (count) => observer?.leasesExpired(count),
    maintains: (isOwner) => observer?.maintains?.(isOwner),
    signedOut: (run) => observer?.signedOut?.(run),
    signInEnded: (signIn) => observer?.signInEnded?.(signIn),
    attemptFailed(attempt) {
      log.warn(attempt, 'attempt failed')
      observer?.attemptFailed?.(attempt)
    },
  }
}
