/** What the dashboard is made of: the domain's actions, and where the reader finds the rest of the service. */
import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Accounts } from '../accounts/accounts.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { SignInLinks } from '../accounts/sign-in-links.ts'
import type { Users } from '../accounts/users.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { AuditLog } from '../audit-log/audit-log.ts'
import type { BrowserContexts } from '../browser-contexts/browser-contexts.ts'
import type { ContextVersions } from '../browser-contexts/versions.ts'
import type { RunArtifacts } from '../runs/artifacts.ts'
import type { RunFeed } from '../runs/feed.ts'
import type { Retention } from '../runs/retention.ts'
import type { Runs } from '../runs/runs.ts'
import type { RunStatistics } from '../runs/statistics.ts'
import type { Workers } from '../runs/workers.ts'
import type { Workflows } from '../workflows/workflows.ts'
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
