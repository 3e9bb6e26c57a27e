/** The only file that constructs things and knows them all. */
import type { Logger } from 'pino'
import { Accounts } from './accounts/accounts.ts'
import { Sessions } from './accounts/sessions.ts'
import { SignInLinks } from './accounts/sign-in-links.ts'
import { Users } from './accounts/users.ts'
import type { Principal } from './api-keys/api-key.ts'
import { ApiKeys } from './api-keys/api-keys.ts'
import { RateLimit } from './api-keys/rate-limit.ts'
import { AuditLog } from './audit-log/audit-log.ts'
import { browserContextApi } from './browser-context-api.ts'
import { BrowserContexts } from './browser-contexts/browser-contexts.ts'
import { ContextVersions } from './browser-contexts/versions.ts'
import type { Config } from './config.ts'
import { type Listener, listen } from './contract/listener.ts'
import { mountDocument } from './contract/mount.ts'
import { dashboardApp } from './dashboard/dashboard.ts'
import { docsHandler, isDocsPath } from './docs/handler.ts'
import { browserContextContract, executionContract, knownScopes } from './documents.ts'
import { executionApi } from './execution-api.ts'
import { openEncryption, openStore } from './installation.ts'
import { managementApp } from './management/management.ts'
import { Metrics } from './management/metrics.ts'
import { RunArtifacts } from './runs/artifacts.ts'
import { RunFeed } from './runs/feed.ts'
import { Runs } from './runs/runs.ts'
import { RunStatistics } from './runs/statistics.ts'
import { Upkeep } from './runs/upkeep.ts'
import { Workers } from './runs/workers.ts'
import { sealedColumns } from './sealed-columns.ts'
import { Cursors } from './storage/cursors.ts'
import type { Encryption } from './storage/encryption.ts'
import { type Store, StoreUnavailable } from './storage/store.ts'
import { WorkerProcess } from './worker/worker-process.ts'
import { describeWorkflows, Workflows } from './workflows/workflows.ts'

export interface Service {
  dashboardUrl: string
  /** Leads to choosing who owns the installation, as long as nobody can sign in. Works once. */
  welcomeUrl: string | undefined
  executionUrl: string
  browserContextUrl: string
  managementUrl: string
  /** The account that this start made, when it was the first one. */
  firstAccount: { id: string; name: string } | undefined
  stop(): Promise<void>
}

