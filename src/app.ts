/** The only file that constructs things and knows them all. */
import { setTimeout } from 'node:timers/promises'
import type { Express, RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { mountDocument } from './contract/mount.ts'
import { Accounts } from './domain/accounts/accounts.ts'
import { Sessions } from './domain/accounts/sessions.ts'
import { SignInLinks } from './domain/accounts/sign-in-links.ts'
import { Users } from './domain/accounts/users.ts'
import type { Principal } from './domain/api-keys/api-key.ts'
import { ApiKeys } from './domain/api-keys/api-keys.ts'
import { RateLimit } from './domain/api-keys/rate-limit.ts'
import { AuditLog } from './domain/audit-log/audit-log.ts'
import { BrowserContexts } from './domain/browser-contexts/browser-contexts.ts'
import { ContextVersions } from './domain/browser-contexts/context-versions.ts'
import { encryptedColumns } from './domain/encrypted-columns.ts'
import { openEncryption, openStore } from './domain/installation.ts'
import { RunArtifacts } from './domain/runs/artifacts.ts'
import { RunFeed } from './domain/runs/run-feed.ts'
import type { RunObserver } from './domain/runs/run-observer.ts'
import { RunStatistics } from './domain/runs/run-statistics.ts'
import { Runs } from './domain/runs/runs.ts'
import { Workers } from './domain/runs/workers.ts'
import { describeWorkflows, Workflows } from './domain/workflows/workflows.ts'
import { Maintenance } from './maintenance/maintenance.ts'
import { retentionOf } from './maintenance/retention.ts'
import { browserContextContract, executionContract, knownScopes } from './openapi/served-documents.ts'
import { Cursors } from './storage/cursors.ts'
import type { Encryption } from './storage/encryption.ts'
import { type Store, StoreUnavailable } from './storage/store.ts'
import { browserContextApi } from './surfaces/browser-context-api.ts'
import { dashboardApp } from './surfaces/dashboard/dashboard.ts'
import { docsHandler, isDocsPath } from './surfaces/docs/docs-handler.ts'
import { executionApi } from './surfaces/execution-api.ts'
import { build } from './surfaces/management/build.ts'
import { managementApp } from './surfaces/management/management.ts'
import { Metrics, type SurfaceMetrics } from './surfaces/management/metrics.ts'
import { Readiness } from './surfaces/management/readiness.ts'
import { type Addresses, addressesOf, listenOnAll, type SurfaceApps } from './surfaces/ports.ts'
import { type Role, readRoles, type Surface } from './surfaces/roles.ts'
import { apiRequestSpans, dashboardRequestSpans } from './telemetry/request-spans.ts'
import { openTracing, type Tracing, tracedStore } from './telemetry/tracing.ts'
import { WorkerProcess } from './worker/worker-process.ts'

export interface Service extends Addresses {
  /** Leads to choosing who owns the installation, as long as nobody can sign in. Works once. */
  welcomeUrl: string | undefined
  managementUrl: string
  /** Where this process itself serves each surface; its public address may be another. */
  listening: ReadonlyMap<Surface, string>
  /** The account that this start made, when it was the first one. */
  firstAccount: { id: string; name: string } | undefined
  stop(): Promise<void>
}

/**
 * Serves what its roles are and the management address; resolves when they accept requests.
 *
 * @param command the module that runs a worker when it is started with the argument `worker`.
 */
export async function startService(
  config: Config,
  log: Logger,
  command: string,
  only: ReadonlySet<Role> = readRoles([]),
): Promise<Service> {
  const [workflows, opened, tracing] = await Promise.all([
    describeWorkflows(config.WORKFLOWS_DIR),
    openStore(config),
    openTracing(config, log),
  ])
  const store = tracing ? tracedStore(opened) : opened
  const metrics = new Metrics('service', opened)
  const encryption = await openEncryption(config, store, encryptedColumns)
  const foundations = { config, store, workflows: new Workflows(workflows), encryption, observer: metrics.runs, log }
  const domain = construct(foundations)
  const firstAccount = await domain.accounts.createFirst()
  const welcomeToken = only.has('dashboard') ? await domain.links.createFirstWelcomeLink() : undefined
  const worker = only.has('worker') ? new WorkerProcess(command, log) : undefined
  const readiness = new Readiness(store, log)
  const ready = () => readiness.check()
  const { read: tx } = store
  const { ACCOUNT_CONCURRENCY: accountConcurrency } = config
  metrics.registerInstallationMetrics({
    ready,
    build,
    tx: tx,
    workers: domain.workers,
    workflows: () => workflows,
    accountConcurrency,
  })
  metrics.initializeWorkflows(workflows)
  const measured = metrics.registerRequestMetrics(() => domain.feed.followers)
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  const countedHere = (error: unknown) => log.warn({ err: error }, 'requests are counted in this process alone')
  const rateLimit = perMinute > 0 ? new RateLimit(perMinute, store.counters, countedHere) : undefined

  const addresses: Addresses = { dashboardUrl: '', executionUrl: '', browserContextUrl: '' }
  const served = await surfaceApps(only, { ...foundations, domain, measured, tracing, rateLimit, addresses })
  const management = managementApp({ metrics: async () => metrics.text(await worker?.measured()), ready })
  const listeners = await listenOnAll(config, served, management)
  Object.assign(addresses, addressesOf(config, listeners.surfaces))
  domain.upkeep.start()
  worker?.start()
  readiness.start()

  return {
    ...addresses,
    welcomeUrl: welcomeToken && `${addresses.dashboardUrl}/links/${welcomeToken}`,
    managementUrl: listeners.management.url,
    listening: new Map([...listeners.surfaces].map(([name, { url }]) => [name, url])),
    firstAccount,
    async stop() {
      readiness.stop()
      const workerEnded = worker?.stop()
      const serving = [...listeners.surfaces.values()]
      for (const listener of serving) listener.drain()
      // Not even a turn of the event loop otherwise: whoever takes over the ports waits for them.
      if (config.DRAIN_SECONDS > 0) await setTimeout(config.DRAIN_SECONDS * 1000)
      domain.feed.close()
      const stopped = serving.map((listener) => listener.stop(config.SHUTDOWN_SECONDS))
      await Promise.all([...stopped, workerEnded, domain.upkeep.stop()])
      await domain.apiKeys.close()
      await listeners.management.stop(0)
      await tracing?.close()
      await store.close()
    },
  }
}

interface Foundations {
  config: Config
  store: Store
  workflows: Workflows
  encryption: Encryption
  observer: RunObserver
  log: Logger
}

function construct({ config, store, workflows, encryption, observer, log }: Foundations) {
  const cursors = new Cursors(encryption)
  const retention = retentionOf(config)
  const artifacts = new RunArtifacts(store, retention.artifacts)
  return {
    workflows,
    accounts: new Accounts(store),
    users: new Users(store),
    links: new SignInLinks(store),
    sessions: new Sessions(store),
    auditLog: new AuditLog(store),
    apiKeys: new ApiKeys(store, knownScopes()),
    runs: new Runs({
      store,
      workflows,
      encryption,
      cursors,
      artifacts,
      accountConcurrency: config.ACCOUNT_CONCURRENCY,
      queuedRunsMax: config.QUEUED_RUNS_MAX,
      observer,
    }),
    artifacts,
    retention,
    feed: new RunFeed(store),
    statistics: new RunStatistics(store),
    workers: new Workers(store),
    upkeep: new Maintenance(
      store,
      retention,
      (error) => log.warn({ err: error }, 'upkeep failed; it is tried again'),
      Date.now,
      observer,
    ),
    browserContexts: new BrowserContexts(store, cursors),
    contextVersions: new ContextVersions(store, encryption, config.BROWSER_CONTEXT_VERSIONS),
  }
}

type Domain = ReturnType<typeof construct>

interface SurfaceDependencies extends Foundations {
  domain: Domain
  measured: SurfaceMetrics
  tracing: Tracing | undefined
  rateLimit: RateLimit | undefined
  /** Known once all of them are listened on. */
  addresses: Addresses
}

/** In the order in which they are told of. */
async function surfaceApps(only: ReadonlySet<Role>, parts: SurfaceDependencies): Promise<SurfaceApps> {
  const { domain, addresses } = parts
  const docs = docsHandler(() => ({
    execution: addresses.executionUrl,
    'browser-context': addresses.browserContextUrl,
  }))
  const api = apiOptions(parts, docs)
  const makers: Record<Surface, () => Express | Promise<Express>> = {
    dashboard: () => dashboardOf(parts, docs),
    execution: () => mountDocument({ ...api('execution'), ...executionContract, handlers: executionApi(domain) }),
    'browser-context': () =>
      mountDocument({ ...api('browser-context'), ...browserContextContract, handlers: browserContextApi(domain) }),
  }
  const names = (Object.keys(makers) as Surface[]).filter((name) => only.has(name))
  return new Map(await Promise.all(names.map(async (name) => [name, await makers[name]()] as const)))
}

/** What both APIs are mounted with. */
function apiOptions({ config, domain, measured, tracing, rateLimit, log }: SurfaceDependencies, docs: RequestHandler) {
  return (name: Surface) => ({
    name,
    fallback: (path: string) => (isDocsPath(path) ? docs : undefined),
    authenticate: (value: string, from?: string) => domain.apiKeys.authenticate(value, from),
    ...(rateLimit && { admit: measured.admit(name, (principal: Principal) => rateLimit.admit(principal)) }),
    proxyHops: config.PROXY_HOPS,
    isUnavailable: (error: unknown) => error instanceof StoreUnavailable,
    describe: ({ accountId, apiKeyId }: Principal) => ({ accountId, apiKeyId }),
    observe: measured.observe(name),
    before: tracing && apiRequestSpans(name),
    log,
  })
}

function dashboardOf(parts: SurfaceDependencies, docs: RequestHandler): Express {
  const { config, store, domain, encryption, tracing, addresses, log } = parts
  return dashboardApp({
    ...domain,
    before: tracing && dashboardRequestSpans(),
    docs,
    attempts: {
      counters: store.counters,
      pseudonym: (text) => encryption.sign('attempts', text).toString('base64url'),
    },
    sessionSecrets: encryption.signatures('dashboard', 'sessions').map((each) => each.toString('base64url')),
    publicUrl: config.DASHBOARD_URL,
    port: config.DASHBOARD_PORT,
    proxyHops: config.PROXY_HOPS,
    addresses: () => addresses,
    isUnavailable: (error) => error instanceof StoreUnavailable,
    log,
  })
}
