/** An account with a resource of every type. Each contains a value that is nowhere else. */
import type { TestAccount, TestService } from '../support/service.ts'
import { newWorker } from './example-runs.ts'
import {
  createContext,
  createFile,
  createNotificationRule,
  createSchedule,
  createWebhookEndpoint,
  putArtifact,
  putState,
  queueRun,
  registerWorker,
  reverseText,
  send,
  sendTestWebhook,
  storageStateFor,
} from './requests.ts'

export interface CanaryAccount {
  account: TestAccount
  /** By where the value is. */
  canaries: Record<string, string>
  /** The ids of its resources, by the names of path parameters. */
  ids: Record<string, string[]>
}

/** The definition of a remote workflow, with the variables and secrets of the worker of requests.ts. */
export function remoteWorkflow(id: string) {
  return { ...newWorker.workflows[0], id }
}

/** A queued run of a remote workflow: ready, unless the query delays it. */
export function queueRemote(
  service: TestService,
  account: TestAccount,
  workflowId: string,
  orderId: string,
  query = '',
) {
  const variableData = { orderId, token: crypto.randomUUID() }
  return queueRun(service, account, { path: { workflowId }, query, body: { variableData } })
}

export async function createCanaryAccount(service: TestService): Promise<CanaryAccount> {
  const account = await service.createAccount()
  const canaries: Record<string, string> = {}
  const canary = (name: string) => {
    canaries[name] = crypto.randomUUID()
    return canaries[name]
  }
  const deploymentId = await deploy(service, account, canary('code and schema'))
  const greeted = await runOfDeployment(service, account, canary)
  const remote = await runOfWorker(service, account, canary)
  const browserContextId = await createContext(service, account, canary('context'))
  await putState(service, account, browserContextId, storageStateFor(`${canary('storage state')}.example`))
  const fileId = await createFile(service, account, Buffer.from(canary('file')))
  const variableData = { name: canary('schedule') }
  const scheduleId = await createSchedule(service, account, { variableData })
  const endpointId = await createWebhookEndpoint(service, account, { url: `https://localhost/${canary('endpoint')}` })
  const deliveryId = await sendTestWebhook(service, account, endpointId)
  const ruleId = await createNotificationRule(service, account, { name: canary('notification rule') })
  const filter = { body: { tag: [canary('bulk action')] } }
  const bulkAction = await send(service, 'bulkCancelRuns', account.key, filter).expect(202)
  await service.change('UPDATE api_keys SET name = ? WHERE account_id = ?', canary('key'), account.id)
  return {
    account,
    canaries,
    ids: {
      ...{ browserContextId: [browserContextId], scheduleId: [scheduleId], endpointId: [endpointId] },
      ruleId: [ruleId],
      fileId: [fileId],
      ...{
        deliveryId: [deliveryId],
        bulkActionId: [bulkAction.body.id],
        deploymentId: [deploymentId, greeted.deploymentId],
      },
      ...{ workerId: [remote.workerId], runId: [greeted.runId, greeted.answered, remote.runId, remote.queued] },
    },
  }
}

type Canary = (name: string) => string

async function deploy(service: TestService, account: TestAccount, description: string): Promise<string> {
  const body = reverseText('1.0.0', { description, properties: { text: { type: 'string' } } })
  return (await send(service, 'createDeployment', account.key, { body }).expect(201)).body.id
}

/** A finished run of a deployed workflow, with everything that a run may have. */
async function runOfDeployment(service: TestService, account: TestAccount, canary: Canary) {
  const query = `delaySeconds=3600&tag=${canary('tag')}`
  const runId = await queueRun(service, account, { query, body: { variableData: { name: canary('variables') } } })
  await putArtifact(service, runId, 'text/plain', canary('artifact'))
  const finished =
    "status = 'succeeded', delayed = 0, attempts = 1, started_at = ?, finished_at = ?, output = ?, progress = ?"
  const at = Date.now()
  const output = JSON.stringify({ greeting: canary('output') })
  const progress = JSON.stringify({ percent: 50, message: canary('progress') })
  await service.change(`UPDATE runs SET ${finished} WHERE id = ?`, at, at, output, progress, runId)
  const log = JSON.stringify({ attempt: 1, level: 'info', message: canary('log') })
  const columns = 'run_id, sequence, at, type, data'
  await service.change(`INSERT INTO run_events (${columns}) VALUES (?, 2, 1, 'log', ?)`, runId, log)
  const waiting = { path: { workflowId: 'approve' }, query: 'delaySeconds=3600', body: { variableData: {} } }
  const answered = await queueRun(service, account, waiting)
  const answer = {
    path: { runId: answered, name: 'approval' },
    body: { value: { approved: true, reason: canary('answer') } },
  }
  await send(service, 'completeWait', account.key, answer).expect(200)
  const { body } = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
  return { runId, answered, deploymentId: body.deploymentId as string }
}

/** A run that a worker of the account's first key executes, and one that it has not claimed. */
async function runOfWorker(service: TestService, account: TestAccount, canary: Canary) {
  const members = { name: canary('worker'), host: canary('host'), workflows: [remoteWorkflow('theirs')] }
  const workerId = await registerWorker(service, account, members)
  const runId = await queueRemote(service, account, 'theirs', canary('claimed variables'))
  const claim = { path: { workerId }, body: { countMax: 1 } }
  await send(service, 'claimRuns', account.key, claim).expect(200)
  const path = { runId, attempt: '1', stepName: 'charge' }
  await send(service, 'putRunStep', account.key, { path, body: { value: canary('step') } }).expect(204)
  const queued = await queueRemote(service, account, 'theirs', canary('queued variables'), 'delaySeconds=3600')
  // However long the requests take: a worker that has ended leaves its id to other keys, and its runs to the queue.
  const later = Date.now() + 3_600_000
  await service.change('UPDATE workers SET alive_until = ? WHERE account_id = ?', later, account.id)
  await service.change('UPDATE runs SET lease_expires_at = ? WHERE id = ?', later, runId)
  return { workerId, runId, queued }
}
