/** Composes a worker over an open store: the part of `app.ts` that tests of workers share. */
import type { Logger } from 'pino'
import { v7 as uuid } from 'uuid'
import type { Config } from '../config/config.ts'
import { Deployments } from '../domain/deployments/deployments.ts'
import type { Claim } from '../domain/queue/attempts.ts'
import type { RunObserver } from '../domain/runs/run-state.ts'
import { createWorkerDomain } from '../domain/worker-domain.ts'
import type { Identity } from '../domain/workflows/executor-identity.ts'
import { ExecutorUsers } from '../domain/workflows/executor-users.ts'
import { loadSecondsMax as defaultLoadSecondsMax } from '../domain/workflows/workflow.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import { Maintenance } from '../maintenance/maintenance.ts'
import { retentionFrom } from '../maintenance/retention.ts'
import type { BlobStore } from '../storage/blobs/blob-store.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import { AttemptFiles, storedFiles } from './attempt/attempt-files.ts'
import type { ObserveAttempt } from './attempt/attempt-observer.ts'
import { BrowserHost } from './browser/browser-host.ts'
import { Executors, type ProcessCount } from './executors/executors.ts'
import { WorkerDeployments } from './executors/worker-deployments.ts'
import { LiveViewSenders, storedLiveViews } from './live-view/live-view-senders.ts'
import { Worker } from './worker.ts'

export interface WorkerOptions {
  config: Config
  store: Store
  encryption: Encryption
  /** For contents that are too large for rows. */
  blobs?: BlobStore | undefined
  log: Logger
  /** The user that executors run as, if not the worker's. */
  identity?: Identity
  loadSecondsMax?: number
  observer?: RunObserver
  observers?: readonly ObserveAttempt[]
  /** Called with a function that counts the processes of the worker. */
  observeProcesses?(count: () => ProcessCount): void
  /** Called when the worker cannot execute runs any more. */
  onFatal(error: unknown): void
}

export function createWorker({
  config,
  store,
  encryption,
  blobs,
  log: parentLog,
  identity,
  loadSecondsMax = defaultLoadSecondsMax,
  observer,
  observers = [],
  observeProcesses,
  onFatal,
}: WorkerOptions): Worker {
  const id = uuid()
  const log = parentLog.child({ workerId: id })
  const onError = (error: unknown) => log.warn({ err: error }, 'reading deployments failed; retrying')
  const deployments = new Deployments(store, onError)
  const shared = { config, store, encryption, blobs, workflows: deployments, log, observer }
  const domain = createWorkerDomain({ ...shared, measuring: { measures: false } })
  const slots = config.WORKER_SLOTS
  const users = config.EXECUTOR_UIDS && new ExecutorUsers(config.EXECUTOR_UIDS)
  const deployed = new WorkerDeployments({ deployments, identity, users, directory: config.WORKFLOWS_DIR, log })
  const { WORKFLOW_MEMORY_MB: memoryMegabytesMax, IDLE_PROCESSES_MB: idleMegabytesMax } = config
  const processes = { memoryMegabytesMax, idleMegabytesMax, loadSecondsMax, identity, users }
  const executors = new Executors(deployed, processes, slots, log)
  observeProcesses?.(() => executors.count())
  const dependencies = {
    ...domain,
    deployments,
    readDeclared: (claim: Claim, workflows: Workflows) => domain.declaredValues.read(claim, workflows),
    files: new AttemptFiles({ source: storedFiles(domain.files), encryption }),
    maintenance: new Maintenance({ ...domain, workflows: deployments, retention: retentionFrom(config), log }),
    executors,
    browser: new BrowserHost({ path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL }, log),
    liveViews: new LiveViewSenders(storedLiveViews(domain.liveViews), log),
    observers,
    log,
    onFatal,
  }
  return new Worker(dependencies, {
    id,
    slots,
    leaseSeconds: config.LEASE_SECONDS,
    abortGraceSeconds: config.ABORT_GRACE_SECONDS,
  })
}
