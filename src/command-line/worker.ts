/** `npm run worker`: executes runs until it is told to stop. */
import { findBrowser } from '../browser/find-browser.ts'
import { readConfig } from '../config.ts'
import { openEncryption, openStore } from '../installation.ts'
import { openLog } from '../log.ts'
import { sealedColumns } from '../sealed-columns.ts'
import { Worker } from '../worker/worker.ts'
import { onStopSignal } from './stop-signal.ts'

export async function worker(): Promise<void> {
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
    artifactRetentionDays: config.ARTIFACT_RETENTION_DAYS,
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
  onStopSignal(async () => {
    await started
    await running.stop(config.SHUTDOWN_SECONDS)
    await store.close()
    log.flush()
  })
  await started
}
