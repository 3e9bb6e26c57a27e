/** For the samples of each operation, in any language: what to set up, and what to check afterwards. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { SampleLanguage } from '../../src/surfaces/docs/contracts.ts'
import type { OperationId } from '../operations/document.ts'
import { reverseText } from '../operations/requests.ts'
import { until } from '../support/service.ts'
import type { RunningSample } from './run-sample.ts'
import {
  claimDeployed,
  claimRun,
  claimWithContext,
  claimWithFile,
  contextPath,
  createContext,
  createContextWithState,
  createDelivery,
  createEndpoint,
  createRule,
  createSchedule,
  createSignIn,
  deploy,
  endpointPath,
  fileContent,
  finishRun,
  listIds,
  queue,
  queueAnswered,
  queueForWorker,
  reachWait,
  readRun,
  registerWorker,
  rulePath,
  rulesPath,
  type Setup,
  schedulePath,
  signInPath,
  statePath,
  storageState,
  storeValues,
  uploadFile,
} from './setups.ts'

export interface Execution extends Setup {
  lang: SampleLanguage
}

export interface Case {
  prepare?(setup: Setup): Promise<void>
  /** All languages share one setup, which takes most of the time. */
  onlyReads?: true
  /** Runs while the sample runs. */
  during?(execution: Execution, sample: RunningSample): Promise<void>
  check(execution: Execution, output: string): Promise<void> | void
  /** Expected number of requests. Default: 1. */
  requests?(lang: SampleLanguage): number
}

/** More than a page holds. */
const many = 101
/** The curl samples request one page and explain how to get the next. */
const pages = (lang: SampleLanguage) => (lang === 'curl' ? 1 : 2)
const shownIds = ({ lang }: Execution, ids: string[]) => (lang === 'curl' ? ids.slice(0, 100) : ids)

function expectAll(output: string, shown: (string | undefined)[]): void {
  for (const each of shown) expect(output).toContain(each)
}

