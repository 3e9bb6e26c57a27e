/** Each operation that changes or reveals something leaves an entry in the audit log, or is exempt for a stated reason. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Action } from '../../src/domain/audit-log/audit-log.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type OperationId, operations } from './document.ts'
import { addressOf, sendRequest, validRequest } from './requests.ts'

const audited: Partial<Record<OperationId, Action>> = {
  bulkCancelRuns: 'bulkAction.cancelStarted',
  bulkRerunRuns: 'bulkAction.rerunStarted',
  deleteRun: 'run.deleted',
  cancelRun: 'run.cancelled',
  rerunRun: 'run.repeated',
  createRunToken: 'run.tokenCreated',
  completeWait: 'wait.answered',
  createWaitLink: 'wait.linkCreated',
  deleteWorker: 'worker.removed',
  putSecret: 'secret.stored',
  deleteSecret: 'secret.deleted',
  putSetting: 'setting.stored',
  deleteSetting: 'setting.deleted',
  createFile: 'file.created',
  deleteFile: 'file.deleted',
  createDeployment: 'workflows.deployed',
  activateDeployment: 'workflows.rolledBack',
  createWebhookEndpoint: 'webhookEndpoint.created',
  updateWebhookEndpoint: 'webhookEndpoint.changed',
  deleteWebhookEndpoint: 'webhookEndpoint.deleted',
  rotateWebhookSecret: 'webhookEndpoint.secretRotated',
  sendTestWebhook: 'webhookEndpoint.tested',
  redeliverWebhook: 'webhookEndpoint.redelivered',
  redeliverWebhooks: 'webhookEndpoint.redelivered',
  createNotificationRule: 'notificationRule.created',
  updateNotificationRule: 'notificationRule.changed',
  deleteNotificationRule: 'notificationRule.deleted',
  testNotificationRule: 'notificationRule.tested',
  createSchedule: 'schedule.created',
  updateSchedule: 'schedule.changed',
  deleteSchedule: 'schedule.deleted',
  triggerSchedule: 'schedule.triggered',
  createBrowserContext: 'browserContext.created',
  updateBrowserContext: 'browserContext.renamed',
  deleteBrowserContext: 'browserContext.deleted',
  restoreBrowserContextVersion: 'browserContext.restored',
  getStorageState: 'browserContext.stateRead',
  putStorageState: 'browserContext.stateReplaced',
  setSignIn: 'browserContext.signInSet',
  deleteSignIn: 'browserContext.signInDeleted',
  signInNow: 'browserContext.signInRequested',
}

/** What changes something and is not audited, by the reason. Further operations that only read reveal no credential. */
const exempt: Record<string, readonly OperationId[]> = {
  'The run names the key that has queued it, and an entry for each would double the writes of the queue.': [
    'queueRemoteRun',
    'queueRemoteRunBatch',
  ],
  'A worker repeats it as a sign of life. Workflows that are new are audited as a deployment.': ['registerWorker'],
  'The run and its events say what its worker has done.': [
    ...(['claimRuns', 'renewLeases', 'putRunStep', 'appendRunEvents', 'putAttemptArtifact'] as const),
    ...(['completeAttempt', 'suspendAttempt', 'handBackAttempt', 'updateLiveView'] as const),
  ],
}

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service?.stop())

test('each operation is audited, exempt, or only reads', () => {
  const others = operations.filter(({ id }) => !audited[id] && !Object.values(exempt).flat().includes(id))
  expect(others.filter(({ method }) => method !== 'GET').map(({ id }) => id)).toEqual([])
})

test.each(Object.entries(audited))('%s is recorded as %s', async (id, action) => {
  const account = await service.createAccount()
  const operation = operations.find((each) => each.id === id)
  if (!operation) throw new Error(`There is no operation ${id}.`)
  const request = await validRequest(service, operation.id, account)
  const find = () =>
    service.rows<{ id: string; actor_kind: string; key_id: string }>(
      `SELECT audit_log.id, actor_kind, api_keys.id AS key_id FROM audit_log LEFT JOIN api_keys ON api_keys.id = actor_id
        WHERE audit_log.account_id = ? AND action = ?`,
      account.id,
      action,
    )
  const before = new Set((await find()).map((entry) => entry.id))
  const response = await sendRequest(addressOf(service, operation), request)
  expect(response.status, response.text).toBeLessThan(300)
  const entries = (await find()).filter((entry) => !before.has(entry.id))
  expect(entries).toEqual([{ id: expect.any(String), actor_kind: 'caller', key_id: expect.any(String) }])
})
