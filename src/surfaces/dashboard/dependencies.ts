/** What the dashboard is made of: the domain's actions, and where the reader finds the rest of the service. */
import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { Sessions } from '../../domain/accounts/sessions.ts'
import type { SignInLinks } from '../../domain/accounts/sign-in-links.ts'
import type { Users } from '../../domain/accounts/users.ts'
import type { ApiKeys } from '../../domain/api-keys/api-keys.ts'
import type { AuditLog } from '../../domain/audit-log/audit-log.ts'
import type { BrowserContexts } from '../../domain/browser-contexts/browser-contexts.ts'
import type { ContextVersions } from '../../domain/browser-contexts/context-versions.ts'
import type { RunArtifacts } from '../../domain/runs/artifacts.ts'
import type { RunFeed } from '../../domain/runs/run-feed.ts'
import type { RunStatistics } from '../../domain/runs/run-statistics.ts'
import type { Runs } from '../../domain/runs/runs.ts'
import type { Workers } from '../../domain/runs/workers.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import type { Retention } from '../../maintenance/retention.ts'
import type { AttemptCounts } from './shared-attempts.ts'

export interface Parts {
  accounts: Accounts
  users: Users
  links: SignInLinks
  sessions: Sessions
  auditLog: AuditLog
  apiKeys: ApiKeys
  workflows: Workflows
  browserContexts: BrowserContexts
  contextVersions: ContextVersions
  runs: Runs
  artifacts: RunArtifacts
  feed: RunFeed
  statistics: RunStatistics
  /** For how many days what is finished is kept. */
  retention: Retention
  workers: Workers
  /** Counts failed attempts at passwords and links. */
  attempts: AttemptCounts
  /** Stands before everything else: a trace. */
  before?: RequestHandler | undefined
  /** Serves the docs to everyone, and lets other paths go on. */
  docs: RequestHandler
  /** The first signs the cookies of sessions; those that the others have signed are taken as well. */
  sessionSecrets: string[]
  /** The dashboard's public address, when it is behind a proxy. */
  publicUrl: string | undefined
  port: number
  proxyHops: number
  /** Public addresses of this installation; known once it listens. */
  addresses(): { dashboardUrl: string; executionUrl: string; browserContextUrl: string }
  isUnavailable(error: unknown): boolean
  log: Logger
}