function checkFile({ directory }: Execution): void {
  expect(readFileSync(join(directory, 'invoice.pdf'), 'utf8')).toBe(fileContent)
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

const cases: Record<OperationId, Case> = {
  getDeploymentBundle: {
    prepare: claimDeployed,
    check({ directory }) {
      expect(gunzipSync(readFileSync(join(directory, 'bundle.json.gz'))).toString()).toContain('"workflows"')
    },
  },
  getUsage: { onlyReads: true, check: (_, output) => expectAll(output, ['counted']) },
  listWorkers: { prepare: registerWorker, check: (_, output) => expectAll(output, ['billing']) },
  registerWorker: {
    async prepare({ environment }) {
      environment.WORKER_ID = crypto.randomUUID()
    },
    check: ({ environment }, output) => expectAll(output, [environment.WORKER_ID]),
  },
  deleteWorker: {
    prepare: claimRun,
    check: async (execution) => expect(await readRun(execution)).toMatchObject({ reason: 'workerStopped' }),
  },
  claimRuns: {
    prepare: queueForWorker,
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'A-1001']),
  },
  renewLeases: { prepare: claimRun, check: ({ environment }, output) => expectAll(output, [environment.RUN_ID]) },
  putRunStep: {
    prepare: claimRun,
    check: async ({ caller, environment }, output) => {
      const path = `/v1/execution/runs/${environment.RUN_ID}/attempts/1/steps/charge`
      expect((await caller.execution('PUT', path, { value: 'another result' })).status, output).toBe(409)
    },
  },
  appendRunEvents: {
    prepare: claimRun,
    check: async (execution) => expect(await readRun(execution)).toMatchObject({ status: 'running' }),
  },
  putAttemptArtifact: {
    prepare: claimRun,
    check: async (execution) => expect((await readRun(execution)).artifacts).toMatchObject([{ sizeBytes: 5 }]),
  },
  getAttemptBrowserContext: {
    prepare: claimWithContext,
    check({ directory, lang }, output) {
      const [{ name }] = JSON.parse(storageState).cookies
      expect(lang === 'curl' ? readFileSync(join(directory, 'storage-state.json'), 'utf8') : output).toContain(name)
    },
  },
  getAttemptFile: { prepare: claimWithFile, check: checkFile },
  getLiveViews: { prepare: claimRun, check: (_, output) => expectAll(output, ['liveViews']) },
  updateLiveView: {
    async prepare(setup) {
      await claimRun(setup)
      setup.environment.VIEW_ID = crypto.randomUUID()
    },
    check: (_, output) => expectAll(output, ['ended']),
  },
  completeAttempt: { prepare: claimRun, check: (_, output) => expectAll(output, ['succeeded']) },
  suspendAttempt: {
    prepare: claimRun,
    check: async (execution) => expect(await readRun(execution)).toMatchObject({ waitingFor: 'sleep' }),
  },
  handBackAttempt: {
    prepare: claimRun,
    check: async (execution) => expect(await readRun(execution)).toMatchObject({ status: 'queued' }),
  },
  listSchedules: {
    onlyReads: true,
    prepare: createSchedule,
    check: ({ environment }, output) => expectAll(output, [environment.SCHEDULE_ID]),
  },
  createSchedule: { check: (_, output) => expectAll(output, [':00:00.000Z']) },
  getSchedule: { onlyReads: true, prepare: createSchedule, check: (_, output) => expectAll(output, ['02-29T']) },
  listDeployments: {
    onlyReads: true,
    prepare: (setup) => deploy(setup, '1.0.0'),
    check: ({ environment }, output) => expectAll(output, [environment.DEPLOYMENT_ID, 'reverse-text']),
  },
  createDeployment: {
    async prepare({ directory }) {
      writeFileSync(join(directory, 'deployment.json'), JSON.stringify(reverseText('1.0.0')))
    },
    check: (_, output) => expectAll(output, ['reverse-text', '1.0.0']),
  },
  activateDeployment: {
    async prepare(setup) {
      await deploy(setup, '1.0.0')
      const deploymentId = setup.environment.DEPLOYMENT_ID
      await deploy(setup, '1.1.0')
      setup.environment.DEPLOYMENT_ID = deploymentId ?? ''
    },
    check: ({ environment }, output) => expectAll(output, [environment.DEPLOYMENT_ID]),
  },
  updateSchedule: { prepare: createSchedule, check: (_, output) => expectAll(output, ['T06:30:00.000Z']) },
  deleteSchedule: {
    prepare: createSchedule,
    async check(execution) {
      expect((await execution.caller.execution('GET', schedulePath(execution))).status).toBe(404)
    },
  },
  triggerSchedule: { prepare: createSchedule, check: (_, output) => expectAll(output, ['queued']) },
  listWaits: {
    onlyReads: true,
    prepare: reachWait,
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'approval']),
  },
  listRunWaits: {
    onlyReads: true,
    prepare: queueAnswered,
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'approval']),
  },
  completeWait: {
    prepare: (setup) => queue(setup, 'approve', {}, '?delaySeconds=1000'),
    check: (_, output) => expectAll(output, ['completed', 'approved']),
  },
  createWaitLink: {
    prepare: (setup) => queue(setup, 'approve', {}, '?delaySeconds=1000'),
    check: (_, output) => expectAll(output, ['/answer/']),
  },
  listSecrets: {
    onlyReads: true,
    prepare: storeValues,
    check: (_, output) => expectAll(output, ['SHOP_TOKEN', '1']),
  },
  createFile: {
    async prepare({ directory, environment }) {
      environment.FILE_NAME = 'invoice.pdf'
      writeFileSync(join(directory, 'invoice.pdf'), fileContent)
    },
    check: (_, output) => expectAll(output, [String(fileContent.length)]),
  },
  getFile: { onlyReads: true, prepare: uploadFile, check: checkFile },
  deleteFile: {
    prepare: uploadFile,
    async check({ caller, environment }) {
      expect((await caller.execution('GET', `/v1/execution/files/${environment.FILE_ID}`)).status).toBe(404)
    },
  },
  putSecret: { check: (_, output) => expectAll(output, ['SHOP_TOKEN', '1']) },
  deleteSecret: {
    prepare: storeValues,
    async check({ caller }) {
      expect((await caller.execution('GET', '/v1/execution/secrets')).body.data).toEqual([])
    },
  },
  listSettings: {
    onlyReads: true,
    prepare: storeValues,
    check: (_, output) => expectAll(output, ['SHOP_URL', 'https://shop.example.com']),
  },
  putSetting: { check: (_, output) => expectAll(output, ['SHOP_URL', 'https://shop.example.com']) },
  deleteSetting: {
    prepare: storeValues,
    async check({ caller }) {
      expect((await caller.execution('GET', '/v1/execution/settings')).body.data).toEqual([])
    },
  },
  listWebhookEndpoints: {
    onlyReads: true,
    prepare: createEndpoint,
    check: ({ environment }, output) => expectAll(output, [environment.ENDPOINT_ID]),
  },
  createWebhookEndpoint: { check: (_, output) => expectAll(output, ['whsec_']) },
  getWebhookEndpoint: {
    onlyReads: true,
    prepare: createEndpoint,
    check: (_, output) => expectAll(output, ['https://localhost/hooks']),
  },
  updateWebhookEndpoint: { prepare: createEndpoint, check: (_, output) => expectAll(output, ['run.timedOut']) },
  deleteWebhookEndpoint: {
    prepare: createEndpoint,
    async check(execution) {
      expect((await execution.caller.execution('GET', endpointPath(execution))).status).toBe(404)
    },
  },
  rotateWebhookSecret: { prepare: createEndpoint, check: (_, output) => expectAll(output, ['whsec_']) },
  sendTestWebhook: { prepare: createEndpoint, check: (_, output) => expectAll(output, ['pending']) },
  listWebhookDeliveries: {
    onlyReads: true,
    prepare: createDelivery,
    check: ({ environment }, output) => expectAll(output, [environment.DELIVERY_ID]),
  },
  redeliverWebhook: {
    prepare: createDelivery,
    check: ({ environment }, output) => expectAll(output, [environment.DELIVERY_ID, 'pending']),
  },
  redeliverWebhooks: { prepare: createDelivery, check: (_, output) => expectAll(output, ['0']) },
  listNotificationRules: {
    onlyReads: true,
    prepare: createRule,
    check: ({ environment }, output) => expectAll(output, [environment.RULE_ID]),
  },
  createNotificationRule: {
    check: async ({ caller }, output) => {
      const { body } = await caller.execution('GET', rulesPath)
      expectAll(output, [body.data[0].id])
    },
  },
  getNotificationRule: {
    onlyReads: true,
    prepare: createRule,
    check: (_, output) => expectAll(output, ['Failed runs']),
  },
  updateNotificationRule: { prepare: createRule, check: (_, output) => expectAll(output, ['run.timedOut']) },
  deleteNotificationRule: {
    prepare: createRule,
    async check(execution) {
      expect((await execution.caller.execution('GET', rulePath(execution))).status).toBe(404)
    },
  },
  testNotificationRule: { prepare: createRule, check: (_, output) => expectAll(output, ['pending']) },
  queueRemoteRun: {
    async check({ caller }, output) {
      const { body } = await caller.execution('GET', '/v1/execution/runs')
      expect(body.data).toEqual([expect.objectContaining({ workflowId: 'count-words' })])
      expect(body.data[0].variableData).toEqual({ path: 'README.md', top: 5 })
      expectAll(output, [body.data[0].id, 'queued'])
    },
  },
  queueRemoteRunBatch: {
    async check({ caller }, output) {
      const { body } = await caller.execution('GET', '/v1/execution/runs')
      expect(body.data.map(({ variableData }: { variableData: object }) => variableData)).toEqual([
        { path: 'LICENSE', top: 5 },
        { path: 'README.md', top: 5 },
      ])
      expectAll(output, [body.data[0].id, body.data[1].id])
    },
  },
  listRuns: {
    onlyReads: true,
    async prepare(setup) {
      await Promise.all(range(many).map(() => queue(setup, 'greet', { name: 'Ada' }, '?delaySeconds=1000')))
    },
    requests: pages,
    async check(execution, output) {
      const ids = await listIds(execution.caller.execution, '/v1/execution/runs')
      expect(ids).toHaveLength(many)
      expectAll(output, shownIds(execution, ids))
    },
  },
  createRunToken: {
    prepare: (setup) => queue(setup, 'greet', { name: 'Ada' }, '?delaySeconds=1000'),
    check: (_, output) => expect(output).toMatch(/rt_[A-Za-z0-9_-]{91}/),
  },
  getRun: {
    onlyReads: true,
    async prepare(setup) {
      await queue(setup, 'greet', { name: 'Ada' })
      await finishRun(setup)
    },
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'succeeded', 'Hello, Ada!']),
  },
  deleteRun: {
    async prepare(setup) {
      await queue(setup, 'greet', { name: 'Ada' })
      await finishRun(setup)
    },
    async check({ caller, environment }) {
      expect((await caller.execution('GET', `/v1/execution/runs/${environment.RUN_ID}`)).status).toBe(404)
    },
  },
  cancelRun: {
    prepare: (setup) => queue(setup, 'greet', { name: 'Ada' }, '?delaySeconds=1000'),
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'cancelled']),
  },
  rerunRun: {
    async prepare(setup) {
      await queue(setup, 'greet', { name: 'Ada' })
      await finishRun(setup)
    },
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'queued']),
  },
  bulkCancelRuns: {
    prepare: (setup) => queue(setup, 'greet', { name: 'Ada' }, '?delaySeconds=1000&tag=customer:42'),
    check: (_, output) => expectAll(output, ['cancel', 'working']),
  },
  bulkRerunRuns: { check: (_, output) => expectAll(output, ['rerun', 'working']) },
  getBulkAction: {
    async prepare({ caller, environment }) {
      const { status, body } = await caller.execution('POST', '/v1/execution/runs/bulk-cancel', { tag: ['none'] })
      expect(status).toBe(202)
      environment.BULK_ACTION_ID = body.id
    },
    check: (_, output) => expectAll(output, ['cancel', '0']),
  },
  streamRunEvents: {
    prepare: (setup) => queue(setup, 'hold', { file: join(setup.directory, 'go') }),
    async during({ directory }, sample) {
      const shown = () => sample.output.includes('Holding') || sample.exitCode !== undefined
      await until('the sample has printed an event of the running run', shown)
      expect(sample.exitCode, sample.output).toBeUndefined()
      writeFileSync(join(directory, 'go'), '')
    },
    check: (_, output) => expect(output).toMatch(/queued.*running.*Holding.*Released.*succeeded/s),
  },
  getRunArtifact: {
    onlyReads: true,
    async prepare(setup) {
      await queue(setup, 'print', {})
      await finishRun(setup)
      setup.environment.ARTIFACT_NAME = 'hello.txt'
    },
    check: ({ directory }) => expect(readFileSync(join(directory, 'hello.txt'), 'utf8')).toBe('Hello'),
  },
  listWorkflows: {
    check: (_, output) => expectAll(output, ['count-words', 'greet', 'Hold until a file exists']),
  },
  getWorkflow: {
    check: (_, output) => expectAll(output, ['How many of the most frequent words to return.', 'maximum']),
  },
  getWorkflowsDocument: {
    onlyReads: true,
    check: (_, output) =>
      expectAll(output, ['/v1/execution/queue-remote/count-words', '/v1/execution/queue-remote/greet']),
  },
  listBrowserContexts: {
    onlyReads: true,
    async prepare(setup) {
      await Promise.all(range(many).map((index) => createContext(setup, `Shop ${index}`)))
    },
    requests: pages,
    async check(execution, output) {
      const ids = await listIds(execution.caller.browserContext, '/alpha/browser-contexts')
      expect(ids).toHaveLength(many)
      expectAll(output, shownIds(execution, ids))
    },
  },
  createBrowserContext: {
    async check({ caller }, output) {
      const { body } = await caller.browserContext('GET', '/alpha/browser-contexts')
      expect(body.data).toEqual([expect.objectContaining({ name: 'Shop, signed in' })])
      expectAll(output, [body.data[0].id])
    },
  },
  getBrowserContext: {
    onlyReads: true,
    prepare: createContextWithState,
    check: ({ environment }, output) => expectAll(output, [environment.BROWSER_CONTEXT_ID, 'ready', '127.0.0.1']),
  },
  updateBrowserContext: {
    prepare: createContext,
    async check(execution, output) {
      const { body } = await execution.caller.browserContext('GET', contextPath(execution))
      expect(body.name).not.toBe('Shop')
      expectAll(output, [execution.environment.BROWSER_CONTEXT_ID, body.name])
    },
  },
  deleteBrowserContext: {
    prepare: createContext,
    async check(execution) {
      expect((await execution.caller.browserContext('GET', contextPath(execution))).status).toBe(404)
    },
  },
  listBrowserContextVersions: {
    onlyReads: true,
    prepare: createContextWithState,
    check: (_, output) => expectAll(output, ['1', '127.0.0.1']),
  },
  restoreBrowserContextVersion: {
    async prepare(setup) {
      await createContextWithState(setup)
      const empty = { cookies: [], origins: [] }
      expect((await setup.caller.browserContext('PUT', statePath(setup), empty)).status).toBe(204)
    },
    async check(execution) {
      const { body } = await execution.caller.browserContext('GET', statePath(execution))
      expect(body).toEqual(JSON.parse(storageState))
    },
  },
  getSignIn: {
    onlyReads: true,
    prepare: createSignIn,
    check: (_, output) => expectAll(output, ['sign-in', 'unknown']),
  },
  setSignIn: {
    prepare: createContext,
    async check(execution, output) {
      const { body } = await execution.caller.browserContext('GET', signInPath(execution))
      expectAll(output, [body.status, 'unknown'])
      expect(body).toMatchObject({ workflowId: 'sign-in', hasTotp: true, checkEverySeconds: 3600 })
    },
  },
  deleteSignIn: {
    prepare: createSignIn,
    async check(execution) {
      expect((await execution.caller.browserContext('GET', signInPath(execution))).status).toBe(404)
    },
  },
  signInNow: {
    prepare: createSignIn,
    async check(execution, output) {
      const { body } = await execution.caller.browserContext('GET', signInPath(execution))
      expectAll(output, [body.history[0].runId])
    },
  },
  getStorageState: {
    onlyReads: true,
    prepare: createContextWithState,
    check({ directory }) {
      const written = JSON.parse(readFileSync(join(directory, 'state.json'), 'utf8'))
      expect(written).toEqual(JSON.parse(storageState))
    },
  },
  putStorageState: {
    async prepare(setup) {
      await createContext(setup)
      writeFileSync(join(setup.directory, 'state.json'), storageState)
    },
    async check(execution) {
      expect((await execution.caller.browserContext('GET', statePath(execution))).body).toEqual(
        JSON.parse(storageState),
      )
    },
  },
}

export function caseFor(operationId: OperationId): Case {
  const found = cases[operationId]
  if (!found) throw new Error(`test/samples/cases.ts has no case for ${operationId}.`)
  return found
}
