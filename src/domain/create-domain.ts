import { knownScopes } from '../openapi/served-documents.ts'
import { Cursors } from '../storage/cursors.ts'
import { AccountValues } from './account-values/account-values.ts'
import { Accounts } from './accounts/accounts.ts'
import { Environments } from './accounts/environments.ts'
import { ProviderMembers } from './accounts/provider-members.ts'
import { SecondFactors } from './accounts/second-factors.ts'
import { Sessions } from './accounts/sessions.ts'
import { SignInLinks } from './accounts/sign-in-links.ts'
import { Users } from './accounts/users.ts'
import { ApiKeys } from './api-keys/api-keys.ts'
import { RunTokens } from './api-keys/run-tokens.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import { Refusals } from './audit-log/refusals.ts'
import { BrowserContexts } from './browser-contexts/browser-contexts.ts'
import { SignIns } from './browser-contexts/sign-ins.ts'
import { BulkActions } from './bulk-actions/bulk-actions.ts'
import { BulkWorker } from './bulk-actions/bulk-worker.ts'
import type { WorkflowRegistry } from './deployments/deployments.ts'
import { answerLinks } from './notifications/message-details.ts'
import { NotificationRules } from './notifications/notification-rules.ts'
import { Notifier } from './notifications/notifier.ts'
import { RunFollowers } from './notifications/run-followers.ts'
import { MailSender } from './notifications/send-mail.ts'
import { RunArtifacts } from './run-api/artifacts.ts'
import { RunFeed } from './run-api/run-feed.ts'
import { Runs } from './run-api/runs.ts'
import { Waits } from './run-api/waits.ts'
import { Scheduler } from './schedules/scheduler.ts'
import { Schedules } from './schedules/schedules.ts'
import { RunStatistics } from './statistics/run-statistics.ts'
import { RunUsage } from './statistics/usage-reports.ts'
import { WebhookDeliveries } from './webhooks/webhook-deliveries.ts'
import { WebhookEndpoints } from './webhooks/webhook-endpoints.ts'
import { createWorkerDomain, type WorkerDomainOptions } from './worker-domain.ts'

type Setting =
  | 'ENVIRONMENTS_MAX'
  | 'OIDC_ISSUER'
  | 'PASSWORD_SIGN_IN'
  | 'QUEUED_RUNS_MAX'
  | 'SCHEDULES_MAX'
  | 'SESSION_IDLE_MINUTES'
  | 'SMTP_FROM'
  | 'SMTP_RECIPIENT_DOMAINS'
  | 'SMTP_URL'
  | 'WEBHOOK_PRIVATE_ADDRESSES'

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
  const { usage, observer, contents, fileRetentionMilliseconds, now } = shared
  const cursors = new Cursors(encryption)
  const refusals = new Refusals(store, log, now)
  const apiKeys = new ApiKeys(store, knownScopes(), now, refusals)
  const artifacts = new RunArtifacts(store, options.artifactRetentionDays, now, contents)
  const { ACCOUNT_CONCURRENCY: accountConcurrency, QUEUED_RUNS_MAX: queuedRunsMax } = config
  const queueing = { store, workflows, encryption, queuedRunsMax, fileRetentionMilliseconds, observer, usage }
  const statistics = new RunStatistics(store)
  // Set when the service listens.
  const dashboard = { url: '' }
  const { SMTP_URL, SMTP_FROM, SMTP_RECIPIENT_DOMAINS: mailDomains } = config
  const mailSender = new MailSender({ url: SMTP_URL, from: SMTP_FROM, domains: mailDomains })
  const runs = new Runs({ ...queueing, cursors, artifacts, accountConcurrency }, now)
  const waits = new Waits({ store, encryption, cursors, workflows }, now)
  return {
    ...shared,
    cursors,
    workflows,
    accounts: new Accounts(store),
    environments: new Environments(store, contents, config.ENVIRONMENTS_MAX),
    users: new Users(store, config),
    providerMembers: new ProviderMembers(store, config),
    links: new SignInLinks(store, now),
    sessions: new Sessions(store, config.SESSION_IDLE_MINUTES * 60_000, now),
    secondFactors: new SecondFactors(store, encryption),
    accountValues: new AccountValues(store, encryption, cursors, now),
    auditLog: new AuditLog(store),
    refusals,
    apiKeys,
    runTokens: new RunTokens(encryption, apiKeys, now),
    runs,
    waits,
    createAnswerLink: answerLinks(waits, dashboard),
    schedules: new Schedules(
      { store, encryption, cursors, workflows, runs, schedulesMax: config.SCHEDULES_MAX, fileRetentionMilliseconds },
      now,
    ),
    scheduler: new Scheduler({ ...queueing, log, now }),
    bulkActions: new BulkActions(store, encryption),
    bulkWorker: new BulkWorker({ ...queueing, now }),
    artifacts,
    feed: new RunFeed(store),
    statistics,
    runUsage: new RunUsage(store, now),
    browserContexts: new BrowserContexts(store, cursors, usage),
    signIns: new SignIns({ store, encryption, workflows, log }, now),
    webhookEndpoints: new WebhookEndpoints(store, encryption, cursors, now),
    webhookDeliveries: new WebhookDeliveries(store, cursors, now),
    dashboard,
    notificationRules: new NotificationRules({ store, encryption, cursors, dashboard, now }),
    notifier: new Notifier({ store, statistics, dashboard, now }),
    runFollowers: new RunFollowers(store, now),
    mailSender,
    sendsMail: mailSender.isConfigured,
    mailDomains,
    webhookPrivateAddresses: config.WEBHOOK_PRIVATE_ADDRESSES,
  }
}
