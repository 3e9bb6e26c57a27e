import { knownScopes } from '../openapi/served-documents.ts'
import { Cursors } from '../storage/cursors.ts'
import { AccountValues } from './account-values/account-values.ts'
import { Accounts } from './accounts/accounts.ts'
import { SecondFactors } from './accounts/second-factors.ts'
import { Sessions } from './accounts/sessions.ts'
import { SignInLinks } from './accounts/sign-in-links.ts'
import { Users } from './accounts/users.ts'
import { ApiKeys } from './api-keys/api-keys.ts'
import { RunTokens } from './api-keys/run-tokens.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import { Refusals } from './audit-log/refusals.ts'
import { BrowserContexts } from './browser-contexts/browser-contexts.ts'
import { BulkActions } from './bulk-actions/bulk-actions.ts'
import { BulkWorker } from './bulk-actions/bulk-worker.ts'
import type { WorkflowRegistry } from './deployments/deployments.ts'
import { RunArtifacts } from './run-api/artifacts.ts'
import { RunFeed } from './run-api/run-feed.ts'
import { Runs } from './run-api/runs.ts'
import { Waits } from './run-api/waits.ts'
import { Scheduler } from './schedules/scheduler.ts'
import { Schedules } from './schedules/schedules.ts'
import { RunStatistics } from './statistics/run-statistics.ts'
import { WebhookDeliveries } from './webhooks/webhook-deliveries.ts'
import { WebhookEndpoints } from './webhooks/webhook-endpoints.ts'
import { createWorkerDomain, type WorkerDomainOptions } from './worker-domain.ts'

type Setting = 'QUEUED_RUNS_MAX' | 'SCHEDULES_MAX' | 'SESSION_IDLE_MINUTES' | 'WEBHOOK_PRIVATE_ADDRESSES'

export interface DomainOptions<Registry extends WorkflowRegistry> extends WorkerDomainOptions<Setting> {
  workflows: Registry
  /** Days to keep artifacts of runs. */
  artifactRetentionDays: number
}

/** The domain objects of a service. */
export type Domain = ReturnType<typeof createDomain<WorkflowRegistry>>

export function createDomain<Registry extends WorkflowRegistry>(options: DomainOptions<Registry>) {
  const { config, store, workflows, encryption, log } = options
  const shared = createWorkerDomain(options)
  const { usage, observer, now } = shared
  const cursors = new Cursors(encryption)
  const refusals = new Refusals(store, log, now)
  const apiKeys = new ApiKeys(store, knownScopes(), now, refusals)
  const artifacts = new RunArtifacts(store, options.artifactRetentionDays, now)
  const { ACCOUNT_CONCURRENCY: accountConcurrency, QUEUED_RUNS_MAX: queuedRunsMax } = config
  const queueing = { store, workflows, encryption, queuedRunsMax, observer, usage }
  const runs = new Runs({ ...queueing, cursors, artifacts, accountConcurrency }, now)
  return {
    ...shared,
    cursors,
    workflows,
    accounts: new Accounts(store),
    users: new Users(store),
    links: new SignInLinks(store, now),
    sessions: new Sessions(store, config.SESSION_IDLE_MINUTES * 60_000, now),
    secondFactors: new SecondFactors(store, encryption),
    accountValues: new AccountValues(store, encryption, cursors, now),
    auditLog: new AuditLog(store),
    refusals,
    apiKeys,
    runTokens: new RunTokens(encryption, apiKeys, now),
    runs,
    waits: new Waits({ store, encryption, cursors, workflows }, now),
    schedules: new Schedules({ store, encryption, cursors, workflows, runs, schedulesMax: config.SCHEDULES_MAX }, now),
    scheduler: new Scheduler({ ...queueing, log, now }),
    bulkActions: new BulkActions(store, encryption),
    bulkWorker: new BulkWorker({ ...queueing, now }),
    artifacts,
    feed: new RunFeed(store),
    statistics: new RunStatistics(store),
    browserContexts: new BrowserContexts(store, cursors, usage),
    webhookEndpoints: new WebhookEndpoints(store, encryption, cursors, now),
    webhookDeliveries: new WebhookDeliveries(store, cursors, now),
    webhookPrivateAddresses: config.WEBHOOK_PRIVATE_ADDRESSES,
  }
}
