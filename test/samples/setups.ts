/** What the samples of several operations need: runs, browser contexts, endpoints and schedules. */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { reverseText } from '../operations/requests.ts'
import { until } from '../support/service.ts'

/** Calls the service with the key of the sample's account. */
export interface Caller {
  execution(method: string, path: string, body?: unknown): Promise<ApiResponse>
  browserContext(method: string, path: string, body?: unknown): Promise<ApiResponse>
}

export interface ApiResponse {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: the document describes it
  body: any
}

/** The account, files and variables of a sample. */
export interface Setup {
  key: string
  executionUrl: string
  caller: Caller
  /** The sample's working directory. */
  directory: string
  /** Variables of the sample, without the key; filled by `prepare`. */
  environment: Record<string, string>
}

export const storageState = readFileSync('test/operations/storage-state.json', 'utf8')

export async function queue({ caller, environment }: Setup, workflowId: string, variableData: unknown, query = '') {
  const path = `/v1/execution/queue-remote/${workflowId}${query}`
  const { status, body } = await caller.execution('PUT', path, { variableData })
  expect(status).toBe(202)
  environment.RUN_ID = body.id
}

/** Queues a run, which reaches its wait. */
export async function reachWait(setup: Setup): Promise<void> {
  await queue(setup, 'approve', {})
  await until('the run waits', async () => {
    const { body } = await setup.caller.execution('GET', `/v1/execution/runs/${setup.environment.RUN_ID}/waits`)
    return body.data.length === 1
  })
}

/** Queues a run whose answer has come before it has reached its wait. */
export async function queueAnswered(setup: Setup): Promise<void> {
  await queue(setup, 'approve', {}, '?delaySeconds=1000')
  const path = `/v1/execution/runs/${setup.environment.RUN_ID}/waits/approval`
  expect((await setup.caller.execution('PUT', path, { value: { approved: true } })).status).toBe(200)
}

export async function finishRun({ caller, environment }: Setup): Promise<void> {
  await until('the run has succeeded', async () => {
    const { body } = await caller.execution('GET', `/v1/execution/runs/${environment.RUN_ID}`)
    return body.status === 'succeeded'
  })
}

export async function createContext({ caller, environment }: Setup, name = 'Shop'): Promise<void> {
  const { status, body } = await caller.browserContext('POST', '/alpha/browser-contexts', { name })
  expect(status).toBe(201)
  environment.BROWSER_CONTEXT_ID = body.id
}

export const contextPath = ({ environment }: Setup) => `/alpha/browser-contexts/${environment.BROWSER_CONTEXT_ID}`
export const signInPath = (setup: Setup) => `${contextPath(setup)}/sign-in`

export async function createSignIn(setup: Setup): Promise<void> {
  await createContext(setup)
  const signIn = { workflowId: 'sign-in', variableData: { user: 'ada', password: 'correct horse battery staple' } }
  expect((await setup.caller.browserContext('PUT', signInPath(setup), signIn)).status).toBe(200)
}

export const statePath = (setup: Setup) => `${contextPath(setup)}/storage-state`

export async function createContextWithState(setup: Setup): Promise<void> {
  await createContext(setup)
  expect((await setup.caller.browserContext('PUT', statePath(setup), JSON.parse(storageState))).status).toBe(204)
}

export async function listIds(call: Caller['execution'], path: string): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await call('GET', `${path}?limit=100${cursor && `&cursor=${cursor}`}`)
    ids.push(...body.data.map(({ id }: { id: string }) => id))
    cursor = body.nextCursor
  }
  return ids
}

/** The content of the sample's file. */
export const fileContent = 'A file that is no PDF.'

/** Uploads a file, which is the content of `execution`'s body. */
export async function uploadFile({ key, environment, executionUrl }: Setup): Promise<void> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/pdf' }
  const url = `${executionUrl}/v1/execution/files?name=invoice.pdf`
  const response = await fetch(url, { method: 'POST', headers, body: fileContent })
  expect(response.status).toBe(201)
  environment.FILE_ID = ((await response.json()) as { id: string }).id
}

/** A worker with a workflow that takes a file, which executes the first attempt of a run. */
export async function claimWithFile(setup: Setup): Promise<void> {
  const { caller, environment } = setup
  await uploadFile(setup)
  environment.WORKER_ID = crypto.randomUUID()
  const variables = { type: 'object', properties: { invoice: { type: 'string', format: 'file' } } }
  const workflows = [{ id: 'read-invoice', version: '1.0.0', variables }]
  const worker = { name: 'billing', language: 'Python 3.12', capacity: 4, workflows }
  const { status } = await caller.execution('PUT', `/v1/execution/workers/${environment.WORKER_ID}`, worker)
  expect(status).toBe(200)
  await queue(setup, 'read-invoice', { invoice: environment.FILE_ID })
  await claim(setup)
}

