/** A valid request for each operation, and how to send it. */

import { hash } from 'node:crypto'
import request, { type Test } from 'supertest'
import { v7 as uuid } from 'uuid'
import type { Workflow } from '../../src/domain/workflows/workflow.ts'
import { failInStep } from '../support/finished-steps.ts'
import type { TestAccount, TestService } from '../support/service.ts'
import { workflow } from '../support/snapshots.ts'
import { type DocumentedOperation, type OperationId, operationOf } from './document.ts'
import { approve, invoice, newWorker } from './example-runs.ts'

/** The parts of a request that the document leaves open. */
export interface Filled {
  /** Values of the path's parameters. */
  path?: Record<string, string>
  query?: string
  headers?: Record<string, string>
  body?: unknown
  /** A body that is no JSON. */
  raw?: Buffer
}

export interface SentRequest {
  method: string
  /** Includes the query. */
  path: string
  headers: Record<string, string | string[]>
  /** Sent unchanged. */
  body?: string | Buffer
}

export type Service = Pick<TestService, 'executionUrl' | 'browserContextUrl' | 'change'>

/** Each creates what it needs in the account first. */
const validRequests: { [Id in OperationId]: (service: Service, account: TestAccount) => Promise<Filled> } = {
  queueRemoteRun: async () => ({
    path: { workflowId: 'greet' },
    query: 'delaySeconds=3600',
    body: { variableData: { name: 'Ada' } },
  }),
  queueRemoteRunBatch: async () => ({
    body: { runs: [{ workflowId: 'greet', variableData: { name: 'Ada' }, delaySeconds: 3600 }] },
  }),
  listRuns: async (service, account) => {
    await queueRun(service, account)
    return {}
  },
  createRunToken: async (service, account) => ({
    body: { runId: await queueRun(service, account), expiresInSeconds: 600 },
  }),
  getRun: async (service, account) => ({ path: { runId: await queueRun(service, account) } }),
  deleteRun: async (service, account) => ({ path: { runId: await cancelledRun(service, account) } }),
  cancelRun: async (service, account) => ({ path: { runId: await queueRun(service, account) } }),
  rerunRun: async (service, account) => {
    const count = { path: { workflowId: 'count-words' }, body: { variableData: { path: 'LICENSE' } } }
    const runId = await queueRun(service, account, count)
    // The document's example starts from this step.
    await failInStep(service, runId, 'process')
    return { path: { runId }, body: {} }
  },
  bulkCancelRuns: async () => ({ body: { tag: ['none'] } }),
  bulkRerunRuns: async () => ({ body: { tag: ['none'] } }),
  getBulkAction: async (service, account) => {
    const created = await send(service, 'bulkCancelRuns', account.key, { body: { tag: ['none'] } }).expect(202)
    return { path: { bulkActionId: created.body.id } }
  },
  getRunArtifact: async (service, account) => {
    const runId = await queueRun(service, account)
    await putArtifact(service, runId)
    return { path: { runId, artifactName: 'hello.txt' } }
  },
  listWaits: async (service, account) => {
    await answeredRun(service, account)
    return {}
  },
  listRunWaits: async (service, account) => ({ path: { runId: await answeredRun(service, account) } }),
  completeWait: async (service, account) => ({
    path: { runId: await queueRun(service, account, approve), name: 'approval' },
    body: { value: { approved: true } },
  }),
  createWaitLink: async (service, account) => ({
    path: { runId: await queueRun(service, account, approve), name: 'approval' },
    body: {},
  }),
  getDeploymentBundle: async (service, account) => {
    const runId = await leasedRun(service, account)
    const { body } = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
    return { path: { deploymentId: body.deploymentId } }
  },
  listWorkers: async (service, account) => {
    await registerWorker(service, account)
    return {}
  },
  registerWorker: async () => ({ path: { workerId: crypto.randomUUID() }, body: newWorker }),
  deleteWorker: async (service, account) => ({ path: { workerId: await registerWorker(service, account) } }),
  claimRuns: async (service, account) => {
    const workerId = await registerWorker(service, account)
    await queueRun(service, account, invoice)
    return { path: { workerId }, body: { countMax: 2 } }
  },
  renewLeases: async (service, account) => {
    const { workerId, runId, attempt } = await claimedAttempt(service, account)
    return { path: { workerId }, body: { leases: [{ runId, attempt: Number(attempt) }] } }
  },
  putRunStep: async (service, account) => {
    return {
      path: { ...(await attemptPath(service, account)), stepName: 'charge' },
      body: { value: { paymentId: 'p1' } },
    }
  },
  appendRunEvents: async (service, account) => ({
    path: await attemptPath(service, account),
    body: { position: 0, events: [{ type: 'log', level: 'info', message: 'Charging' }] },
  }),
  putAttemptArtifact: async (service, account) => ({
    path: { ...(await attemptPath(service, account)), artifactName: 'invoice.txt' },
    body: { mediaType: 'text/plain', content: 'SGVsbG8=' },
  }),
  getAttemptBrowserContext: async (service, account) => {
    const { runId, attempt } = await claimedWithContext(service, account)
    return { path: { runId, attempt } }
  },
  getAttemptFile: async (service, account) => {
    const { runId, attempt, fileId } = await claimedWithFile(service, account)
    return { path: { runId, attempt, fileId } }
  },
  createFile: async () => ({ query: 'name=invoice.pdf', raw: Buffer.from('{}') }),
  getFile: async (service, account) => ({ path: { fileId: await createFile(service, account) } }),
  deleteFile: async (service, account) => ({ path: { fileId: await createFile(service, account) } }),
  getLiveViews: async (service, account) => ({ path: await attemptPath(service, account) }),
  updateLiveView: async (service, account) => ({
    path: { ...(await attemptPath(service, account)), viewId: crypto.randomUUID() },
    body: { control: { phase: 'free', by: null, message: null } },
  }),
  completeAttempt: async (service, account) => ({
    path: await attemptPath(service, account),
    body: { outcome: 'succeeded', output: { invoice: 'I-1' } },
  }),
  suspendAttempt: async (service, account) => ({
    path: await attemptPath(service, account),
    body: { waits: [{ kind: 'answer', name: 'approval', title: 'Send it?' }], names: ['approval'] },
  }),
  handBackAttempt: async (service, account) => ({ path: await attemptPath(service, account), body: {} }),
  // The stream of a finished run ends by itself.
  streamRunEvents: async (service, account) => ({ path: { runId: await cancelledRun(service, account) } }),
  listWorkflows: async () => ({}),
  getWorkflow: async () => ({ path: { workflowId: 'greet' } }),
  getWorkflowsDocument: async () => ({}),
  listDeployments: async (service, account) => {
    await storeDeployment(service, account)
    return {}
  },
  createDeployment: async () => ({ body: reverseText('1.0.0') }),
  activateDeployment: async (service, account) => {
    const deploymentId = await storeDeployment(service, account)
    await storeDeployment(service, account)
    return { path: { deploymentId }, body: {} }
  },
  listSchedules: async (service, account) => {
    await firstSchedule(service, account)
    return {}
  },
  createSchedule: async () => ({ body: schedule }),
  getSchedule: async (service, account) => ({ path: { scheduleId: await firstSchedule(service, account) } }),
  updateSchedule: async (service, account) => ({
    path: { scheduleId: await firstSchedule(service, account) },
    body: { paused: true },
  }),
  deleteSchedule: async (service, account) => ({ path: { scheduleId: await createSchedule(service, account) } }),
  triggerSchedule: async (service, account) => ({ path: { scheduleId: await firstSchedule(service, account) } }),
  getUsage: async () => ({ query: 'from=2026-11-01&to=2026-11-30' }),
  listSecrets: async (service, account) => {
    await putSecret(service, account)
    return {}
  },
  putSecret: async () => ({ path: { name: 'SHOP_TOKEN' }, body: { value: '4f1c0d0f2c5b1f0d' } }),
  deleteSecret: async (service, account) => ({ path: { name: await putSecret(service, account) } }),
  listSettings: async (service, account) => {
    await putSetting(service, account)
    return {}
  },
  putSetting: async () => ({ path: { name: 'SHOP_URL' }, body: { value: 'https://shop.example.com' } }),
  deleteSetting: async (service, account) => ({ path: { name: await putSetting(service, account) } }),
  listWebhookEndpoints: async (service, account) => {
    await createWebhookEndpoint(service, account)
    return {}
  },
  createWebhookEndpoint: async () => ({ body: webhookEndpoint }),
  getWebhookEndpoint: async (service, account) => ({
    path: { endpointId: await createWebhookEndpoint(service, account) },
  }),
  updateWebhookEndpoint: async (service, account) => ({
    path: { endpointId: await createWebhookEndpoint(service, account) },
    body: { enabled: false },
  }),
  deleteWebhookEndpoint: async (service, account) => ({
    path: { endpointId: await createWebhookEndpoint(service, account) },
  }),
  rotateWebhookSecret: async (service, account) => ({
    path: { endpointId: await createWebhookEndpoint(service, account) },
  }),
  sendTestWebhook: async (service, account) => ({
    path: { endpointId: await createWebhookEndpoint(service, account) },
  }),
  listWebhookDeliveries: async (service, account) => {
    const endpointId = await createWebhookEndpoint(service, account)
    // Its deliveries wait, so that two lists are equal.
    const paused = { path: { endpointId }, body: { enabled: false } }
    await send(service, 'updateWebhookEndpoint', account.key, paused).expect(200)
    await sendTestWebhook(service, account, endpointId)
    return { path: { endpointId } }
  },
  redeliverWebhook: async (service, account) => {
    const endpointId = await createWebhookEndpoint(service, account)
    return { path: { endpointId, deliveryId: await sendTestWebhook(service, account, endpointId) } }
  },
  redeliverWebhooks: async (service, account) => ({
    path: { endpointId: await firstWebhookEndpoint(service, account) },
    body: { since: '2026-11-20T09:30:00.000Z' },
  }),
  listNotificationRules: async (service, account) => {
    await createNotificationRule(service, account)
    return {}
  },
  createNotificationRule: async () => ({ body: notificationRule }),
  getNotificationRule: async (service, account) => ({
    path: { ruleId: await createNotificationRule(service, account) },
  }),
  updateNotificationRule: async (service, account) => ({
    path: { ruleId: await createNotificationRule(service, account) },
    body: { name: 'Renamed' },
  }),
  deleteNotificationRule: async (service, account) => ({
    path: { ruleId: await createNotificationRule(service, account) },
  }),
  testNotificationRule: async (service, account) => ({
    path: { ruleId: await createNotificationRule(service, account) },
  }),
  listBrowserContexts: async (service, account) => {
    await createContext(service, account)
    return {}
  },
  createBrowserContext: async () => ({ body: { name: 'Shop' } }),
  getBrowserContext: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
  }),
  updateBrowserContext: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
    body: { name: 'Renamed' },
  }),
  deleteBrowserContext: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
  }),
  listBrowserContextVersions: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
  }),
  restoreBrowserContextVersion: async (service, account) => {
    const browserContextId = await createContext(service, account)
    for (const domain of ['first.example', 'second.example'])
      await putState(service, account, browserContextId, storageStateFor(domain))
    return { path: { browserContextId, version: '1' } }
  },
  getSignIn: async (service, account) => ({ path: { browserContextId: await createSignIn(service, account) } }),
  setSignIn: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
    body: signInBody,
  }),
  deleteSignIn: async (service, account) => ({ path: { browserContextId: await createSignIn(service, account) } }),
  signInNow: async (service, account) => ({ path: { browserContextId: await createSignIn(service, account) } }),
  getStorageState: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
  }),
  putStorageState: async (service, account) => ({
    path: { browserContextId: await createContext(service, account) },
    body: { cookies: [], origins: [] },
  }),
}

