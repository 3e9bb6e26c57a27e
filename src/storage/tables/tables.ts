/** Names of all tables with their row types, which are the same in both stores. */
import type {
  AccountsTable,
  ApiKeysTable,
  AuditLogTable,
  RecoveryCodesTable,
  SessionsTable,
  SignInLinksTable,
  StorageUsageTable,
  UsersTable,
} from './account-tables.ts'
import type { BrowserContextsTable, BrowserContextVersionsTable } from './browser-context-tables.ts'
import type { BulkActionsTable } from './bulk-action-tables.ts'
import type {
  DeploymentActivationsTable,
  DeploymentsTable,
  EncryptionCheckTable,
  WorkersTable,
} from './installation-tables.ts'
import type {
  ArtifactsTable,
  IdempotencyKeysTable,
  LiveViewsTable,
  RunEventsTable,
  RunRollupProgressTable,
  RunRollupsTable,
  RunStepsTable,
  RunsTable,
  RunTermsTable,
  ThrottleStartsTable,
  ThrottlesTable,
} from './run-tables.ts'
import type { SchedulesTable } from './schedule-tables.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable } from './webhook-tables.ts'

export interface Tables {
  accounts: AccountsTable
  users: UsersTable
  api_keys: ApiKeysTable
  runs: RunsTable
  run_events: RunEventsTable
  run_steps: RunStepsTable
  run_terms: RunTermsTable
  run_rollups: RunRollupsTable
  run_rollup_progress: RunRollupProgressTable
  throttles: ThrottlesTable
  throttle_starts: ThrottleStartsTable
  idempotency_keys: IdempotencyKeysTable
  artifacts: ArtifactsTable
  live_views: LiveViewsTable
  browser_contexts: BrowserContextsTable
  browser_context_versions: BrowserContextVersionsTable
  sessions: SessionsTable
  recovery_codes: RecoveryCodesTable
  sign_in_links: SignInLinksTable
  audit_log: AuditLogTable
  workers: WorkersTable
  storage_usage: StorageUsageTable
  deployments: DeploymentsTable
  deployment_activations: DeploymentActivationsTable
  webhook_endpoints: WebhookEndpointsTable
  webhook_deliveries: WebhookDeliveriesTable
  schedules: SchedulesTable
  bulk_actions: BulkActionsTable
  encryption_check: EncryptionCheckTable
}
