/**
 * Composes the service, a worker, and the objects that operator commands use. Domain objects are constructed in
 * `domain/create-domain.ts` and, for a worker, in `worker/create-worker.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import { Accounts } from './domain/accounts/accounts.ts'
import { SignInLinks } from './domain/accounts/sign-in-links.ts'
import { Users } from './domain/accounts/users.ts'
import { ApiKeys } from './domain/api-keys/api-keys.ts'
import { RateLimit } from './domain/api-keys/rate-limit.ts'
import { createDomain } from './domain/create-domain.ts'
import { buildSnapshot } from './domain/deployments/build-snapshot.ts'
import { deployDirectory } from './domain/deployments/deploy-directory.ts'
import { Deployments } from './domain/deployments/deployments.ts'
import { openEncryption, openStore, retryAtStart } from './domain/installation.ts'
import { Workers } from './domain/queue/workers.ts'
import { WebhookSender } from './domain/webhooks/send-webhook.ts'
import { WebhookDispatcher } from './domain/webhooks/webhook-dispatcher.ts'
import { builderIdentity, executorIdentity } from './domain/workflows/executor-identity.ts'
import type { Workflow } from './domain/workflows/workflow.ts'
import { retentionFrom } from './maintenance/retention.ts'
import { knownScopes } from './openapi/served-documents.ts'
import type { Store } from './storage/store.ts'
import type { Management } from './surfaces/management/management.ts'
import { Metrics } from './surfaces/management/metrics.ts'
import { Readiness } from './surfaces/management/readiness.ts'
import { type Addresses, type Role, readRoles, type Surface } from './surfaces/roles.ts'
import { openTracing, tracedStore } from './telemetry/tracing.ts'
import { AttemptSpans, type ObserveAttempt } from './worker/attempt/attempt-observer.ts'
import { createMaintenance, createWorker, workerSettings } from './worker/create-worker.ts'
import { serveMetricsToParent, WorkerProcess } from './worker/worker-process.ts'

export interface Service extends Addresses {
  /** The link to sign up as the installation's owner, until one has signed up. Works once. */
  welcomeUrl: string | undefined
  managementUrl: string
  /** The installation's workflows when the service started. */
  workflows: readonly Workflow[]
  /** Where this process itself listens; the public address of a surface may differ. */
  listening: ReadonlyMap<Surface, string>
  /** Set when this start created the installation's first account. */
  firstAccount: { id: string; name: string } | undefined
  stop(): Promise<void>
}

interface StartOptions {
  /** Builds the snapshot of WORKFLOWS_DIR. */
  build?: typeof buildSnapshot
  /** Whether WORKFLOWS_DIR is deployed although versions in it break their callers. */
  allowBreaking?: boolean
}

/**
 * Serves the surfaces of the given roles and the management address; resolves when they accept requests.
 *
 * @param command the module that runs a worker when started with the argument `worker`.
 */
export async function startService(
  config: Config,
  log: Logger,
  command: string,
  roles: ReadonlySet<Role> = readRoles([]),
  { build = buildSnapshot, allowBreaking = false }: StartOptions = {},
): Promise<Service> {
  // A process without workers may run as any user.
  const identity = roles.has('worker') ? executorIdentity(config) : builderIdentity(config)
  const { WORKFLOWS_DIR: directory } = config
  const building = directory === undefined ? undefined : build(directory, { identity })
  // Awaited below. If the store cannot be opened, that is the error to report.
  building?.catch(() => {})
  const [{ listenOnSurfaces }, untraced, tracing] = await Promise.all([
    // Loaded on demand: a worker process needs neither Express nor the dashboard.
    import('./surfaces/serve-surfaces.ts'),
    openStore(config),
    openTracing(config, log),
  ])
  const store = tracing ? tracedStore(untraced) : untraced
  const metrics = new Metrics('service', untraced)
  const encryption = await openEncryption(config, store)
  const deployments = new Deployments(store, (err) => log.warn({ err }, 'reading deployments failed; retrying'))
  const retention = retentionFrom(config)
  const settings = { config, workflows: deployments, artifactRetentionDays: retention.artifacts }
  const domain = createDomain({ ...settings, store, encryption, observer: metrics.runs, log })
  const { usage, scheduler, bulkWorker } = domain
  const maintenance = createMaintenance(store, retention, log, metrics.runs, usage, deployments, scheduler, bulkWorker)
  const { accounts, links } = domain
  const firstAccount = await retryAtStart(() => accounts.createFirst())
  const warm = () => deployments.warm().catch((err: unknown) => log.warn({ err }, 'compiling schemas failed'))
  deployments.onChange(() => {
    metrics.initializeWorkflows(deployments.listAll())
    void warm()
    domain.scheduler.recheck().catch((err: unknown) => log.warn({ err }, 'checking schedules failed'))
  })
  const toDeploy = building && { path: directory ?? '', building, allowBreaking }
  const logDeployment = toDeploy && (await deployDirectory(deployments, toDeploy, log))
  await retryAtStart(() => deployments.open())
  await warm()
  const welcomeToken = roles.has('dashboard') ? await retryAtStart(() => links.createFirstWelcomeLink()) : undefined
  const worker = roles.has('worker') ? new WorkerProcess(command, log) : undefined
  const readiness = new Readiness(store, log)
  const ready = () => readiness.check()
  addInstallationMetrics(metrics, { config, store, workflows: () => deployments.listAll(), ready })
  const onUnavailable = (err: unknown) => log.warn({ err }, 'shared rate limit failed; counting in this process alone')
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  const rateLimit = perMinute > 0 ? new RateLimit(perMinute, store.counters, onUnavailable) : undefined
  const management = { metrics: async () => metrics.text(await worker?.metrics()), ready }
  const sender = new WebhookSender(config.WEBHOOK_PRIVATE_ADDRESSES)
  const webhooks = new WebhookDispatcher({ store, encryption, sender, log, observe: metrics.registerWebhookMetrics() })
  const listeners = await listenOnSurfaces(roles, {
    config,
    store,
    encryption,
    domain: { ...domain, retention },
    metrics: metrics.registerRequestMetrics(() => domain.feed.followers),
    isTraced: tracing !== undefined,
    rateLimit,
    management,
    log,
  })
  logDeployment?.()
  maintenance.start()
  webhooks.start()
  worker?.start()
  readiness.start()

  return {
    ...listeners.addresses,
    welcomeUrl: welcomeToken && `${listeners.addresses.dashboardUrl}/links/${welcomeToken}`,
    managementUrl: listeners.management.url,
    workflows: deployments.installation.list(),
    listening: new Map([...listeners.surfaces].map(([name, { url }]) => [name, url])),
    firstAccount,
    async stop() {
      readiness.stop()
      const workerEnded = worker?.stop()
      const serving = [...listeners.surfaces.values()]
      for (const listener of serving) listener.drain()
      await delay(config.DRAIN_SECONDS * 1000)
      domain.feed.close()
      deployments.close()
      const stopped = serving.map((listener) => listener.stop(config.SHUTDOWN_SECONDS))
      await Promise.all([...stopped, workerEnded, maintenance.stop(), webhooks.stop()])
      await domain.apiKeys.close()
      await domain.refusals.close()
      await listeners.management.stop(0)
      await tracing?.close()
      await store.close()
    },
  }
}

