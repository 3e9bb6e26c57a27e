/** Builds the Express app of each surface that a process serves, and listens on its ports. */
import type { Express, RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Origins } from '../contract/cross-origin.ts'
import { type Listener, listen, urlOf } from '../contract/listener.ts'
import { mountDocument, warmUp } from '../contract/mount.ts'
import type { Authenticate, Fallback, Intercept } from '../contract/stages.ts'
import { TenantLimits } from '../contract/tenant-limits.ts'
import { loadValueChecks } from '../contract/value-checks.ts'
import { apiKeyRealm, type Principal } from '../domain/api-keys/api-key.ts'
import type { RateLimit } from '../domain/api-keys/rate-limit.ts'
import { RunTokens, runTokenScheme } from '../domain/api-keys/run-tokens.ts'
import type { DeploymentDependencies } from '../domain/deployments/deployment-operations.ts'
import { domainProblemTypes } from '../domain/problems.ts'
import type { WorkerDependencies } from '../domain/remote-workers/worker-operations.ts'
import { browserContextContract, executionContract } from '../openapi/served-documents.ts'
import type { Encryption } from '../storage/encryption.ts'
import { type Store, StoreUnavailable } from '../storage/store.ts'
import { apiRequestSpans, dashboardRequestSpans } from '../telemetry/request-spans.ts'
import { browserContextApi } from './browser-context-api.ts'
import { dashboardApp } from './dashboard/dashboard.ts'
import type { DashboardDomain } from './dashboard/dependencies.ts'
import { LiveViewHub } from './dashboard/live-view/live-view-hub.ts'
import { IdentityProvider } from './dashboard/sign-in/identity-provider.ts'
import { BuiltDocs, docsHandler, isDocsPath, isWorkflowDocsPath } from './docs/docs-handler.ts'
import { workflowDocsForCallers } from './docs/workflow-pages.ts'
import { executionApi } from './execution-api.ts'
import { checkHost, isSecure, transportSecurity } from './known-hosts.ts'
import { type Management, managementAddress, managementApp } from './management/management.ts'
import type { SurfaceMetrics } from './management/metrics.ts'
import { type Addresses, type Role, type Surface, surfaces } from './roles.ts'

export interface SurfaceDependencies {
  config: Config
  store: Store
  encryption: Encryption
  domain: DashboardDomain & DeploymentDependencies & WorkerDependencies
  metrics: SurfaceMetrics
  isTraced: boolean
  /** Whose pages may call the APIs. */
  origins: Origins | undefined
  rateLimit: RateLimit | undefined
  /** Of both APIs. */
  intercept?: Intercept | undefined
  log: Logger
}

/** Dependencies that all surfaces of the process share. */
interface Shared extends SurfaceDependencies {
  tenantLimits: TenantLimits
  /** Where this process listens, which may differ from the surface's public address. */
  listening(name: Surface): string
}

export interface SurfaceListeners {
  surfaces: ReadonlyMap<Surface, Listener>
  management: Listener
  /** Also of surfaces that another process serves. */
  addresses: Addresses
  /** Compiles what first requests would otherwise wait for. */
  warmUp(): Promise<void>
}

interface ListenOptions {
  management: Management
  /** Where readers reach the surfaces, if neither settings nor listeners say so. */
  addresses?: Addresses | undefined
}

export interface Surfaces {
  /** Opens all ports of the roles, or none when one of them fails. */
  listen(options: ListenOptions): Promise<SurfaceListeners>
}