/** A request of the account that succeeds. */
export async function validRequest(service: Service, id: OperationId, account: TestAccount): Promise<SentRequest> {
  return requestOf(operationOf(id), account.key, await validRequests[id](service, account))
}

export function requestOf(operation: DocumentedOperation, key: string, filled: Filled = {}): SentRequest {
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => filled.path?.[name] ?? `{${name}}`)
  const query = !filled.query ? '' : `?${filled.query}`
  const hasBody = filled.body !== undefined
  return {
    method: operation.method,
    path: path + query,
    headers: {
      ...credential(operation, key),
      ...(hasBody && { 'Content-Type': 'application/json' }),
      ...(filled.raw && { 'Content-Type': 'application/octet-stream' }),
      ...filled.headers,
    },
    ...(hasBody && { body: JSON.stringify(filled.body) }),
    ...(filled.raw && { body: filled.raw }),
  }
}

/** The header with the key, as the operation's API expects it. */
export function credential({ surface }: Pick<DocumentedOperation, 'surface'>, key: string): Record<string, string> {
  return surface === 'execution' ? { Authorization: `Bearer ${key}` } : { 'x-service-api-key': key }
}

export function addressOf(service: Omit<Service, 'change'>, { surface }: Pick<DocumentedOperation, 'surface'>): string {
  return surface === 'execution' ? service.executionUrl : service.browserContextUrl
}

