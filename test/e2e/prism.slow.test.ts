/** `prism proxy` between the client and the service finds no violations of the documents in any operation. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowserContextClient, createExecutionClient, type ExecutionClient } from '../../src/client/index.ts'
import { operations, type Surface } from '../operations/document.ts'
import { newWorker } from '../operations/example-runs.ts'
import { leasedRun, putArtifact, queueRun, reverseText } from '../operations/requests.ts'
import { type PrismProxy, startPrismProxy } from '../support/prism-proxy.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let proxies: Record<Surface, PrismProxy>

beforeAll(async () => {
  service = await startTestService()
  const [execution, browserContext] = await Promise.all([
    startPrismProxy('execution.v1', service.executionUrl),
    startPrismProxy('browser-context.alpha', service.browserContextUrl),
  ])
  proxies = { execution, browserContext }
})
afterAll(async () => {
  for (const proxy of Object.values(proxies ?? {})) proxy.stop()
  await service.stop()
})

/** Records the statuses of responses. */
function record(surface: Surface) {
  const statuses: number[] = []
  const recordingFetch = async (request: Request) => {
    const response = await fetch(request)
    statuses.push(response.status)
    return response
  }
  return { statuses, takeViolations: () => proxies[surface].takeViolations(), fetch: recordingFetch }
}

/** Records which operations of the client are called. */
function recordCalls<Client extends object>(client: Client): { client: Client; called: Set<string> } {
  const called = new Set<string>()
  const get = (target: Client, name: string | symbol) => {
    called.add(String(name))
    return Reflect.get(target, name)
  }
  return { client: new Proxy(client, { get }), called }
}

function operationIds(surface: Surface): string[] {
  return operations.filter((operation) => operation.surface === surface).map(({ id }) => id)
}

/** Written by Playwright. */
const state = JSON.parse(readFileSync('test/operations/storage-state.json', 'utf8'))

