/** The Execution API: every operation of openapi/execution.v1.yaml, the scope that guards it, and its handler. */
import type { ExecutionV1Handlers } from '../../generated/execution.v1/server.ts'
import {
  type AccountValueDependencies,
  accountValueOperations,
} from '../domain/account-values/account-value-operations.ts'
import type { Principal } from '../domain/api-keys/api-key.ts'
import { type BulkActionDependencies, bulkOperations } from '../domain/bulk-actions/bulk-operations.ts'
import { type DeploymentDependencies, deploymentOperations } from '../domain/deployments/deployment-operations.ts'
import { type FileDependencies, fileOperations } from '../domain/files/file-operations.ts'
import {
  type NotificationOperationsDependencies,
  notificationOperations,
} from '../domain/notifications/notification-operations.ts'
import { notFound } from '../domain/problems.ts'
import { type WorkerDependencies, workerOperations } from '../domain/remote-workers/worker-operations.ts'
import { type QueueDependencies, queueOperations } from '../domain/run-api/queue-operations.ts'
import { type RunDependencies, runOperations } from '../domain/run-api/run-operations.ts'
import { type WaitDependencies, waitOperations } from '../domain/run-api/wait-operations.ts'
import { type ScheduleDependencies, scheduleOperations } from '../domain/schedules/schedule-operations.ts'
import { type UsageDependencies, usageOperations } from '../domain/statistics/usage-operations.ts'
import { type WebhookDependencies, webhookOperations } from '../domain/webhooks/webhook-operations.ts'
import { type WorkflowDependencies, workflowOperations } from '../domain/workflows/workflow-operations.ts'

type Handlers = ExecutionV1Handlers<Principal>

/** The scope that an API key needs. The stages read it from the document; a test compares this table with it. */
export const executionScopes = {
  queueRemoteRun: 'runs:write',
  queueRemoteRunBatch: 'runs:write',
  listRuns: 'runs:read',
  listWaits: 'runs:read',
  listRunWaits: 'runs:read',
  completeWait: 'waits:write',
  createWaitLink: 'waits:write',
  createRunToken: 'runs:read',
  getRun: 'runs:read',
  deleteRun: 'runs:write',
  cancelRun: 'runs:write',
  rerunRun: 'runs:write',
  bulkCancelRuns: 'runs:write',
  bulkRerunRuns: 'runs:write',
  getBulkAction: 'runs:read',
  streamRunEvents: 'runs:read',
  getRunArtifact: 'runs:read',
  listWorkflows: 'workflows:read',
  getWorkflow: 'workflows:read',
  getWorkflowsDocument: 'workflows:read',
  listDeployments: 'deployments:read',
  createDeployment: 'deployments:write',
  activateDeployment: 'deployments:write',
  listSchedules: 'schedules:read',
  createSchedule: 'schedules:write',
  getSchedule: 'schedules:read',
  updateSchedule: 'schedules:write',
  deleteSchedule: 'schedules:write',
  triggerSchedule: 'schedules:write',
  createFile: 'files:write',
  getFile: 'files:read',
  deleteFile: 'files:write',
  listSecrets: 'secrets:read',
  putSecret: 'secrets:write',
  deleteSecret: 'secrets:write',
  listSettings: 'secrets:read',
  putSetting: 'secrets:write',
  deleteSetting: 'secrets:write',
  listWebhookEndpoints: 'webhooks:read',
  createWebhookEndpoint: 'webhooks:write',
  getWebhookEndpoint: 'webhooks:read',
  updateWebhookEndpoint: 'webhooks:write',
  deleteWebhookEndpoint: 'webhooks:write',
  rotateWebhookSecret: 'webhooks:write',
  sendTestWebhook: 'webhooks:write',
  listWebhookDeliveries: 'webhooks:read',
  redeliverWebhook: 'webhooks:write',
  redeliverWebhooks: 'webhooks:write',
  listNotificationRules: 'notifications:read',
  createNotificationRule: 'notifications:write',
  getNotificationRule: 'notifications:read',
  updateNotificationRule: 'notifications:write',
  deleteNotificationRule: 'notifications:write',
  testNotificationRule: 'notifications:write',
  getDeploymentBundle: 'runs:execute',
  getUsage: 'runs:read',
  listWorkers: 'runs:read',
  registerWorker: 'runs:execute',
  deleteWorker: 'runs:execute',
  claimRuns: 'runs:execute',
  renewLeases: 'runs:execute',
  putRunStep: 'runs:execute',
  appendRunEvents: 'runs:execute',
  putAttemptArtifact: 'runs:execute',
  getAttemptBrowserContext: 'runs:execute',
  getAttemptFile: 'runs:execute',
  getLiveViews: 'runs:execute',
  updateLiveView: 'runs:execute',
  completeAttempt: 'runs:execute',
  suspendAttempt: 'runs:execute',
  handBackAttempt: 'runs:execute',
} satisfies Record<keyof Handlers, string>

export type ExecutionApiDependencies = QueueDependencies &
  RunDependencies &
  WaitDependencies &
  BulkActionDependencies &
  WorkflowDependencies &
  DeploymentDependencies &
  ScheduleDependencies &
  WebhookDependencies &
  AccountValueDependencies &
  FileDependencies &
  NotificationOperationsDependencies &
  UsageDependencies &
  WorkerDependencies

export function executionApi(dependencies: ExecutionApiDependencies): Handlers {
  const handlers: Handlers = {
    ...queueOperations(dependencies),
    ...runOperations(dependencies),
    ...waitOperations(dependencies),
    ...bulkOperations(dependencies),
    ...workflowOperations(dependencies),
    ...deploymentOperations(dependencies),
    ...scheduleOperations(dependencies),
    ...webhookOperations(dependencies),
    ...accountValueOperations(dependencies),
    ...fileOperations(dependencies),
    ...notificationOperations(dependencies),
    ...usageOperations(dependencies),
    ...workerOperations(dependencies),
  }
  return restrictRuns(handlers, dependencies)
}

type UntypedHandlers = Record<
  string,
  (request: { principal: Principal; path?: { runId?: string } }) => Promise<unknown>
>

/** For a key that is restricted to workflows, there are no runs of others. */
function restrictRuns(handlers: Handlers, { runs }: RunDependencies): Handlers {
  const restricted = Object.entries(handlers as unknown as UntypedHandlers).map(
    ([id, handle]): [string, typeof handle] => [
      id,
      async (request) => {
        const { principal, path } = request
        const { accountId, workflowIds } = principal
        const isOther =
          workflowIds && path?.runId !== undefined && !(await runs.isOf(accountId, path.runId, workflowIds))
        return isOther ? notFound('run') : handle(request)
      },
    ],
  )
  return Object.fromEntries(restricted) as unknown as Handlers
}
