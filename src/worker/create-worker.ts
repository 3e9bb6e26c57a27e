/** Composes a worker over an open store: the part of `app.ts` that tests of workers share. */
import type { Logger } from 'pino'
import { v7 as uuid } from 'uuid'
import type { Config } from '../config/config.ts'
import { StorageUsage } from '../domain/accounts/storage-usage.ts'
import { ContextVersions } from '../domain/browser-contexts/context-versions.ts'
import type { BulkWorker } from '../domain/bulk-actions/bulk-worker.ts'
import { DeploymentFiles } from '../domain/deployments/deployment-files.ts'
import { Deployments, type WorkflowRegistry } from '../domain/deployments/deployments.ts'
import { RunQueue } from '../domain/queue/run-queue.ts'
import { Workers } from '../domain/queue/workers.ts'
import { LiveViews } from '../domain/run-api/live-views.ts'
import type { RunObserver } from '../domain/runs/run-state.ts'
import type { Scheduler } from '../domain/schedules/scheduler.ts'
import { executorIdentity, type Identity } from '../domain/workflows/executor-identity.ts'
import { loadSecondsMax as defaultLoadSecondsMax } from '../domain/workflows/workflow.ts'
import { Maintenance } from '../maintenance/maintenance.ts'
import { type Retention, retentionFrom } from '../maintenance/retention.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import type { ObserveAttempt } from './attempt/attempt-observer.ts'
import { BrowserHost, type BrowserOptions } from './browser/browser-host.ts'
import { ExecutorPool } from './executors/executor-pool.ts'
import { PinnedExecutors } from './executors/pinned-executors.ts'
import { WorkerDeployments } from './executors/worker-deployments.ts'
import { LiveViewSenders } from './live-view/live-view-senders.ts'
import { Worker, type WorkerSettings } from './worker.ts'

export interface WorkerOptions extends Omit<WorkerSettings, 'id'> {
  /** Where packages with native code that deployments need are searched; they are deployed without such packages. */
  workflowsDirectory?: string | undefined
  memoryMegabytesMax: number
  /** The user that executors run as, if not the worker's. */
  identity?: Identity
  browser: BrowserOptions
  contextVersionsKept: number
  retention: Retention
  /** Concurrent runs of one account, over all workers; 0 for no limit. */
  accountConcurrency?: number
  loadSecondsMax?: number
  /** 0 for none. */
  storageQuotaMegabytes?: number
  observer?: RunObserver
  observers?: readonly ObserveAttempt[]
}

export function workerSettings(config: Config): WorkerOptions {
  return {
    workflowsDirectory: config.WORKFLOWS_DIR,
    slots: config.WORKER_SLOTS,
    leaseSeconds: config.LEASE_SECONDS,
    abortGraceSeconds: config.ABORT_GRACE_SECONDS,
    memoryMegabytesMax: config.WORKFLOW_MEMORY_MB,
    identity: executorIdentity(config),
    browser: { path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL },
    contextVersionsKept: config.BROWSER_CONTEXT_VERSIONS,
    retention: retentionFrom(config),
    accountConcurrency: config.ACCOUNT_CONCURRENCY,
    storageQuotaMegabytes: config.STORAGE_QUOTA_MB,
  }
}

/** @param onFatal called when the worker cannot execute runs any more. */
export function createWorker(
  store: Store,
  encryption: Encryption,
  options: WorkerOptions,
  parentLog: Logger,
  onFatal: (error: unknown) => void,
): Worker {
  const { workflowsDirectory, memoryMegabytesMax, identity, loadSecondsMax = defaultLoadSecondsMax } = options
  const { accountConcurrency = 0, observer, observers = [] } = options
  const { slots, leaseSeconds, abortGraceSeconds } = options
  const id = uuid()
  const log = parentLog.child({ workerId: id })
  const usage = new StorageUsage(store, options.storageQuotaMegabytes ?? 0, { measures: false })
  const pool = new ExecutorPool({ memoryMegabytesMax, loadSecondsMax, identity }, slots)
  const onError = (error: unknown) => log.warn({ err: error }, 'reading deployments failed; retrying')
  const deployments = new Deployments(store, onError)
  const deployed = new WorkerDeployments({
    deployments,
    files: new DeploymentFiles(identity),
    directory: workflowsDirectory,
    onRemoved: (deploymentId) => pool.discard(deploymentId),
  })
  const dependencies = {
    store,
    deployments,
    queue: new RunQueue(store, { accountConcurrency, observer: withFailureLog(log, observer) }),
    workers: new Workers(store),
    maintenance: createMaintenance(store, options.retention, log, observer, usage, deployments),
    usage,
    encryption,
    contextVersions: new ContextVersions(store, encryption, options.contextVersionsKept),
    executors: new PinnedExecutors({ deployments, deployed, pool, log }),
    browser: new BrowserHost(options.browser, log),
    liveViews: new LiveViewSenders(new LiveViews(store, encryption), log),
    observers,
    log,
    onFatal,
  }
  return new Worker(dependencies, { id, slots, leaseSeconds, abortGraceSeconds })
}

export function createMaintenance(
  store: Store,
  retention: Retention,
  log: Logger,
  observer?: RunObserver,
  usage?: StorageUsage,
  workflows?: WorkflowRegistry,
  scheduler?: Scheduler,
  bulkWorker?: BulkWorker,
): Maintenance {
  const onError = (error: unknown) => log.warn({ err: error }, 'maintenance failed; retrying')
  return new Maintenance(
    store,
    retention,
    onError,
    Date.now,
    withFailureLog(log, observer),
    usage,
    workflows,
    scheduler,
    bulkWorker,
  )
}

/** Logs each attempt that failed, timed out or lost its worker. Its message and stack are in the run only. */
function withFailureLog(log: Logger, observer?: RunObserver): RunObserver {
  return {
    finished: (run) => observer?.finished(run),
    leasesExpired: (count) => observer?.leasesExpired(count),
    attemptFailed(attempt) {
      log.warn(attempt, 'attempt failed')
      observer?.attemptFailed?.(attempt)
    },
  }
}