describe('Prism reports', () => {
  test('no violations in calls of every operation of the Execution API', async () => {
    const account = await service.createAccount()
    const { key: apiKey } = account
    const { statuses, takeViolations, fetch } = record('execution')
    const { client, called } = recordCalls(createExecutionClient({ apiKey, baseUrl: proxies.execution.url, fetch }))

    const workflows = await client.listWorkflows()
    const workflowId = workflows.data?.data.find(({ id }) => id === 'greet')?.id ?? ''
    await client.getWorkflow({ params: { path: { workflowId } } })
    const body = { variableData: { name: 'Ada', token: 'very secret' } }
    const header = { Prefer: 'wait=30', 'Idempotency-Key': 'once' }
    const finished = await client.queueRemoteRun({ params: { path: { workflowId }, header }, body })
    await client.queueRemoteRun({ params: { path: { workflowId }, header }, body })
    const query = { delaySeconds: 3600, expiresInSeconds: 7200, priority: -10 }
    const queued = await client.queueRemoteRun({ params: { path: { workflowId }, query }, body })
    const printing = { path: { workflowId: 'print' }, header: { Prefer: 'wait=30' } }
    const printed = await client.queueRemoteRun({ params: printing, body: { variableData: {} } })
    const artifact = { runId: printed.data?.id ?? '', artifactName: 'hello.txt' }
    const downloaded = await client.getRunArtifact({ params: { path: artifact }, parseAs: 'arrayBuffer' })
    const [finishedId, queuedId] = [finished.data?.id ?? '', queued.data?.id ?? '']
    for (const runId of [finishedId, queuedId]) await client.getRun({ params: { path: { runId } } })
    await client.queueRemoteRunBatch({
      body: { runs: [{ workflowId, variableData: { name: 'Ada' }, delaySeconds: 3600 }] },
    })
    await client.getWorkflowsDocument()
    await client.getUsage({ params: { query: { from: '2026-11-01', to: '2026-11-30' } } })
    await client.createRunToken({ body: { runId: queuedId, expiresInSeconds: 60 } })
    await client.cancelRun({ params: { path: { runId: queuedId } } })
    await client.rerunRun({ params: { path: { runId: queuedId } } })
    await client.rerunRun({ params: { path: { runId: finishedId } }, body: { variableData: { name: 'Grace' } } })
    await client.rerunRun({ params: { path: { runId: finishedId } }, body: { fromStep: 'fetch' } })
    const cancelling = await client.bulkCancelRuns({ body: { tag: ['none'] } })
    await client.bulkRerunRuns({ body: { status: ['failed'], createdBefore: '2020-01-01T00:00:00Z' } })
    await client.getBulkAction({ params: { path: { bulkActionId: cancelling.data?.id ?? '' } } })
    await client.streamRunEvents({ params: { path: { runId: finishedId } }, parseAs: 'text' })
    await client.streamRunEvents({ params: { path: { runId: finishedId }, header: { 'Last-Event-ID': '99' } } })
    const page = await client.listRuns({
      params: { query: { limit: 1, workflowId, createdAfter: '2020-01-01T00:00:00Z' } },
    })
    const cursor = page.data?.nextCursor ?? ''
    await client.listRuns({ params: { query: { limit: 1, workflowId, createdAfter: '2020-01-01T00:00:00Z', cursor } } })
    await client.deleteRun({ params: { path: { runId: finishedId } } })
    await callDeploymentOperations(client)
    await callScheduleOperations(client)
    await callWaitOperations(client)
    await callWebhookOperations(client)
    await callNotificationOperations(client)
    await callValueOperations(client)
    await callFileOperations(client)
    await callWorkerOperations(client)
    const leased = await client.getRun({ params: { path: { runId: await leasedRun(service, account) } } })
    const deployment = { path: { deploymentId: leased.data?.deploymentId ?? '' } }
    await client.getDeploymentBundle({ params: deployment, parseAs: 'arrayBuffer' })

    expect(takeViolations()).toEqual([])
    expect(Buffer.from(downloaded.data ?? new ArrayBuffer()).toString()).toBe('Hello')
    const ofRuns = [
      200, 200, 200, 200, 202, 200, 200, 200, 200, 202, 200, 200, 201, 200, 202, 202, 400, 202, 202, 200, 200, 204, 200,
      200, 204,
    ]
    const ofDeployments = [201, 200, 200, 200]
    const ofSchedules = [201, 200, 200, 200, 202, 204]
    const ofWebhooks = [201, 200, 200, 200, 200, 202, 200, 202, 202, 204]
    const ofNotifications = [201, 200, 200, 200, 202, 204]
    const ofValues = [200, 200, 200, 200, 204, 204]
    const ofFiles = [201, 200, 204]
    const ofWaits = [202, 201, 200, 200, 200]
    // The claimed run has neither a browser context nor a file: 404.
    const ofWorkers = [
      200, 200, 202, 202, 202, 200, 204, 200, 204, 204, 204, 404, 404, 200, 200, 200, 200, 204, 204, 200, 200,
    ]
    const afterRuns = [
      ...ofDeployments,
      ...ofSchedules,
      ...ofWaits,
      ...ofWebhooks,
      ...ofNotifications,
      ...ofValues,
      ...ofFiles,
      ...ofWorkers,
    ]
    expect(statuses).toEqual([...ofRuns, ...afterRuns])
    expect([...called].sort()).toEqual(operationIds('execution').sort())
  })

  test('no violations in calls of every operation of the Browser Context API', async () => {
    const { key: apiKey } = await service.createAccount()
    const { statuses, takeViolations, fetch } = record('browserContext')
    const baseUrl = proxies.browserContext.url
    const { client, called } = recordCalls(createBrowserContextClient({ apiKey, baseUrl, fetch }))

    const created = await client.createBrowserContext({ body: { name: 'Shop, signed in' } })
    await client.createBrowserContext()
    const params = { path: { browserContextId: created.data?.id ?? '' } }
    await client.getBrowserContext({ params })
    await client.putStorageState({ params, body: state })
    expect((await client.getStorageState({ params })).data).toEqual(state)
    await client.listBrowserContextVersions({ params })
    const version = { path: { ...params.path, version: 1 } }
    await client.restoreBrowserContextVersion({ params: version })
    await client.updateBrowserContext({ params, body: { name: 'Shop' } })
    const signIn = { workflowId: 'sign-in', variableData: { user: 'ada', password: 'a-long-secret' } }
    await client.setSignIn({ params, body: signIn })
    await client.getSignIn({ params })
    await client.signInNow({ params })
    await client.deleteSignIn({ params })
    const page = await client.listBrowserContexts({ params: { query: { limit: 1 } } })
    await client.listBrowserContexts({ params: { query: { limit: 1, cursor: page.data?.nextCursor ?? '' } } })
    await client.deleteBrowserContext({ params })

    expect(takeViolations()).toEqual([])
    expect(statuses).toEqual([201, 201, 200, 204, 200, 200, 200, 200, 200, 200, 202, 204, 200, 200, 204])
    expect([...called].sort()).toEqual(operationIds('browserContext').sort())
  })

  test('no violations in the responses to invalid requests', async () => {
    const { key } = await service.createAccount()
    const { statuses, takeViolations, fetch } = record('execution')
    const baseUrl = proxies.execution.url
    const client = createExecutionClient({ apiKey: key, baseUrl, fetch })
    const withUnknownKey = createExecutionClient({ apiKey: crypto.randomUUID(), baseUrl, fetch })
    const runId = crypto.randomUUID()
    const path = { workflowId: 'greet' }
    const header = { 'Idempotency-Key': 'once' }
    const query = { delaySeconds: 3600 }

    await withUnknownKey.listRuns()
    await client.getRun({ params: { path: { runId } } })
    await client.listRuns({ headers: { Accept: 'image/png' } })
    await client.queueRemoteRun({ params: { path }, body: { variableData: {} } })
    await client.queueRemoteRun({ params: { path, header, query }, body: { variableData: { name: 'Ada' } } })
    await client.queueRemoteRun({ params: { path, header, query }, body: { variableData: { name: 'Grace' } } })

    expect(statuses).toEqual([401, 404, 406, 400, 202, 409])
    expect(takeViolations().filter(({ location }) => location[0] !== 'request')).toEqual([])
  })

  test.each(['{"words":812}', '[1]', '"text"'])('no violations in the JSON artifact %s', async (json) => {
    const account = await service.createAccount()
    const { takeViolations, fetch } = record('execution')
    const client = createExecutionClient({ apiKey: account.key, baseUrl: proxies.execution.url, fetch })
    const path = { runId: await queueRun(service, account), artifactName: 'report.json' }
    await putArtifact(service, path.runId, 'application/json', json, path.artifactName)
    const { data } = await client.getRunArtifact({ params: { path }, parseAs: 'json' })
    expect(data).toEqual(JSON.parse(json))
    expect(takeViolations()).toEqual([])
  })

  test('a request that violates the document', async () => {
    const { key: apiKey } = await service.createAccount()
    const { statuses, takeViolations, fetch } = record('execution')
    const client = createExecutionClient({ apiKey, baseUrl: proxies.execution.url, fetch })
    await client.listRuns({ params: { query: { limit: 1000 } } })
    expect(statuses).toEqual([400])
    expect(takeViolations()).toMatchObject([{ location: ['request', 'query', 'limit'] }])
  })

  test('a response that violates the document', async () => {
    const headers = { 'Content-Type': 'application/json', 'X-Request-Id': crypto.randomUUID() }
    const broken = createServer((_request, response) => response.writeHead(200, headers).end('{"data":{}}'))
    await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`
    const proxy = await startPrismProxy('execution.v1', address)
    const client = createExecutionClient({ apiKey: crypto.randomUUID(), baseUrl: proxy.url })
    await client.listWorkflows()
    const violations = proxy.takeViolations()
    proxy.stop()
    broken.close()
    expect(violations.map(({ location }) => location.join('/'))).toContain('response/body/data')
  })
})

async function callWaitOperations(client: ExecutionClient): Promise<void> {
  const approve = { path: { workflowId: 'approve' }, query: { delaySeconds: 3600 } }
  const { data } = await client.queueRemoteRun({ params: approve, body: { variableData: {} } })
  const path = { runId: data?.id ?? '', name: 'approval' }
  await client.createWaitLink({ params: { path }, body: { expiresInSeconds: 60 } })
  await client.completeWait({ params: { path }, body: { value: { approved: true } } })
  await client.listRunWaits({ params: { path } })
  await client.listWaits({ params: { query: { kind: 'answer', status: 'completed' } } })
}

async function callDeploymentOperations(client: ExecutionClient): Promise<void> {
  const body = reverseText('1.0.0')
  const created = await client.createDeployment({ body })
  await client.createDeployment({ body })
  await client.listDeployments({ params: { query: { limit: 1 } } })
  const path = { deploymentId: created.data?.id ?? '' }
  await client.activateDeployment({ params: { path }, body: {} })
}

async function callScheduleOperations(client: ExecutionClient): Promise<void> {
  const created = await client.createSchedule({
    body: { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 7 * * MON-FRI', timeZone: 'Europe/Berlin' },
  })
  const path = { scheduleId: created.data?.id ?? '' }
  await client.listSchedules({ params: { query: { limit: 1 } } })
  await client.getSchedule({ params: { path } })
  await client.updateSchedule({ params: { path }, body: { paused: true } })
  await client.triggerSchedule({ params: { path } })
  await client.deleteSchedule({ params: { path } })
}

async function callWorkerOperations(client: ExecutionClient): Promise<void> {
  const params = { path: { workerId: crypto.randomUUID() } }
  await client.registerWorker({
    params,
    body: { ...newWorker, deployed: false, workflows: newWorker.workflows.map(withDefaults) },
  })
  await client.listWorkers()
  const queued = { path: { workflowId: 'send-invoice' } }
  const variableData = { orderId: 'A-1001' }
  for (let count = 0; count < 3; count++) await client.queueRemoteRun({ params: queued, body: { variableData } })
  const { data } = await client.claimRuns({ params, body: { countMax: 3, waitSeconds: 0, executing: [] } })
  const attempts = (data?.data ?? []).map(({ runId, attempt }) => ({ runId, attempt }))
  await client.claimRuns({ params, body: { countMax: 1, waitSeconds: 0, executing: attempts } })
  await client.renewLeases({ params, body: { leases: attempts } })
  const [completed, suspended, returned] = attempts.map((path) => ({ path })) as [Attempt, Attempt, Attempt]
  const step = { path: { ...completed.path, stepName: 'charge' } }
  await client.putRunStep({ params: step, body: { value: { paymentId: 'p1' } } })
  const events = [{ type: 'log', level: 'info', message: 'Charging' } as const]
  await client.appendRunEvents({ params: completed, body: { position: 0, events } })
  const artifact = { path: { ...completed.path, artifactName: 'invoice.txt' } }
  await client.putAttemptArtifact({
    params: artifact,
    body: { mediaType: 'text/plain', content: 'SGVsbG8=', evidence: false },
  })
  await client.getAttemptBrowserContext({ params: completed })
  await client.getAttemptFile({ params: { path: { ...completed.path, fileId: crypto.randomUUID() } } })
  await client.getLiveViews({ params: completed })
  const view = { path: { ...completed.path, viewId: crypto.randomUUID() } }
  await client.updateLiveView({ params: view, body: { waitForCommands: true } })
  await client.completeAttempt({ params: completed, body: { outcome: 'succeeded', output: { invoice: 'I-1' } } })
  const waits = [{ kind: 'sleep' as const, name: 'pause', seconds: 3600 }]
  await client.suspendAttempt({ params: suspended, body: { waits, names: ['pause'], suspend: true } })
  await client.handBackAttempt({ params: returned, body: {} })
  await client.deleteWorker({ params })
}

interface Attempt {
  path: { runId: string; attempt: number }
}

const withDefaults = (workflow: (typeof newWorker.workflows)[number]) => {
  return { ...workflow, timeLimitSeconds: 300, deprecated: false }
}

async function callValueOperations(client: ExecutionClient): Promise<void> {
  const [secret, setting] = [{ path: { name: 'SHOP_TOKEN' } }, { path: { name: 'SHOP_URL' } }]
  await client.putSecret({ params: secret, body: { value: '4f1c0d0f2c5b1f0d' } })
  await client.putSetting({ params: setting, body: { value: 'https://shop.example.com' } })
  await client.listSecrets({ params: { query: { limit: 1 } } })
  await client.listSettings({ params: { query: { limit: 1 } } })
  await client.deleteSecret({ params: secret })
  await client.deleteSetting({ params: setting })
}

async function callFileOperations(client: ExecutionClient): Promise<void> {
  const body = new Blob(['Hello'], { type: 'text/plain' })
  const created = await client.createFile({ params: { query: { name: 'hello.txt' } }, body })
  const path = { fileId: created.data?.id ?? '' }
  await client.getFile({ params: { path }, parseAs: 'text' })
  await client.deleteFile({ params: { path } })
}

async function callNotificationOperations(client: ExecutionClient): Promise<void> {
  const created = await client.createNotificationRule({
    body: { name: 'Failures', events: ['run.failed'], channel: 'slack', url: 'https://localhost/services' },
  })
  const path = { ruleId: created.data?.id ?? '' }
  await client.listNotificationRules({ params: { query: { limit: 1 } } })
  await client.getNotificationRule({ params: { path } })
  await client.updateNotificationRule({ params: { path }, body: { enabled: false } })
  await client.testNotificationRule({ params: { path } })
  await client.deleteNotificationRule({ params: { path } })
}

async function callWebhookOperations(client: ExecutionClient): Promise<void> {
  const created = await client.createWebhookEndpoint({
    body: { url: 'https://localhost/hooks', events: ['run.failed'] },
  })
  const path = { endpointId: created.data?.id ?? '' }
  await client.listWebhookEndpoints({ params: { query: { limit: 1 } } })
  await client.getWebhookEndpoint({ params: { path } })
  await client.updateWebhookEndpoint({ params: { path }, body: { enabled: false } })
  await client.rotateWebhookSecret({ params: { path } })
  const test = await client.sendTestWebhook({ params: { path } })
  await client.listWebhookDeliveries({ params: { path, query: { status: 'pending' } } })
  await client.redeliverWebhook({ params: { path: { ...path, deliveryId: test.data?.id ?? '' } } })
  await client.redeliverWebhooks({ params: { path }, body: { since: '2026-11-20T09:30:00Z' } })
  await client.deleteWebhookEndpoint({ params: { path } })
}