/** A worker with one workflow. */
export async function registerWorker({ caller, environment }: Setup): Promise<void> {
  environment.WORKER_ID = crypto.randomUUID()
  const workflows = [{ id: 'send-invoice', version: '1.0.0', browser: true, variables: { type: 'object' } }]
  const worker = { name: 'billing', language: 'Python 3.12', capacity: 4, workflows }
  const { status } = await caller.execution('PUT', `/v1/execution/workers/${environment.WORKER_ID}`, worker)
  expect(status).toBe(200)
}

/** A worker that executes a run of a deployed workflow, for which it competes with the workers of the service. */
export async function claimDeployed({ caller, environment }: Setup): Promise<void> {
  const path = `/v1/execution/workers/${crypto.randomUUID()}`
  const worker = { name: 'desk', language: 'Node.js', capacity: 4, deployed: true, workflows: [] }
  expect((await caller.execution('PUT', path, worker)).status).toBe(200)
  await until('the worker has a run', async () => {
    const claiming = caller.execution('POST', `${path}/claims`, { countMax: 1, waitSeconds: 2 })
    await caller.execution('PUT', '/v1/execution/queue-remote/greet', { variableData: { name: 'Ada' } })
    const { status, body } = await claiming
    if (status === 200) environment.DEPLOYMENT_ID = body.data[0].deploymentId
    return status === 200
  })
}

/** A run for that worker. */
export async function queueForWorker(setup: Setup): Promise<void> {
  await registerWorker(setup)
  await queue(setup, 'send-invoice', { orderId: 'A-1001' })
}

/** The worker executes the first attempt of the run. */
export async function claimRun(setup: Setup): Promise<void> {
  await queueForWorker(setup)
  await claim(setup)
}

/** The same with a browser context. */
export async function claimWithContext(setup: Setup): Promise<void> {
  await createContextWithState(setup)
  await registerWorker(setup)
  const { BROWSER_CONTEXT_ID } = setup.environment
  await queue(setup, 'send-invoice', { orderId: 'A-1001' }, `?browserContextId=${BROWSER_CONTEXT_ID}`)
  await claim(setup)
}

async function claim(setup: Setup): Promise<void> {
  const path = `/v1/execution/workers/${setup.environment.WORKER_ID}/claims`
  expect((await setup.caller.execution('POST', path, { countMax: 1 })).status).toBe(200)
}

export async function readRun({ caller, environment }: Setup): Promise<ApiResponse['body']> {
  return (await caller.execution('GET', `/v1/execution/runs/${environment.RUN_ID}`)).body
}

export const endpointsPath = '/v1/execution/webhook-endpoints'

/** Its name resolves without a network, to an address that the service refuses. */
/** A secret and a setting. */
export async function storeValues({ caller, environment }: Setup): Promise<void> {
  const secret = await caller.execution('PUT', '/v1/execution/secrets/SHOP_TOKEN', { value: '4f1c0d0f2c5b1f0d' })
  const setting = await caller.execution('PUT', '/v1/execution/settings/SHOP_URL', {
    value: 'https://shop.example.com',
  })
  expect([secret.status, setting.status]).toEqual([200, 200])
  Object.assign(environment, { SECRET_NAME: 'SHOP_TOKEN', SETTING_NAME: 'SHOP_URL' })
}

export async function createEndpoint({ caller, environment }: Setup): Promise<void> {
  const endpoint = { url: 'https://localhost/hooks', events: ['run.succeeded'] }
  const { status, body } = await caller.execution('POST', endpointsPath, endpoint)
  expect(status).toBe(201)
  environment.ENDPOINT_ID = body.id
}

export const rulesPath = '/v1/execution/notification-rules'

export async function createRule({ caller, environment }: Setup): Promise<void> {
  const rule = { name: 'Failed runs', events: ['run.failed'], channel: 'slack', url: 'https://localhost/services' }
  const { status, body } = await caller.execution('POST', rulesPath, rule)
  expect(status).toBe(201)
  environment.RULE_ID = body.id
}

export const rulePath = ({ environment }: Setup) => `${rulesPath}/${environment.RULE_ID}`

export const endpointPath = ({ environment }: Setup) => `${endpointsPath}/${environment.ENDPOINT_ID}`

export async function createDelivery(setup: Setup): Promise<void> {
  await createEndpoint(setup)
  const { status, body } = await setup.caller.execution('POST', `${endpointPath(setup)}/test`)
  expect(status).toBe(202)
  setup.environment.DELIVERY_ID = body.id
}

export async function deploy({ caller, environment }: Setup, version: string): Promise<void> {
  const { status, body } = await caller.execution('POST', '/v1/execution/deployments', reverseText(version))
  expect(status).toBe(201)
  environment.DEPLOYMENT_ID = body.id
}

export const schedulesPath = '/v1/execution/schedules'

export async function createSchedule({ caller, environment }: Setup): Promise<void> {
  const schedule = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 0 29 2 *' }
  const { status, body } = await caller.execution('POST', schedulesPath, schedule)
  expect(status).toBe(201)
  environment.SCHEDULE_ID = body.id
}

export const schedulePath = ({ environment }: Setup) => `${schedulesPath}/${environment.SCHEDULE_ID}`