/** Creates the apps of the roles, which takes most of the time until they listen, and needs no workflows. */
export async function createSurfaces(roles: ReadonlySet<Role>, dependencies: SurfaceDependencies): Promise<Surfaces> {
  const { config } = dependencies
  // Filled in once the ports are known; nothing reads them before the first request.
  const addresses: Addresses = { dashboardUrl: '', executionUrl: '', browserContextUrl: '' }
  const opened = new Map<Surface, Listener>()
  const listening = (name: Surface) => opened.get(name)?.url ?? ''
  const shared = { ...dependencies, tenantLimits: new TenantLimits(), listening }
  const apps = await createApps(roles, shared, addresses)
  const limits = { keepAliveTimeout: config.KEEP_ALIVE_SECONDS * 1000 }
  const options = (name: PortSetting) => ({ host: config.HOST, port: config[name], name, limits })
  const warmUpAll = async () => {
    loadValueChecks()
    for (const app of apps.values()) await warmUp(app)
  }
  return {
    async listen({ management: managementOptions, addresses: given }) {
      try {
        for (const [name, app] of apps) opened.set(name, await listen(app, options(surfaces[name].port)))
        const managed = managementApp({ ...managementOptions, checkHost: checkHost(config) })
        const management = await listen(managed, managementAddress(config))
        Object.assign(addresses, given ?? findAddresses(config, opened))
        return { surfaces: opened, management, addresses, warmUp: warmUpAll }
      } catch (error) {
        await Promise.all([...opened.values()].map((listener) => listener.stop(0)))
        throw error
      }
    },
  }
}

type PortSetting = (typeof surfaces)[Surface]['port']

/** A surface of another process is assumed at its public address or, without one, at its port on this host. */
function findAddresses(config: Config, listeners: ReadonlyMap<Surface, Listener>): Addresses {
  const addressOf = (name: Surface) => {
    const { url, port } = surfaces[name]
    return config[url] ?? listeners.get(name)?.url ?? urlOf(config.HOST, config[port])
  }
  return {
    dashboardUrl: addressOf('dashboard'),
    executionUrl: addressOf('execution'),
    browserContextUrl: addressOf('browser-context'),
  }
}

/** In the order in which the log of a start lists them. */
async function createApps(
  roles: ReadonlySet<Role>,
  dependencies: Shared,
  addresses: Addresses,
): Promise<ReadonlyMap<Surface, Express>> {
  const { domain } = dependencies
  const built = new BuiltDocs(() => ({
    execution: addresses.executionUrl,
    'browser-context': addresses.browserContextUrl,
    dashboard: addresses.dashboardUrl,
  }))
  const docs = docsHandler(built)
  const options = apiOptions(dependencies, docs)
  const create: Record<Surface, () => Express | Promise<Express>> = {
    dashboard: () => createDashboard(dependencies, built, docs, addresses),
    execution: () => {
      const handlers = executionApi({
        ...domain,
        executionUrl: () => addresses.executionUrl,
        linksUrl: () => addresses.dashboardUrl,
      })
      const shared = options('execution')
      const fallback = executionFallback(dependencies, shared, built, addresses)
      const warm = ['queueRemoteRun', 'getRun'] as const
      const bodyBytesMax = { createFile: fileBytesMax(dependencies.config) }
      return mountDocument({ ...shared, ...executionContract, handlers, fallback, warm, bodyBytesMax })
    },
    'browser-context': () =>
      mountDocument({ ...options('browser-context'), ...browserContextContract, handlers: browserContextApi(domain) }),
  }
  const served = (Object.keys(create) as Surface[]).filter((name) => roles.has(name))
  return new Map(await Promise.all(served.map(async (name) => [name, await create[name]()] as const)))
}

function apiOptions(dependencies: Shared, docs: RequestHandler) {
  const { config, domain, metrics, isTraced, origins, rateLimit, tenantLimits, intercept, log } = dependencies
  return (name: Surface) => ({
    name,
    realm: apiKeyRealm,
    problemTypes: domainProblemTypes,
    fallback: docsFallback(docs, checkHost(config, name)),
    strictTransportSecurity: isSecure(config, name) ? transportSecurity : undefined,
    authenticate: authenticate(domain),
    ...(rateLimit && { limitRate: metrics.admit(name, limitRate(domain, rateLimit)) }),
    tenants: { limits: tenantLimits, nameOf: ({ accountId }: Principal) => accountId },
    proxyHops: config.PROXY_HOPS,
    origins,
    isUnavailable: (error: unknown) => error instanceof StoreUnavailable,
    describe: ({ accountId, apiKeyId, runId }: Principal) => ({
      accountId,
      apiKeyId,
      ...(runId && { tokenOf: runId }),
    }),
    observe: metrics.observe(name),
    refusesMismatches: config.UNDOCUMENTED_RESPONSES === 'refuse',
    countMismatch: metrics.countMismatch(name),
    before: isTraced ? apiRequestSpans(name) : undefined,
    intercept,
    log,
  })
}

