/** `worker --url`: executes runs of a service that it reaches over HTTP alone, until a stop signal. */
import { readConfig } from '../config/config.ts'
import { ConfigError } from '../config/setting-kinds.ts'
import { openLog } from '../telemetry/log.ts'
import { BrowserMissing } from '../worker/browser/find-browser.ts'
import { RemoteError } from '../worker/remote/remote-queue.ts'
import { startRemoteWorker } from '../worker/remote/remote-worker.ts'
import type { Worker } from '../worker/worker.ts'
import { onStopSignal } from './stop-signal.ts'

export async function remoteWorker(url: string): Promise<void> {
  const { API_KEY: apiKey, ...environment } = process.env
  if (!apiKey) throw new ConfigError('API_KEY is not set: it must have an API key with the scope runs:execute.')
  if (!URL.canParse(url)) throw new ConfigError(`--url ${url} is no URL: give the address of the Execution API.`)
  // Workflows inherit the environment of this process, but for its secrets.
  delete process.env.API_KEY
  const config = readConfig(environment)
  const log = openLog(config)
  const onFatal = (error: unknown) => {
    log.fatal({ err: error }, 'worker cannot execute runs; exiting')
    log.flush()
    process.exit(1)
  }
  let worker: Worker | undefined
  let isRefused = false
  const onRefused = (error: RemoteError) => {
    if (isRefused) return
    isRefused = true
    log.fatal({ err: error }, 'the service refuses the API key; exiting')
    void Promise.resolve(worker?.stop(0)).finally(() => {
      log.flush()
      process.exit(1)
    })
  }
  const starting = startRemoteWorker({ config, url, apiKey, log, onFatal, onRefused })
  onStopSignal(async () => {
    // A worker that has not reached the service has nothing to return.
    await worker?.stop(config.SHUTDOWN_SECONDS)
    log.flush()
  })
  worker = await starting.catch((error: unknown) => {
    if (error instanceof BrowserMissing) throw new ConfigError(error.message)
    throw error instanceof RemoteError ? new ConfigError(`${url} refuses this worker: ${error.message}`) : error
  })
}