interface RunningWorker {
  /** Set for a worker with a management address. */
  managementUrl: string | undefined
  stop(): Promise<void>
}

/**
 * Starts a worker in this process; resolves when it executes runs.
 *
 * @param isManaged whether it listens on the management address. A service's own worker shares its settings and must not.
 * @param onFatal called when it cannot execute runs any more.
 */
export async function startWorker(
  config: Config,
  log: Logger,
  { isManaged, onFatal }: { isManaged: boolean; onFatal(error: unknown): void },
): Promise<RunningWorker> {
  const store = await openStore(config)
  const tracing = await openTracing(config, log)
  const metrics = new Metrics('worker', store)
  serveMetricsToParent(() => metrics.registry.getMetricsAsJSON())
  const encryption = await openEncryption(config, store)
  const observers: ObserveAttempt[] = [metrics.registerAttemptMetrics()]
  if (tracing) observers.push((claim) => new AttemptSpans(claim))
  const settings = { ...workerSettings(config), observer: metrics.runs, observers }
  const worker = createWorker(store, encryption, settings, log, onFatal)
  const readiness = new Readiness(store, log)
  const ready = () => readiness.check()
  if (isManaged) addInstallationMetrics(metrics, { config, store, workflows: () => worker.workflows(), ready })
  // Before the worker starts, so that a worker whose port is in use does not register.
  const listener = isManaged ? await listenForManagement(config, { metrics: () => metrics.text(), ready }) : undefined
  await worker.start()
  if (process.getuid?.() === 0 && config.EXECUTOR_UID === undefined)
    log.warn('workflows have the rights of root: set EXECUTOR_UID, or start the worker as another user')
  metrics.initializeWorkflows(worker.workflows())
  readiness.start()
  return {
    managementUrl: listener?.url,
    async stop() {
      readiness.stop()
      await worker.stop(config.SHUTDOWN_SECONDS)
      await listener?.stop(0)
      await store.close()
      await tracing?.close()
    },
  }
}

/** Loads Express only for a worker with a management address: it takes some megabytes. */
async function listenForManagement(config: Config, management: Management) {
  const [{ listen }, { managementApp, managementAddress }, { checkHost }] = await Promise.all([
    import('./contract/listener.ts'),
    import('./surfaces/management/management.ts'),
    import('./surfaces/known-hosts.ts'),
  ])
  return listen(managementApp({ ...management, checkHost: checkHost(config) }), managementAddress(config))
}

type InstallationMetricsOptions = { config: Config; store: Store } & Pick<
  Parameters<Metrics['registerInstallationMetrics']>[0],
  'workflows' | 'ready'
>

function addInstallationMetrics(metrics: Metrics, { config, store, ...options }: InstallationMetricsOptions): void {
  const { ACCOUNT_CONCURRENCY: accountConcurrency } = config
  metrics.registerInstallationMetrics({ ...options, tx: store.read, workers: new Workers(store), accountConcurrency })
}

export interface Administration {
  accounts: Accounts
  users: Users
  links: SignInLinks
  apiKeys: ApiKeys
  deployments: Deployments
  close(): Promise<void>
}

/**
 * Opens the objects that operator commands change. A service may be running. Creates the store and the first account.
 */
export async function openAdministration(config: Config): Promise<Administration> {
  const store = await openStore(config)
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  const deployments = new Deployments(store)
  const close = async () => {
    await apiKeys.close()
    await store.close()
  }
  const prepare = async () => {
    await retryAtStart(() => accounts.createFirst())
    await retryAtStart(() => deployments.refresh())
  }
  await prepare().catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { accounts, users: new Users(store), links: new SignInLinks(store), apiKeys, deployments, close }
}
