/** The parts of the domain that the dashboard uses, and its settings. */
import type { BlockList } from 'node:net'
import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { TenantLimits } from '../../contract/tenant-limits.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { SecondFactors } from '../../domain/accounts/second-factors.ts'
import type { Sessions } from '../../domain/accounts/sessions.ts'
import type { SignInLinks } from '../../domain/accounts/sign-in-links.ts'
import type { StorageUsage } from '../../domain/accounts/storage-usage.ts'
import type { Users } from '../../domain/accounts/users.ts'
import type { ApiKeys } from '../../domain/api-keys/api-keys.ts'
import type { AuditLog } from '../../domain/audit-log/audit-log.ts'
import type { Refusals } from '../../domain/audit-log/refusals.ts'
import type { BrowserContexts } from '../../domain/browser-contexts/browser-contexts.ts'
import type { ContextVersions } from '../../domain/browser-contexts/context-versions.ts'
import type { BulkActions } from '../../domain/bulk-actions/bulk-actions.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import type { Workers } from '../../domain/queue/workers.ts'
import type { RunArtifacts } from '../../domain/run-api/artifacts.ts'
import type { LiveViews } from '../../domain/run-api/live-views.ts'
import type { RunFeed } from '../../domain/run-api/run-feed.ts'
import type { Runs } from '../../domain/run-api/runs.ts'
import type { Schedules } from '../../domain/schedules/schedules.ts'
import type { RunStatistics } from '../../domain/statistics/run-statistics.ts'
import type { WebhookDeliveries } from '../../domain/webhooks/webhook-deliveries.ts'
import type { WebhookEndpoints } from '../../domain/webhooks/webhook-endpoints.ts'
import type { Retention } from '../../maintenance/retention.ts'
import type { BuiltDocs } from '../docs/docs-handler.ts'
import type { LiveViewHub } from './live-view/live-view-hub.ts'
import type { AttemptCounts } from './sign-in/attempt-limits.ts'

export interface DashboardDomain {
  accounts: Accounts
  users: Users
  links: SignInLinks
  sessions: Sessions
  secondFactors: SecondFactors
  auditLog: AuditLog
  refusals: Refusals
  apiKeys: ApiKeys
  workflows: WorkflowRegistry
  browserContexts: BrowserContexts
  contextVersions: ContextVersions
  runs: Runs
  bulkActions: BulkActions
  artifacts: RunArtifacts
  feed: RunFeed
  liveViews: LiveViews
  statistics: RunStatistics
  retention: Retention
  workers: Workers
  usage: StorageUsage
  schedules: Schedules
  webhookEndpoints: WebhookEndpoints
  webhookDeliveries: WebhookDeliveries
  /** Private addresses that webhooks may reach. */
  webhookPrivateAddresses: BlockList | undefined
}

export interface Dependencies extends DashboardDomain {
  /** Counts failed attempts at passwords and links. */
  attempts: AttemptCounts
  tenantLimits: TenantLimits
  /** Runs before every other handler: tracing. */
  before?: RequestHandler | undefined
  checkHost?: RequestHandler
  /** Serves the documentation to everyone and passes on all other paths. */
  docs: RequestHandler
  builtDocs: BuiltDocs
  liveView: LiveViewHub
  /** The first signs session cookies; cookies signed with the others are still accepted. */
  sessionSecrets: string[]
  /** The dashboard's public address behind a proxy. */
  publicUrl: string | undefined
  port: number
  proxyHops: number
  /** Public addresses of this installation, known once it listens. */
  addresses(): { dashboardUrl: string; executionUrl: string; browserContextUrl: string }
  isUnavailable(error: unknown): boolean
  log: Logger
}