/** Sends the request with supertest, its body unchanged. */
export function sendRequest(address: string, { method, path, headers, body }: SentRequest): Test {
  const agent = request(address)
  const name = method.toLowerCase() as 'get' | 'put' | 'post' | 'patch' | 'delete'
  const sent = agent[name](path).set(headers as Record<string, string>)
  return body === undefined ? sent : sent.serialize((it: unknown) => it as string).send(body)
}

export function send(service: Omit<Service, 'change'>, id: OperationId, key: string, filled: Filled = {}): Test {
  const operation = operationOf(id)
  return sendRequest(addressOf(service, operation), requestOf(operation, key, filled))
}

/** Queues a run that stays queued for an hour, unless `filled` says otherwise; returns its id. */
export async function queueRun(service: Service, account: TestAccount, filled: Filled = {}): Promise<string> {
  const usual = { path: { workflowId: 'greet' }, query: 'delaySeconds=3600', body: { variableData: { name: 'Ada' } } }
  const response = await send(service, 'queueRemoteRun', account.key, { ...usual, ...filled })
  if (response.status >= 300) throw new Error(`Queueing failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** Queues a run and cancels it, which finishes it; returns its id. */
export async function cancelledRun(service: Service, account: TestAccount, filled: Filled = {}): Promise<string> {
  const runId = await queueRun(service, account, filled)
  await send(service, 'cancelRun', account.key, { path: { runId } }).expect(200)
  return runId
}

/** Stores an artifact like one of the run's workflow. */
export async function putArtifact(
  { change }: Service,
  runId: string,
  mediaType = 'text/plain',
  content: string | Buffer = 'Hello',
  name = 'hello.txt',
): Promise<void> {
  await change('UPDATE runs SET attempts = 1 WHERE id = ?', runId)
  const values = [runId, name, mediaType, Buffer.byteLength(content), Date.now(), Buffer.from(content)]
  const columns = 'run_id, name, media_type, size_bytes, attempt, created_at, content'
  await change(`INSERT INTO artifacts (${columns}) VALUES (?, ?, ?, ?, 1, ?, ?)`, ...values)
}

/** Gives the run the lease of the context, as if it were running. */
export async function leaseContext({ change }: Service, browserContextId: string, runId: string | null): Promise<void> {
  const hold = 'UPDATE browser_contexts SET held_by_run_id = ?, fence = fence + 1 WHERE id = ?'
  await change(hold, runId, browserContextId)
}

/** A storage state with a cookie for each of the domains. */
export function storageStateFor(...domains: string[]) {
  const kept = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  const cookies = domains.map((domain, index) => ({ name: `session-${index}`, value: 'ü "7f3a"', domain, ...kept }))
  return { cookies, origins: [] }
}

/** Stores the state as the context's next version. */
export async function putState(
  service: Service,
  account: TestAccount,
  browserContextId: string,
  body: unknown,
): Promise<void> {
  const { status, text } = await send(service, 'putStorageState', account.key, { path: { browserContextId }, body })
  if (status !== 204) throw new Error(`Storing a state failed: ${status} ${text}`)
}

export async function createContext(service: Service, account: TestAccount, name?: string): Promise<string> {
  const filled = name === undefined ? {} : { body: { name } }
  const response = await send(service, 'createBrowserContext', account.key, filled)
  if (response.status !== 201) throw new Error(`Creating a browser context failed: ${response.status} ${response.text}`)
  return response.body.id
}

export const signInBody = { workflowId: 'sign-in', variableData: { user: 'ada', password: 'canary-8d1f' } }

/** A browser context with a sign-in; returns its id. */
export async function createSignIn(service: Service, account: TestAccount, body: object = signInBody): Promise<string> {
  const browserContextId = await createContext(service, account)
  const response = await send(service, 'setSignIn', account.key, { path: { browserContextId }, body })
  if (response.status !== 200) throw new Error(`Setting a sign-in failed: ${response.status} ${response.text}`)
  return browserContextId
}

/** Its name resolves without a network, to an address that the service refuses. */
/** Its next time is on the next 29 February. */
const schedule = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 0 29 2 *' }

export async function createSchedule(
  service: Service,
  account: TestAccount,
  members: Record<string, unknown> = {},
): Promise<string> {
  const body = { ...schedule, ...members }
  const response = await send(service, 'createSchedule', account.key, { body })
  if (response.status !== 201) throw new Error(`Creating a schedule failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** The latest schedule of the account, created if needed: an account may have few. */
async function firstSchedule(service: Service, account: TestAccount): Promise<string> {
  const { body } = await send(service, 'listSchedules', account.key, { query: 'limit=1' })
  return body.data?.[0]?.id ?? createSchedule(service, account)
}

/** Returns its name. */
export async function putSecret(
  service: Service,
  account: TestAccount,
  secretName = 'SHOP_TOKEN',
  value = 'canary-token-4f1c0d0f',
): Promise<string> {
  await send(service, 'putSecret', account.key, { path: { name: secretName }, body: { value } }).expect(200)
  return secretName
}

/** Returns its name. */
export async function putSetting(
  service: Service,
  account: TestAccount,
  settingName = 'SHOP_URL',
  value: unknown = 'https://shop.example.com',
): Promise<string> {
  await send(service, 'putSetting', account.key, { path: { name: settingName }, body: { value } }).expect(200)
  return settingName
}

const webhookEndpoint = { url: 'https://localhost/hooks', events: ['run.succeeded', 'run.cancelled'] }

export async function createWebhookEndpoint(
  service: Service,
  account: TestAccount,
  members: Record<string, unknown> = {},
): Promise<string> {
  const body = { ...webhookEndpoint, ...members }
  const response = await send(service, 'createWebhookEndpoint', account.key, { body })
  if (response.status !== 201) throw new Error(`Creating an endpoint failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** The latest endpoint of the account, created if needed: an account may have 20. */
async function firstWebhookEndpoint(service: Service, account: TestAccount): Promise<string> {
  const { body } = await send(service, 'listWebhookEndpoints', account.key, { query: 'limit=1' })
  return body.data?.[0]?.id ?? createWebhookEndpoint(service, account)
}

const notificationRule = {
  name: 'Failures',
  events: ['run.failed'],
  channel: 'slack',
  url: 'https://localhost/services/T0/B0/canary',
}

export async function createNotificationRule(
  service: Service,
  account: TestAccount,
  members: Record<string, unknown> = {},
): Promise<string> {
  const body = { ...notificationRule, ...members }
  const response = await send(service, 'createNotificationRule', account.key, { body })
  if (response.status !== 201) throw new Error(`Creating a rule failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** A bundle of one workflow, whose `variables` have these members. */
export function reverseText(version: string, variables: object = { properties: { text: { type: 'string' } } }) {
  const definition = { id: 'reverse-text', version, title: 'Reverse', variables: { type: 'object', ...variables } }
  const run = 'async ({ variables }) => ({ text: [...variables.text].reverse().join("") })'
  const content = `export default { ...${JSON.stringify({ ...definition, output: {} })}, run: ${run} }\n`
  const path = 'reverse-text.js'
  return { files: [{ path, content }], modules: [{ path, source: 'workflows/reverse-text.ts' }] }
}

/** Stores a deployment and makes it current, without the processes that check what a caller sends; returns its id. */
export async function storeDeployment(
  { change }: Service,
  { id: accountId }: TestAccount,
  version = '1.0.0',
  createdAt = Date.now(),
  members: Partial<Workflow> = {},
): Promise<string> {
  const id = hash('sha256', uuid())
  const workflows = JSON.stringify([{ ...workflow({ id: 'stored', version, ...members }), module: 'stored.js' }])
  const columns = 'id, account_id, created_at, workflows, size_bytes, files'
  const row = [id, accountId, createdAt, workflows, 5, Buffer.from('files')]
  await change(`INSERT INTO deployments (${columns}) VALUES (?, ?, ?, ?, ?, ?)`, ...row)
  const activation = 'account_id, deployment_id, kind, directory, at'
  const values = [accountId, id, 'deploy', null, createdAt]
  await change(`INSERT INTO deployment_activations (${activation}) VALUES (?, ?, ?, ?, ?)`, ...values)
  return id
}

/** Queues a test event; returns the id of the delivery. */
export async function sendTestWebhook(service: Service, account: TestAccount, endpointId: string): Promise<string> {
  const response = await send(service, 'sendTestWebhook', account.key, { path: { endpointId } })
  if (response.status !== 202) throw new Error(`Sending a test failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** Queues a run whose answer has come before the run has reached its wait. */
export async function answeredRun(service: Service, account: TestAccount): Promise<string> {
  const runId = await queueRun(service, account, approve)
  const answer = { path: { runId, name: 'approval' }, body: { value: { approved: true } } }
  await send(service, 'completeWait', account.key, answer).expect(200)
  return runId
}

/** Returns the worker's id. */
export async function registerWorker(
  service: Service,
  account: TestAccount,
  members: Record<string, unknown> = {},
): Promise<string> {
  const workerId = crypto.randomUUID()
  const filled = { path: { workerId }, body: { ...newWorker, ...members } }
  const { status, text } = await send(service, 'registerWorker', account.key, filled)
  if (status !== 200) throw new Error(`Registering a worker failed: ${status} ${text}`)
  return workerId
}

/** Queues a run, and claims it for a new worker of the account's key. */
export async function claimedAttempt(
  service: Service,
  account: TestAccount,
  run: Filled = invoice,
  queuer = account,
  worker: Record<string, unknown> = {},
) {
  const workerId = await registerWorker(service, account, worker)
  await queueRun(service, queuer, run)
  const claimed = await send(service, 'claimRuns', account.key, { path: { workerId }, body: { countMax: 1 } })
  if (claimed.status !== 200) throw new Error(`Claiming a run failed: ${claimed.status} ${claimed.text}`)
  const [claim] = claimed.body.data
  return { workerId, runId: claim.runId as string, attempt: String(claim.attempt), claim }
}

/** A run of a deployed workflow that a new worker of the account's key executes, whichever workers are there; returns its id. */
export async function leasedRun(service: Service, account: TestAccount, filled: Filled = {}): Promise<string> {
  const workerId = await registerWorker(service, account, { workflows: [], deployed: true })
  const runId = await queueRun(service, account, filled)
  const running = "status = 'running', delayed = 0, attempts = 1, worker_id = ?, lease_expires_at = ?"
  await service.change(
    `UPDATE runs SET ${running} WHERE id = ?`,
    `${account.id}/${workerId}`,
    Date.now() + 3_600_000,
    runId,
  )
  return runId
}

/** Uploads a file; returns its id. */
export async function createFile(
  service: Pick<Service, 'executionUrl' | 'browserContextUrl'>,
  { key }: Pick<TestAccount, 'key'>,
  raw: Buffer = Buffer.from('Hello'),
  query = 'name=invoice.pdf',
): Promise<string> {
  const headers = { 'Content-Type': 'application/pdf' }
  const response = await send(service, 'createFile', key, { query, raw, headers })
  if (response.status !== 201) throw new Error(`Uploading a file failed: ${response.status} ${response.text}`)
  return response.body.id
}

/** A run of a workflow that takes a file, which a worker outside of the service executes. */
export async function claimedWithFile(service: Service, account: TestAccount, content = Buffer.from('Hello')) {
  const fileId = await createFile(service, account, content)
  const variables = { type: 'object', properties: { invoice: { type: 'string', format: 'file' } } }
  const workflows = [{ id: 'read-invoice', version: '1.0.0', variables }]
  const run = { path: { workflowId: 'read-invoice' }, query: '', body: { variableData: { invoice: fileId } } }
  return { fileId, ...(await claimedAttempt(service, account, run, account, { workflows })) }
}

/** The same with a new browser context, which has a state with a cookie of a shop. */
export async function claimedWithContext(service: Service, account: TestAccount, options = '') {
  const contextId = await createContext(service, account)
  await putState(service, account, contextId, storageStateFor('shop.example'))
  const query = `browserContextId=${contextId}${options}`
  return { contextId, ...(await claimedAttempt(service, account, { ...invoice, query })) }
}

/** The path of reports of a new attempt. */
async function attemptPath(service: Service, account: TestAccount): Promise<{ runId: string; attempt: string }> {
  const { runId, attempt } = await claimedAttempt(service, account)
  return { runId, attempt }
}
