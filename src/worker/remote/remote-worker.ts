/** Composes a worker that reaches the service over HTTP. Nothing of the store is imported here. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { v4 as uuid } from 'uuid'
import { createExecutionClient, type ExecutionClient } from '../../client/clients.ts'
import type { Problem } from '../../client/problem.ts'
import type { Config } from '../../config/config.ts'
import { FileMissing } from '../../domain/files/file-of-run.ts'
import { executorIdentity } from '../../domain/workflows/executor-identity.ts'
import { ExecutorUsers } from '../../domain/workflows/executor-users.ts'
import { loadSecondsMax, noValues } from '../../domain/workflows/workflow.ts'
import { StoreUnavailable } from '../../storage/store.ts'
import { AttemptFiles, type FileSource } from '../attempt/attempt-files.ts'
import { BrowserHost } from '../browser/browser-host.ts'
import { BrowserMissing, findBrowser } from '../browser/find-browser.ts'
import { Executors } from '../executors/executors.ts'
import { WorkerDeployments } from '../executors/worker-deployments.ts'
import { Worker } from '../worker.ts'
import { RemoteDeployments } from './remote-deployments.ts'
import { RemoteLiveViews } from './remote-live-views.ts'
import { plainValues, RemoteError, RemoteQueue } from './remote-queue.ts'
import { createWorkerCalls } from './worker-calls.ts'

interface RemoteWorkerOptions {
  config: Config
  /** Base address of the Execution API. */
  url: string
  apiKey: string
  log: Logger
  /** Called when the worker cannot execute runs any more. */
  onFatal(error: unknown): void
  /** Called when the service no longer accepts the API key. Leases cannot be renewed: stop the worker. */
  onRefused(error: RemoteError): void
}

/**
 * Registers with the service as soon as it can be reached, and executes runs of the deployed workflows that the key's account sees.
 *
 * @throws {RemoteError} if the service refuses the registration.
 */
export async function startRemoteWorker({
  config,
  url,
  apiKey,
  log: parentLog,
  onFatal,
  onRefused,
}: RemoteWorkerOptions) {
  const id = uuid()
  const log = parentLog.child({ workerId: id })
  const client = createExecutionClient({ baseUrl: url, apiKey })
  const slots = config.WORKER_SLOTS
  let isRegistered = false
  // A refused registration is an error of the start.
  const refuse = (problem: Problem) => isRegistered && onRefused(new RemoteError(problem))
  const calls = createWorkerCalls({ baseUrl: url, apiKey, log, onRefused: refuse })
  const params = { path: { workerId: id } }
  const browser = await hasBrowser(config, log)
  const register = async () => {
    const language = `Node.js ${process.versions.node}`
    const machine = { name: hostname(), host: hostname(), language }
    const body = { ...machine, capacity: slots, deployed: true, browser, workflows: [] }
    const { data, error } = await calls.registerWorker({ params, body })
    if (error) throw new RemoteError(error)
    return data
  }
  const { leaseSeconds } = await register()
  isRegistered = true
  const again = async () => void (await register())
  const queue = new RemoteQueue({ client: calls, workerId: id, slots, leaseSeconds, register: again })
  const deployments = new RemoteDeployments(client)
  const identity = executorIdentity(config)
  const users = config.EXECUTOR_UIDS && new ExecutorUsers(config.EXECUTOR_UIDS)
  const deployed = new WorkerDeployments({ deployments, identity, users, directory: config.WORKFLOWS_DIR, log })
  const { WORKFLOW_MEMORY_MB: memoryMegabytesMax, IDLE_PROCESSES_MB: idleMegabytesMax } = config
  const processes = { memoryMegabytesMax, idleMegabytesMax, loadSecondsMax, identity, users }
  const worker = new Worker(
    {
      ...{ queue, deployments, encryption: plainValues, observers: [], log, onFatal },
      store: { listen: (topic, listener) => queue.listen(topic, listener) },
      workers: { announce: async () => {}, leave: async () => void (await client.deleteWorker({ params })) },
      executors: new Executors(deployed, processes, slots, log),
      browser: new BrowserHost({ path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL }, log),
      runContexts: queue.contexts,
      files: new AttemptFiles({ source: remoteFiles(client), encryption: plainValues }),
      liveViews: new RemoteLiveViews(calls, log),
      readDeclared: async ({ declared = noValues }) => ({ kind: 'values', values: declared }),
      ...ofService,
    },
    { id, slots, leaseSeconds, abortGraceSeconds: config.ABORT_GRACE_SECONDS },
  )
  await worker.start()
  return worker
}

/** The service has named the files of a run with its claim. */
function remoteFiles(client: Pick<ExecutionClient, 'getAttemptFile'>): FileSource {
  return {
    find: async ({ files = [] }) => [...files],
    async *read({ runId, attempt }, { id: fileId, pointer }) {
      const params = { path: { runId, attempt, fileId } }
      const { data, error } = await client.getAttemptFile({ params, parseAs: 'stream' })
      if (error?.status === 404) throw new FileMissing({ pointer, id: fileId })
      const isTransient = error && (error.status === 0 || error.status === 429 || error.status >= 500)
      if (isTransient) throw new StoreUnavailable(error.detail || error.title)
      if (error) throw new RemoteError(error)
      try {
        yield* data
      } catch (cause) {
        throw new StoreUnavailable(`The connection broke while the file ${fileId} was read.`, { cause })
      }
    },
  }
}

/** The service does its own maintenance, and counts what its accounts store. */
const ofService = {
  maintenance: { start: () => {}, stop: async () => {} },
  usage: { refusal: () => undefined, add: () => {} },
}

/** Whether this machine has a browser. Without one, other workers execute the runs that use one. */
async function hasBrowser({ BROWSER_PATH, BROWSER_CDP_URL }: Config, log: Logger): Promise<boolean> {
  if (BROWSER_CDP_URL) return true
  try {
    const { executable, version } = await findBrowser(BROWSER_PATH, process.env)
    log.info({ executable, version }, 'browser found')
    return true
  } catch (error) {
    if (!(error instanceof BrowserMissing) || BROWSER_PATH) throw error
    log.warn({ err: error }, 'no browser; this worker takes no runs that use one')
    return false
  }
}
