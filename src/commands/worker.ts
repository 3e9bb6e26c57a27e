/** `npm run worker` and `npm start -- --only worker`: executes runs until it is told to stop. */
import type { Logger } from 'pino'
import { type Config, readConfig } from '../config.ts'
import { encryptedColumns } from '../domain/encrypted-columns.ts'
import { openEncryption, openStore } from '../domain/installation.ts'
import type { Claim } from '../domain/runs/claim.ts'
import { Workers } from '../domain/runs/workers.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import { retentionOf } from '../maintenance/retention.ts'
import type { Store } from '../storage/store.ts'
import { Metrics } from '../surfaces/management/metrics.ts'
import { openLog } from '../telemetry/log.ts'
import { openTracing } from '../telemetry/tracing.ts'
import { AttemptSpans } from '../worker/attempt-spans.ts'
import { findBrowser } from '../worker/browser/find-browser.ts'
import { sendToParent } from '../worker/parent-channel.ts'
import { Worker } from '../worker/worker.ts'
import { onStopSignal } from './stop-signal.ts'

/**
 * @param managed whether it has a management address: the worker beside a service must not, whose settings it shares.
 */
export async function worker({ managed = false } = {}): Promise<void> {
  const config = readConfig(process.env)
  const log = openLog(config)
  const store = await openStore(config)
  const tracing = await openTracing(config, log)
  const metrics = new Metrics('worker', store)
  sendToParent(() => metrics.registry.getMetricsAsJSON())
  const options = {
    workflowsDirectory: config.WORKFLOWS_DIR,
    slots: config.WORKER_SLOTS,
    leaseSeconds: config.LEASE_SECONDS,
    abortGraceSeconds: config.ABORT_GRACE_SECONDS,
    memoryMegabytesMax: config.WORKFLOW_MEMORY_MB,
    browser: { path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL },
    contextVersionsKept: config.BROWSER_CONTEXT_VERSIONS,
    retention: retentionOf(config),
    accountConcurrency: config.ACCOUNT_CONCURRENCY,
    observer: metrics.runs,
    watches: [metrics.registerAttemptMetrics(), ...(tracing ? [(claim: Claim) => new AttemptSpans(claim)] : [])],
  }
  const onFatal = (error: unknown) => {
    log.fatal({ err: error }, 'the worker cannot execute runs any more')
    log.flush()
    process.exit(1)
  }
  // Runs that need no browser go on without; whoever has set it wants to know before one fails.
  if (config.BROWSER_PATH) findBrowser(config.BROWSER_PATH).catch((error: Error) => log.warn(error.message))
  const running = new Worker(store, await openEncryption(config, store, encryptedColumns), options, log, onFatal)
  let workflows: readonly Workflow[] = []
  // Before the worker begins: one whose port is in use ends without having been among those that are alive.
  const management = managed
    ? await startManagement({ config, store, log, metrics, workflows: () => workflows })
    : undefined
  const started = running.start()
  onStopSignal(async () => {
    management?.readiness.stop()
    await started
    await running.stop(config.SHUTDOWN_SECONDS)
    await management?.listener.stop(0)
    await store.close()
    await tracing?.close()
    log.flush()
  })
  workflows = await started
  metrics.initializeWorkflows(workflows)
  if (!management) return
  management.readiness.start()
  // For people; the log goes to standard output.
  process.stderr.write(`Management           ${management.listener.url}/readyz\n`)
}

interface Managed {
  config: Config
  store: Store
  log: Logger
  metrics: Metrics
  workflows: () => readonly Workflow[]
}

/** Loaded where it is wanted alone: it takes a worker some megabytes. */
async function startManagement({ config, store, log, metrics, workflows }: Managed) {
  const [{ listen }, { build }, { managementApp }, { Readiness }] = await Promise.all([
    import('../contract/listener.ts'),
    import('../surfaces/management/build.ts'),
    import('../surfaces/management/management.ts'),
    import('../surfaces/management/readiness.ts'),
  ])
  const readiness = new Readiness(store, log)
  const ready = () => readiness.check()
  const { HOST: host, MANAGEMENT_PORT: port, ACCOUNT_CONCURRENCY: accountConcurrency } = config
  const { read: tx } = store
  metrics.registerInstallationMetrics({
    ready,
    build,
    tx: tx,
    workers: new Workers(store),
    workflows,
    accountConcurrency,
  })
  const app = managementApp({ metrics: () => metrics.text(), ready })
  return { readiness, listener: await listen(app, { host, port, name: 'MANAGEMENT_PORT' }) }
}
