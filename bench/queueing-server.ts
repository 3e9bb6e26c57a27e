/**
 * A server process that queues a run by `PUT`: the service's Execution API, or a server to compare it with. All of them
 * insert the same two rows through the same group commit, with an fsync before the response.
 */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express } from 'express'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { readConfig } from '../src/config/config.ts'
import { listen } from '../src/contract/listener.ts'
import { mountDocument } from '../src/contract/mount.ts'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { apiKeyRealm, type Principal } from '../src/domain/api-keys/api-key.ts'
import { ApiKeys } from '../src/domain/api-keys/api-keys.ts'
import { operator } from '../src/domain/audit-log/audit-log.ts'
import { createDomain } from '../src/domain/create-domain.ts'
import { buildSnapshot } from '../src/domain/deployments/build-snapshot.ts'
import { SentBundles } from '../src/domain/deployments/deploy-sources.ts'
import { Deployments } from '../src/domain/deployments/deployments.ts'
import { snapshotId } from '../src/domain/deployments/snapshot.ts'
import { domainProblemTypes } from '../src/domain/problems.ts'
import { insertRuns, type NewRun } from '../src/domain/queue/enqueue-batcher.ts'
import { AttemptLiveViews } from '../src/domain/remote-workers/attempt-live-views.ts'
import { LeasedAttempts } from '../src/domain/remote-workers/leased-attempts.ts'
import { RemoteAttempts } from '../src/domain/remote-workers/remote-attempts.ts'
import { RemoteWorkers } from '../src/domain/remote-workers/remote-workers.ts'
import { Workflows } from '../src/domain/workflows/workflows.ts'
import type { Document } from '../src/openapi/document.ts'
import { executionContract, knownScopes } from '../src/openapi/served-documents.ts'
import { Encryption } from '../src/storage/encryption.ts'
import { createKeyFile, KeyFile, keyFilePath } from '../src/storage/key-file.ts'
import { openSqliteStore } from '../src/storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable } from '../src/storage/store.ts'
import { executionApi } from '../src/surfaces/execution-api.ts'
import { openLogOutput } from '../src/telemetry/log.ts'

const [kind = '', directory = ''] = process.argv.slice(2)
const store = await openSqliteStore(directory)
const account = (await new Accounts(store).createFirst())?.id ?? ''
const apiKeys = new ApiKeys(store, knownScopes())
const userId = await new Accounts(store).findAdminId(account)
const key = await apiKeys.create({ accountId: account, userId, name: 'bench', scopes: null, expiresAt: null }, operator)

/** The handler of the servers for comparison: the durable insert, and a response of the same size as the service's. */
async function insert(store: Store, variables: unknown): Promise<object> {
  const id = uuid()
  const at = Date.now()
  const workflow = { workflowId: 'first-line', workflowVersion: '1.0.0', priority: 0 }
  const run: NewRun = {
    id,
    account_id: account,
    api_key_id: key.id,
    user_id: null,
    workflow_id: workflow.workflowId,
    workflow_version: workflow.workflowVersion,
    status: 'queued',
    priority: workflow.priority,
    variables: JSON.stringify(variables),
    secrets: null,
    created_at: at,
    delayed: 0,
    available_at: null,
    expires_at: null,
    browser_context_id: null,
    persist_context: null,
    waiting_for: '',
    trace_context: null,
    deployment_id: null,
    tags: null,
    concurrency_group: null,
    schedule_id: null,
    scheduled_for: null,
    rerun_of: null,
    parent_run_id: null,
  }
  await store.write((tx) => insertRuns(tx, [run]))
  store.notify('queue')
  const state = { status: 'queued', reason: null, waitingFor: 'worker', cancelRequested: false, attempts: 0 }
  const result = { output: null, error: null, progress: null, startedAt: null, finishedAt: null }
  const times = { createdAt: new Date(at).toISOString(), availableAt: null, expiresAt: null }
  return { id, ...workflow, ...state, variableData: variables, ...result, ...times }
}

const servers: Record<string, () => RequestListener | Promise<RequestListener>> = {
  'node:http': () => (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', async () => {
      const { variableData } = JSON.parse(Buffer.concat(chunks).toString())
      const text = JSON.stringify(await insert(store, variableData))
      response
        .writeHead(202, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
        .end(text)
    })
  },
  Express: () => {
    const app = express()
    app.put('/v1/execution/queue-remote/:workflowId', express.json(), async (request, response) => {
      response.status(202).json(await insert(store, request.body.variableData))
    })
    return app
  },
  service: () => service(executionContract.document, {}),
  'service, 50 more operations': () => {
    const document = structuredClone(executionContract.document)
    const handlers: Record<string, () => Promise<object>> = {}
    for (let number = 0; number < 50; number += 1) {
      const operationId = `extra${number}`
      const get = { ...(document.paths['/v1/execution/workflows']?.get as object), operationId }
      document.paths[`/v1/execution/extra-${number}/{workflowId}`] = {
        parameters: document.paths['/v1/execution/workflows/{workflowId}']?.parameters,
        get,
      }
      handlers[operationId] = async () => ({ status: 200, body: { data: [] } })
    }
    return service(document, handlers)
  },
}

/** Mounts the Execution API like src/app.ts, with validation of requests and responses, and logging. */
async function service(document: Document, more: object): Promise<RequestListener> {
  createKeyFile(keyFilePath(directory))
  const encryption = new Encryption(new KeyFile(keyFilePath(directory)))
  const snapshot = await buildSnapshot(new URL('./workflows', import.meta.url).pathname)
  const served = new Workflows(snapshot.workflows, snapshotId(snapshot, null))
  const workflows = { current: () => served }
  const log = pino({ level: 'info' }, openLogOutput('/dev/null'))
  const config = { ...readConfig({}), QUEUED_RUNS_MAX: 0, SCHEDULES_MAX: 0, ACCOUNT_CONCURRENCY: 0 }
  const domain = createDomain({ config, store, workflows, encryption, artifactRetentionDays: 30, log })
  const deployments = new Deployments(store)
  const deploying = { deployments, sentBundles: new SentBundles({ ...domain, deployments, describe: undefined }) }
  const remote = { ...domain, deployments, leaseSeconds: config.LEASE_SECONDS }
  const leasedAttempts = new LeasedAttempts(remote)
  const remoteAttempts = new RemoteAttempts({ ...remote, leasedAttempts })
  const attemptLiveViews = new AttemptLiveViews({ ...domain, leasedAttempts })
  const workers = { remoteWorkers: new RemoteWorkers(remote), remoteAttempts, attemptLiveViews }
  const addresses = { executionUrl: () => '', linksUrl: () => '' }
  return mountDocument({
    name: 'execution',
    realm: apiKeyRealm,
    problemTypes: domainProblemTypes,
    document,
    handlers: { ...executionApi({ ...domain, ...deploying, ...workers, ...addresses }), ...more },
    authenticate: (value) => apiKeys.authenticate(value),
    isUnavailable: (error) => error instanceof StoreUnavailable,
    describe: ({ accountId, apiKeyId }: Principal) => ({ accountId, apiKeyId }),
    log,
  })
}

const handler = await servers[kind]?.()
process.send?.({ port: await open(handler as RequestListener), key: key.value })
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit())

/** The service has its own listener, with its limits and checks. */
async function open(handler: RequestListener | Express): Promise<number> {
  if (kind.startsWith('service')) {
    const { url } = await listen(handler as Express, { host: '127.0.0.1', port: 0, name: 'the port' })
    return Number(new URL(url).port)
  }
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
