/** The domain as the dashboard uses it, and its settings. */
import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { TenantLimits } from '../../contract/tenant-limits.ts'
import type { Domain } from '../../domain/create-domain.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { RemoteWorkers } from '../../domain/remote-workers/remote-workers.ts'
import type { Retention } from '../../maintenance/retention.ts'
import type { BuiltDocs } from '../docs/docs-handler.ts'
import type { Addresses } from '../roles.ts'
import type { LiveViewHub } from './live-view/live-view-hub.ts'
import type { AttemptCounts } from './sign-in/attempt-limits.ts'
import type { IdentityProvider } from './sign-in/identity-provider.ts'

export type DashboardDomain = Domain & {
  deployments: Deployments
  retention: Retention
  remoteWorkers: RemoteWorkers
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
  identityProvider: IdentityProvider | undefined
  /** Maximum size of a file. */
  fileBytesMax: number
  /** Whether people may sign in with passwords. */
  passwords: boolean
  /** The first signs session cookies; cookies signed with the others are still accepted. */
  sessionSecrets: string[]
  /** The dashboard's public address behind a proxy. */
  publicUrl: string | undefined
  port: number
  proxyHops: number
  /** Public addresses of this installation, known once it listens. */
  addresses(): Addresses
  isUnavailable(error: unknown): boolean
  log: Logger
}