/** Serves both surfaces and the management address; resolves when they accept requests. */
export async function startService(config: Config, log: Logger, command: string): Promise<Service> {
  const [workflows, store] = await Promise.all([describeWorkflows(config.WORKFLOWS_DIR), openStore(config)])
  const encryption = await openEncryption(config, store, sealedColumns)
  const domain = construct({ config, store, workflows: new Workflows(workflows), encryption, log })
  const firstAccount = await domain.accounts.createFirst()
  const welcomeToken = await domain.links.first()
  const worker = new WorkerProcess(command, log)
  const metrics = new Metrics(store.read)
  let stopping = false
  const ready = async () => {
    if (stopping) throw new StoreUnavailable('The service is stopping.')
    await store.check()
  }

  const perMinute = config.RATE_LIMIT_PER_MINUTE
  const rateLimit = perMinute > 0 ? new RateLimit(perMinute) : undefined
  const addresses = { dashboardUrl: '', executionUrl: '', browserContextUrl: '' }
  const docs = docsHandler(() => ({
    execution: addresses.executionUrl,
    'browser-context': addresses.browserContextUrl,
  }))
  const surface = (name: string) => ({
    name,
    elsewhere: (path: string) => (isDocsPath(path) ? docs : undefined),
    authenticate: (value: string, from?: string) => domain.apiKeys.authenticate(value, from),
    ...(rateLimit && { admit: (principal: Principal) => rateLimit.admit(principal) }),
    proxyHops: config.PROXY_HOPS,
    isUnavailable: (error: unknown) => error instanceof StoreUnavailable,
    describe: ({ accountId, apiKeyId }: Principal) => ({ accountId, apiKeyId }),
    observe: metrics.observe(name),
    log,
  })
  const execution = { ...surface('execution'), ...executionContract, handlers: executionApi(domain) }
  const browserContext = {
    ...surface('browser-context'),
    ...browserContextContract,
    handlers: browserContextApi(domain),
  }
  const apps = await Promise.all([mountDocument(execution), mountDocument(browserContext)])

  const dashboard = dashboardApp({
    ...domain,
    docs,
    sessionSecrets: encryption.signatures('dashboard', 'sessions').map((each) => each.toString('base64url')),
    publicUrl: config.DASHBOARD_URL,
    port: config.DASHBOARD_PORT,
    proxyHops: config.PROXY_HOPS,
    addresses: () => addresses,
    isUnavailable: (error) => error instanceof StoreUnavailable,
    log,
  })
  const management = managementApp({ registry: metrics.registry, ready })
  const listeners = await listenOnAll(config, [dashboard, ...apps, management])
  const [dashboardListener, executionListener, browserContextListener, managementListener] = listeners
  addresses.dashboardUrl = config.DASHBOARD_URL ?? dashboardListener.url
  addresses.executionUrl = config.EXECUTION_URL ?? executionListener.url
  addresses.browserContextUrl = config.BROWSER_CONTEXT_URL ?? browserContextListener.url
  domain.upkeep.start()
  worker.start()

  return {
    ...addresses,
    welcomeUrl: welcomeToken && `${addresses.dashboardUrl}/links/${welcomeToken}`,
    managementUrl: managementListener.url,
    firstAccount,
    async stop() {
      stopping = true
      domain.feed.close()
      const surfaces = [dashboardListener, executionListener, browserContextListener].map((listener) =>
        listener.stop(config.SHUTDOWN_SECONDS),
      )
      await Promise.all([...surfaces, worker.stop(), domain.upkeep.stop()])
      rateLimit?.close()
      await domain.apiKeys.close()
      await managementListener.stop(0)
      await store.close()
    },
  }
}

interface Foundations {
  config: Config
  store: Store
  workflows: Workflows
  encryption: Encryption
  log: Logger
}

function construct({ config, store, workflows, encryption, log }: Foundations) {
  const cursors = new Cursors(encryption)
  const artifacts = new RunArtifacts(store, config.ARTIFACT_RETENTION_DAYS)
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
    }),
    artifacts,
    feed: new RunFeed(store),
    statistics: new RunStatistics(store),
    workers: new Workers(store),
    upkeep: new Upkeep(store, artifacts, (error) => log.warn({ err: error }, 'upkeep failed; it is tried again')),
    browserContexts: new BrowserContexts(store, cursors),
    contextVersions: new ContextVersions(store, encryption, config.BROWSER_CONTEXT_VERSIONS),
  }
}

type Apps = Awaited<ReturnType<typeof mountDocument>>[]

/** Opens the four ports, or none of them. */
async function listenOnAll(config: Config, apps: Apps): Promise<[Listener, Listener, Listener, Listener]> {
  const [dashboard, execution, browserContext, management] = apps
  if (!dashboard || !execution || !browserContext || !management) throw new Error('Four apps are to be listened on.')
  const opened: Listener[] = []
  try {
    const host = config.HOST
    opened.push(await listen(dashboard, { host, port: config.DASHBOARD_PORT, name: 'DASHBOARD_PORT' }))
    opened.push(await listen(execution, { host, port: config.EXECUTION_PORT, name: 'EXECUTION_PORT' }))
    opened.push(await listen(browserContext, { host, port: config.BROWSER_CONTEXT_PORT, name: 'BROWSER_CONTEXT_PORT' }))
    opened.push(await listen(management, { host, port: config.MANAGEMENT_PORT, name: 'MANAGEMENT_PORT' }))
    return opened as [Listener, Listener, Listener, Listener]
  } catch (error) {
    await Promise.all(opened.map((listener) => listener.stop(0)))
    throw error
  }
}
