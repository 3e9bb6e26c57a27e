/** Creates the domain objects of a service. A worker needs few of them: `worker/create-worker.ts`. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { knownScopes } from '../openapi/served-documents.ts'
import { Cursors } from '../storage/cursors.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import { Accounts } from './accounts/accounts.ts'
import { SecondFactors } from './accounts/second-factors.ts'
import { Sessions } from './accounts/sessions.ts'
import { SignInLinks } from './accounts/sign-in-links.ts'
import { StorageUsage } from './accounts/storage-usage.ts'
import { Users } from './accounts/users.ts'
import { ApiKeys } from './api-keys/api-keys.ts'
import { RunTokens } from './api-keys/run-tokens.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import { Refusals } from './audit-log/refusals.ts'
import { BrowserContexts } from './browser-contexts/browser-contexts.ts'
import { ContextVersions } from './browser-contexts/context-versions.ts'
import { BulkActions } from './bulk-actions/bulk-actions.ts'
import { BulkWorker } from './bulk-actions/bulk-worker.ts'
import type { Deployments } from './deployments/deployments.ts'
import { Workers } from './queue/workers.ts'
import { RunArtifacts } from './run-api/artifacts.ts'
import { LiveViews } from './run-api/live-views.ts'
import { RunFeed } from './run-api/run-feed.ts'
import { Runs } from './run-api/runs.ts'
import type { RunObserver } from './runs/run-state.ts'
import { Scheduler } from './schedules/scheduler.ts'
import { Schedules } from './schedules/schedules.ts'
import { RunStatistics } from './statistics/run-statistics.ts'
import { WebhookDeliveries } from './webhooks/webhook-deliveries.ts'
import { WebhookEndpoints } from './webhooks/webhook-endpoints.ts'

export interface DomainOptions {
  config: Config
  store: Store
  workflows: Deployments
  encryption: Encryption
  observer: RunObserver
  /** Days to keep artifacts of runs. */
  artifactRetentionDays: number
  log: Logger
}

export function createDomain({
  config,
  store,
  workflows,
  encryption,
  observer,
  artifactRetentionDays,
  log,
}: DomainOptions) {
  const cursors = new Cursors(encryption)
  const refusals = new Refusals(store, log)
  const apiKeys = new ApiKeys(store, knownScopes(), Date.now, refusals)
  const artifacts = new RunArtifacts(store, artifactRetentionDays)
  const { ACCOUNT_CONCURRENCY: accountConcurrency, QUEUED_RUNS_MAX: queuedRunsMax } = config
  const usage = new StorageUsage(store, config.STORAGE_QUOTA_MB)
  const runs = new Runs({
    store,
    workflows,
    encryption,
    cursors,
    artifacts,
    accountConcurrency,
    queuedRunsMax,
    observer,
    usage,
  })
  const scheduler = new Scheduler({ store, encryption, workflows, queuedRunsMax, usage, log, observer })
  return {
    cursors,
    workflows,
    accounts: new Accounts(store),
    users: new Users(store),
    links: new SignInLinks(store),
    sessions: new Sessions(store, config.SESSION_IDLE_MINUTES * 60_000),
    secondFactors: new SecondFactors(store, encryption),
    auditLog: new AuditLog(store),
    refusals,
    apiKeys,
    runTokens: new RunTokens(encryption, apiKeys),
    runs,
    schedules: new Schedules({
      ...{ store, encryption, cursors, workflows, runs },
      schedulesMax: config.SCHEDULES_MAX,
    }),
    scheduler,
    bulkActions: new BulkActions(store, encryption),
    bulkWorker: new BulkWorker({ store, encryption, workflows, queuedRunsMax, usage, observer }),
    artifacts,
    feed: new RunFeed(store),
    liveViews: new LiveViews(store, encryption),
    statistics: new RunStatistics(store),
    workers: new Workers(store),
    browserContexts: new BrowserContexts(store, cursors, usage),
    contextVersions: new ContextVersions(store, encryption, config.BROWSER_CONTEXT_VERSIONS, usage),
    usage,
    webhookEndpoints: new WebhookEndpoints(store, encryption, cursors),
    webhookDeliveries: new WebhookDeliveries(store, cursors),
    webhookPrivateAddresses: config.WEBHOOK_PRIVATE_ADDRESSES,
  }
}
