/** `npm run worker` and `npm start -- --only worker`: executes runs until it is told to stop. */
import { findBrowser } from '../browser/find-browser.ts'
import { type Config, readConfig } from '../config.ts'
import { openEncryption, openStore } from '../installation.ts'
import { openLog } from '../log.ts'
import { retentionOf } from '../runs/retention.ts'
import { sealedColumns } from '../sealed-columns.ts'
import type { Store } from '../storage/store.ts'
import { Worker } from '../worker/worker.ts'
import { onStopSignal } from './stop-signal.ts'

/**
 * @param managed whether it has a management address: the worker beside a service must not, whose settings it shares.
 */
export async function worker({ managed = false } = {}): Promise<void> {
  const config = readConfig(process.env)
  const log = openLog(config)
  const store = await openStore(config)
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
  }
  const onFatal = (error: unknown) => {
    log.fatal({ err: error }, 'the worker cannot execute runs any more')
    log.flush()
    process.exit(1)
  }
  // Runs that need no browser go on without; whoever has set it wants to know before one fails.
  if (config.BROWSER_PATH) findBrowser(config.BROWSER_PATH).catch((error: Error) => log.warn(error.message))
  const running = new Worker(store, await openEncryption(config, store, sealedColumns), options, log, onFatal)
  const started = running.start()
  const management = managed ? startManagement(config, store) : undefined
  onStopSignal(async () => {
    const managing = await management
    managing?.readiness.stop()
    await started
    await running.stop(config.SHUTDOWN_SECONDS)
    await managing?.listener.stop(0)
    await store.close()
    log.flush()
  })
  await started
  const managing = await management
  if (!managing) return
  managing.readiness.start()
  // For people; the log goes to standard output.
  process.stderr.write(`Management           ${managing.listener.url}/readyz\n`)
}

/** Loaded where it is wanted alone: it takes a worker some megabytes. */
async function startManagement(config: Config, store: Store) {
  const [{ listen }, { managementApp }, { Metrics }, { Readiness }] = await Promise.all([
    import('../contract/listener.ts'),
    import('../management/management.ts'),
    import('../management/metrics.ts'),
    import('../management/readiness.ts'),
  ])
  const readiness = new Readiness(store)
  const { registry } = new Metrics(store.read)
  const app = managementApp({ registry, ready: () => readiness.check() })
  const { HOST: host, MANAGEMENT_PORT: port } = config
  return { readiness, listener: await listen(app, { host, port, name: 'MANAGEMENT_PORT' }) }
}