/** An API key, or a run token where the operation takes one. */
function authenticate({ apiKeys, runTokens }: SurfaceDependencies['domain']): Authenticate<Principal> {
  return async (value, schemeNames, from) => {
    if (!RunTokens.looksLike(value)) return apiKeys.authenticate(value, from)
    return schemeNames.includes(runTokenScheme) ? runTokens.authenticate(value, from) : undefined
  }
}

/** The docs of an API's host. Requests for its operations need a key, so that their Host does not matter. */
function docsFallback(docs: RequestHandler, check: RequestHandler) {
  const serve: RequestHandler = (request, response, next) =>
    check(request, response, (error?: unknown) => (error ? next(error) : docs(request, response, next)))
  return (path: string) => (isDocsPath(path) ? serve : undefined)
}

const mcpPath = '/mcp'

/** What the Execution API's host serves in addition to its operations and the docs. */
function executionFallback(
  { config, domain, tenantLimits }: Shared,
  { fallback, limitRate }: Pick<ReturnType<ReturnType<typeof apiOptions>>, 'fallback' | 'limitRate'>,
  docs: BuiltDocs,
  addresses: Addresses,
): Fallback {
  const options = { ...domain, limitRate, tenantLimits, checkHost: checkHost(config, 'execution') }
  const workflowDocs = workflowDocsForCallers({ ...options, docs, addresses: () => addresses })
  const mcp: RequestHandler = async (request, response, next) => {
    // Loaded by the first request: the SDK takes 41 MB and 0.25 s.
    const { mcpHandler } = await import('./mcp/mcp.ts')
    return mcpHandler(options)(request, response, next)
  }
  return (path) => {
    if (path === mcpPath) return mcp
    return isWorkflowDocsPath(path) ? workflowDocs : fallback(path)
  }
}

function limitRate({ apiKeys, refusals }: DashboardDomain, rateLimit: RateLimit) {
  return async (principal: Principal, client: string) => {
    const status = await rateLimit.admit(principal)
    if (status.isExceeded) {
      const { accountId, apiKeyId: id } = principal
      const name = async () => (await apiKeys.get(accountId, id))?.name ?? ''
      const audit = { action: 'apiKey.rateLimited', accountId, subject: { id, name } } as const
      refusals.record({ message: 'API key rate limited', client, audit })
    }
    return status
  }
}

const fileBytesMax = ({ FILE_MAX_MB }: Config) => FILE_MAX_MB * 1024 * 1024

function createProvider(config: Config, encryption: Encryption): IdentityProvider | undefined {
  const { OIDC_ISSUER } = config
  return OIDC_ISSUER === undefined ? undefined : new IdentityProvider({ ...config, OIDC_ISSUER }, encryption)
}

function createDashboard(
  dependencies: Shared,
  builtDocs: BuiltDocs,
  docs: RequestHandler,
  addresses: Addresses,
): Express {
  const { config, store, domain, encryption, isTraced, tenantLimits, listening, log } = dependencies
  const liveViewAddress = () => config.LIVE_VIEW_ADDRESS ?? listening('dashboard')
  return dashboardApp({
    ...domain,
    tenantLimits,
    before: isTraced ? dashboardRequestSpans() : undefined,
    checkHost: checkHost(config, 'dashboard'),
    docs,
    builtDocs,
    liveView: new LiveViewHub(domain.liveViews, liveViewAddress, log),
    attempts: {
      counters: store.counters,
      pseudonym: (text) => encryption.sign('attempts', text).toString('base64url'),
    },
    sessionSecrets: encryption.signatures('dashboard', 'sessions').map((each) => each.toString('base64url')),
    identityProvider: createProvider(config, encryption),
    passwords: config.PASSWORD_SIGN_IN === 'on',
    fileBytesMax: fileBytesMax(config),
    publicUrl: config.DASHBOARD_URL,
    port: config.DASHBOARD_PORT,
    proxyHops: config.PROXY_HOPS,
    addresses: () => addresses,
    isUnavailable: (error) => error instanceof StoreUnavailable,
    log,
  })
}
