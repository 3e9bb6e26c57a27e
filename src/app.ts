/**
 * Composes the service, a worker, and the objects that operator commands use. Domain objects are constructed in
 * `domain/create-domain.ts` and, for a worker, in `worker/create-worker.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import { ConfigError } from './config/setting-kinds.ts'
import { loopbackOrigins } from './contract/cross-origin.ts'
import type { Intercept } from './contract/stages.ts'
import { AccountValues } from './domain/account-values/account-values.ts'
import { DeclaredValuesReader } from './domain/account-values/declared-values.ts'
import { createSecretStore } from './domain/account-values/secret-stores.ts'
import { type DeletionReceipt, deleteAccount } from './domain/accounts/account-deletion.ts'
import { type ExportSummary, exportAccount } from './domain/accounts/account-export.ts'
import { type Account, Accounts } from './domain/accounts/accounts.ts'
import { Environments } from './domain/accounts/environments.ts'
import { SignInLinks } from './domain/accounts/sign-in-links.ts'
import { Users } from './domain/accounts/users.ts'
import { ApiKeys } from './domain/api-keys/api-keys.ts'
import { RateLimit } from './domain/api-keys/rate-limit.ts'
import { createDomain } from './domain/create-domain.ts'
import { buildSnapshot, describeBundle } from './domain/deployments/build-snapshot.ts'
import type { Bundle } from './domain/deployments/bundle.ts'
import { deployDirectory, SentBundles } from './domain/deployments/deploy-sources.ts'
import { servicePackage } from './domain/deployments/deployment-files.ts'
import { Deployments } from './domain/deployments/deployments.ts'
import {
  encryptedColumns,
  hasEncryptionKey,
  openBlobs,
  openEncryption,
  openStore,
  retryAtStart,
} from './domain/installation.ts'
import { messageTargets } from './domain/notifications/message-targets.ts'
import { Workers } from './domain/queue/workers.ts'
import { AttemptLiveViews } from './domain/remote-workers/attempt-live-views.ts'
import { LeasedAttempts } from './domain/remote-workers/leased-attempts.ts'
import { RemoteAttempts } from './domain/remote-workers/remote-attempts.ts'
import { RemoteWorkers } from './domain/remote-workers/remote-workers.ts'
import { WebhookSender } from './domain/webhooks/send-webhook.ts'
import {
  type SimulatedDispatch,
  WebhookDispatcher,
  type WebhookDispatcherDependencies,
} from './domain/webhooks/webhook-dispatcher.ts'
import { builderIdentity, executorIdentity } from './domain/workflows/executor-identity.ts'
import type { Workflow } from './domain/workflows/workflow.ts'
import { Maintenance } from './maintenance/maintenance.ts'
import { retentionFrom } from './maintenance/retention.ts'
import { knownScopes } from './openapi/served-documents.ts'
import { Contents } from './storage/blobs/contents.ts'
import { Cursors } from './storage/cursors.ts'
import type { Store } from './storage/store.ts'
import type { Management } from './surfaces/management/management.ts'
import { Metrics } from './surfaces/management/metrics.ts'
import { Readiness } from './surfaces/management/readiness.ts'
import { type Addresses, type Role, readRoles, type Surface } from './surfaces/roles.ts'
import { openTracing, type Tracing, tracedStore } from './telemetry/tracing.ts'
import { AttemptSpans, type ObserveAttempt } from './worker/attempt/attempt-observer.ts'
import { createWorker } from './worker/create-worker.ts'
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

/** What a simulator replaces. */
export interface Simulated {
  open: () => Promise<Store>
  /** Further routes of the management address. */
  routes: RequestHandler
  /** Where readers reach the surfaces. */
  addresses: Addresses
  /** Called for each request of the APIs. */
  intercept?: Intercept
  /** Sends webhooks. */
  sender: WebhookDispatcherDependencies['sender']
  dispatch: SimulatedDispatch
}

/**
 * Serves the surfaces of the given roles and the management address; resolves when they accept requests. If that fails,
 * everything that was opened is closed.
 *
 * @param command the module that runs a worker when started with the argument `worker`.
 */
export async function startService(
  config: Config,
  log: Logger,
  command: string,
  roles: ReadonlySet<Role> = readRoles([]),
  options: StartOptions = {},
): Promise<Service> {
  const { opened, close } = await serviceSteps({ config, log, command, roles, options }).open()
  const { listeners, deployments, firstAccount, welcomeToken } = opened
  return {
    ...listeners.addresses,
    welcomeUrl: welcomeToken && `${listeners.addresses.dashboardUrl}/links/${welcomeToken}`,
    managementUrl: listeners.management.url,
    workflows: deployments.installation.list(),
    listening: new Map([...listeners.surfaces].map(([name, { url }]) => [name, url])),
    firstAccount,
    stop: close,
  }
}

export interface ServiceStart {
  config: Config
  log: Logger
  command: string
  roles: ReadonlySet<Role>
  options: StartOptions
  simulated?: Simulated
}

/** The order of a start. What closes in which phase of a stop stands at the step that opens it. */
export function serviceSteps(start: ServiceStart) {
  return servingSteps(start)
    .step('maintenance', ({ maintenance }) => maintenance.start(), { work: ({ maintenance }) => maintenance.stop() })
    .step('webhooks', ({ webhooks }) => webhooks.start(), { work: ({ webhooks }) => webhooks.stop() })
    .step('worker', ({ worker }) => worker?.start(), {
      workerStop: ({ worker }) => void worker?.stop(),
      work: ({ worker }) => worker?.stop(),
    })
    .step('readiness', ({ readiness }) => readiness.start(), {
      unready: ({ readiness }) => readiness.stop(),
      wait: () => delay(start.config.DRAIN_SECONDS * 1000),
    })
    .step('compilation', (opened) => compileWhenReady(opened, start.log), {
      unready: ({ compilation }) => clearTimeout(compilation),
    })
}

/** The steps until requests are served. Nothing happens by itself yet: a simulator calls each part when it is due. */
export function servingSteps(start: ServiceStart) {
  const { config, log, simulated } = start
  return (
    withStore(
      new Steps().step('code', () => loadCode(start)),
      config,
      log,
      simulated?.open,
    )
      .step('domain', (opened) => openServiceDomain(start, opened), {
        followers: ({ domain, deployments }) => {
          domain.feed.close()
          deployments.close()
        },
        apiKeys: ({ domain }) => domain.apiKeys.close(),
        refusals: ({ domain }) => domain.refusals.close(),
      })
      // While the workflows are built.
      .step('surfaces', (opened) => prepareSurfaces(start, opened))
      .step('workflows', (opened) => deployWorkflows(start, opened))
      .step('listeners', (opened) => openListeners(start, opened), {
        drain: ({ listeners, domain }) => {
          domain.remoteWorkers.stopWaiting()
          domain.attemptLiveViews.stopWaiting()
          for (const listener of listeners.surfaces.values()) listener.drain()
        },
        work: ({ listeners }) =>
          Promise.all([...listeners.surfaces.values()].map((listener) => listener.stop(config.SHUTDOWN_SECONDS))),
        management: ({ listeners }) => listeners.management.stop(0),
      })
  )
}

/** First requests would wait for 50 to 130 ms of CPU each. The service is ready before that. */
function compileWhenReady({ listeners, deployments }: OpenDomain & Listeners, log: Logger) {
  const report = (err: unknown) => log.warn({ err }, 'compiling schemas failed')
  const compileWorkflows = () => deployments.warm().catch(report)
  deployments.onChange(() => void compileWorkflows())
  return { compilation: setTimeout(() => listeners.warmUp().then(compileWorkflows, report), 0) }
}

/** Starts what takes long and needs no store. */
function loadCode({ config, log, roles, options: { build = buildSnapshot } }: ServiceStart) {
  // A process without workers may run as any user.
  const identity = roles.has('worker') ? executorIdentity(config) : builderIdentity(config)
  const { WORKFLOWS_DIR: directory } = config
  const onOutput = logOutput(log, { directory })
  const building = directory === undefined ? undefined : build(directory, { identity, onOutput })
  // Loaded on demand: a worker process needs neither Express nor the dashboard.
  const serveSurfaces = import('./surfaces/serve-surfaces.ts')
  // Awaited by later steps. If the store cannot be opened, that is the error to report.
  for (const promise of [building, serveSurfaces]) promise?.catch(() => {})
  return { building, serveSurfaces }
}

async function openServiceDomain({ config, log, simulated }: ServiceStart, { untraced, tracing }: OpenStore) {
  const store = tracing ? tracedStore(untraced) : untraced
  const metrics = new Metrics('service', untraced)
  const encryption = await openEncryption(config, store)
  const blobs = simulated ? undefined : await openBlobs(config, log)
  const deployments = new Deployments(store, (err) => log.warn({ err }, 'reading deployments failed; retrying'))
  const retention = retentionFrom(config)
  const settings = {
    config,
    store,
    encryption,
    blobs,
    log,
    observer: metrics.runs,
    artifactRetentionDays: retention.artifacts,
  }
  const created = createDomain({ ...settings, workflows: deployments })
  const remote = { ...created, deployments, leaseSeconds: config.LEASE_SECONDS }
  const remoteWorkers = new RemoteWorkers(remote)
  const describe = config.API_DEPLOYMENTS === 'on' ? bundleDescriber(config, log) : undefined
  const sentBundles = new SentBundles({ deployments, usage: created.usage, describe })
  const leasedAttempts = new LeasedAttempts(remote)
  const remoteAttempts = new RemoteAttempts({ ...remote, leasedAttempts })
  const attemptLiveViews = new AttemptLiveViews({ ...created, leasedAttempts })
  const workers = { remoteWorkers, remoteAttempts, attemptLiveViews }
  const domain = { ...created, retention, deployments, sentBundles, ...workers }
  const maintenance = new Maintenance({ ...domain, log })
  return { store, metrics, encryption, deployments, domain, maintenance }
}

/** Describes bundles that callers send, as the user that executes workflows. */
function bundleDescriber(config: Config, log: Logger) {
  const directories = [config.WORKFLOWS_DIR, servicePackage].filter((each) => each !== undefined)
  const identity = builderIdentity(config)
  return (bundle: Bundle, accountId: string) =>
    describeBundle(bundle, directories, { identity, onOutput: logOutput(log, { accountId }) })
}

/** As a field, so that no output looks like a line of the service. */
function logOutput(log: Logger, fields: object): (line: string) => void {
  return (line) => log.info({ ...fields, output: line }, 'module printed while it was loaded')
}

type Code = ReturnType<typeof loadCode>
type OpenDomain = Awaited<ReturnType<typeof openServiceDomain>>

async function prepareSurfaces(
  { config, log, roles, simulated }: ServiceStart,
  { store, encryption, metrics, domain, serveSurfaces, tracing }: Code & OpenStore & OpenDomain,
) {
  const onUnavailable = (err: unknown) => log.warn({ err }, 'shared rate limit failed; counting in this process alone')
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  const limitClock = simulated ? () => Date.now() : undefined
  const rateLimit = perMinute > 0 ? new RateLimit(perMinute, store.counters, onUnavailable, limitClock) : undefined
  const { createSurfaces } = await serveSurfaces
  const surfaces = await createSurfaces(roles, {
    ...{ config, store, encryption, domain, rateLimit, log, intercept: simulated?.intercept },
    metrics: metrics.registerRequestMetrics(() => domain.feed.followers),
    isTraced: tracing !== undefined,
    // Anyone who knows the documented key of a simulator may call it.
    origins: simulated ? loopbackOrigins(config.CORS_ORIGINS) : config.CORS_ORIGINS,
  })
  return { surfaces }
}

type PreparedSurfaces = Awaited<ReturnType<typeof prepareSurfaces>>

async function deployWorkflows(start: ServiceStart, { domain, deployments, metrics, building }: Code & OpenDomain) {
  const { config, log, roles, options } = start
  const firstAccount = await retryAtStart(() => domain.accounts.createFirst())
  if (config.OIDC_ACCOUNT !== undefined) await requireAccount(domain, config.OIDC_ACCOUNT)
  deployments.onChange(() => {
    metrics.initializeWorkflows(deployments.listAll())
    domain.scheduler.recheck().catch((err: unknown) => log.warn({ err }, 'checking schedules failed'))
  })
  const { allowBreaking = false } = options
  const toDeploy = building && { path: config.WORKFLOWS_DIR ?? '', building, allowBreaking }
  const logDeployment = toDeploy && (await deployDirectory(deployments, toDeploy, log))
  await retryAtStart(() => deployments.open())
  const createLink = () => domain.links.createFirstWelcomeLink()
  const isWelcoming = roles.has('dashboard') && config.PASSWORD_SIGN_IN === 'on'
  const welcomeToken = isWelcoming ? await retryAtStart(createLink) : undefined
  return { firstAccount, logDeployment, welcomeToken }
}

/** @throws {ConfigError} unless there is the account that people join by the identity provider. */
async function requireAccount({ accounts }: OpenDomain['domain'], id: string): Promise<void> {
  if ((await retryAtStart(() => accounts.get(id)))?.ownerId === id) return
  throw new ConfigError(`OIDC_ACCOUNT is "${id}": set it to the id of an account, which \`accounts list\` prints.`)
}

type Workflows = Awaited<ReturnType<typeof deployWorkflows>>

async function openListeners(
  { config, log, command, roles, simulated }: ServiceStart,
  opened: OpenDomain & PreparedSurfaces & Workflows,
) {
  const { store, encryption, metrics, deployments, domain, surfaces, logDeployment } = opened
  const worker = roles.has('worker') ? new WorkerProcess(command, log) : undefined
  const readiness = new Readiness(store, log)
  const ready = () => readiness.check()
  addInstallationMetrics(metrics, { config, store, workflows: () => deployments.listAll(), ready })
  const management = {
    ...{ metrics: async () => metrics.text(await worker?.metrics()), ready },
    routes: simulated?.routes,
  }
  const sender = simulated?.sender ?? new WebhookSender(config.WEBHOOK_PRIVATE_ADDRESSES)
  const observe = metrics.registerWebhookMetrics()
  const webhooks = new WebhookDispatcher({
    ...{ store, encryption, sender, log, observe },
    others: [messageTargets({ ...domain, store, encryption, sender })],
    simulated: simulated?.dispatch,
  })
  const listeners = await surfaces.listen({ management, addresses: simulated?.addresses })
  domain.dashboard.url = listeners.addresses.dashboardUrl
  logDeployment?.()
  return { listeners, readiness, webhooks, worker }
}

type Listeners = Awaited<ReturnType<typeof openListeners>>

interface RunningWorker {
  /** Set for a worker with a management address. */
  managementUrl: string | undefined
  stop(): Promise<void>
}

interface WorkerStart {
  /** Whether it listens on the management address. A service's own worker shares its settings and must not. */
  isManaged: boolean
  /** Called when it cannot execute runs any more. */
  onFatal(error: unknown): void
}

/** Starts a worker in this process; resolves when it executes runs. If that fails, what was opened is closed. */
export async function startWorker(config: Config, log: Logger, start: WorkerStart): Promise<RunningWorker> {
  const { opened, close } = await workerSteps(config, log, start).open()
  return { managementUrl: opened.listener?.url, stop: close }
}

function workerSteps(config: Config, log: Logger, { isManaged, onFatal }: WorkerStart) {
  return (
    withStore(new Steps(), config, log)
      .step('worker', async ({ untraced: store, tracing }) => {
        const metrics = new Metrics('worker', store)
        const encryption = await openEncryption(config, store)
        const blobs = await openBlobs(config, log)
        const observers: ObserveAttempt[] = [metrics.registerAttemptMetrics()]
        if (tracing) observers.push((claim) => new AttemptSpans(claim))
        const identity = executorIdentity(config)
        const observing = { observer: metrics.runs, observers, observeProcesses: metrics.registerProcessMetrics() }
        const worker = createWorker({ config, store, encryption, blobs, log, identity, ...observing, onFatal })
        serveMetricsToParent(() => {
          metrics.initializeWorkflows(worker.workflows())
          return metrics.registry.getMetricsAsJSON()
        })
        return { metrics, worker }
      })
      // Before the worker starts, so that a worker whose port is in use does not register.
      .step(
        'management',
        async ({ untraced: store, metrics, worker }) => {
          const readiness = new Readiness(store, log)
          const ready = () => readiness.check()
          if (isManaged) addInstallationMetrics(metrics, { config, store, workflows: () => worker.workflows(), ready })
          const text = () => {
            metrics.initializeWorkflows(worker.workflows())
            return metrics.text()
          }
          const management = { metrics: text, ready }
          return { readiness, listener: isManaged ? await listenForManagement(config, management) : undefined }
        },
        { management: ({ listener }) => listener?.stop(0) },
      )
      .step(
        'attempts',
        async ({ worker }) => {
          await worker.start().catch(async (error: unknown) => {
            await worker.stop(0)
            throw error
          })
          const { EXECUTOR_UID, EXECUTOR_UIDS } = config
          if (process.getuid?.() === 0 && EXECUTOR_UID === undefined && !EXECUTOR_UIDS)
            log.warn('workflows have the rights of root: set EXECUTOR_UIDS, or start the worker as another user')
          else if (!EXECUTOR_UIDS)
            log.info('workflows of all accounts share a user, and can read the files and memory of each other')
        },
        { work: ({ worker }) => worker.stop(config.SHUTDOWN_SECONDS) },
      )
      .step('readiness', ({ readiness }) => readiness.start(), { unready: ({ readiness }) => readiness.stop() })
  )
}

interface OpenStore {
  /** Without the spans of `tracedStore`. */
  untraced: Store
  tracing: Tracing | undefined
}

/** Steps of a service and of a worker. */
function withStore<Opened extends object>(
  steps: Steps<Opened>,
  config: Config,
  log: Logger,
  open = () => openStore(config),
): Steps<Opened & OpenStore> {
  return steps
    .step('tracing', async () => ({ tracing: await openTracing(config, log) }), {
      tracing: ({ tracing }) => tracing?.close(),
    })
    .step('store', async () => ({ untraced: await open() }), { store: ({ untraced }) => untraced.close() })
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
  environments: Environments
  users: Users
  links: SignInLinks
  apiKeys: ApiKeys
  deployments: Deployments
  /** Opens the encryption keys. */
  openValues(): Promise<AccountValues>
  /**
   * Opens the encryption keys, and the store of secrets that the configuration names. Resolves with `undefined` if the store
   * has no encrypted values yet: the first process of the service decides on its key.
   */
  openDeclaredValues(): Promise<DeclaredValuesReader | undefined>
  /** Writes what the account has to an empty directory. @param secrets also opens the encryption keys. */
  exportAccount(id: string, directory: string, secrets: boolean): Promise<ExportSummary>
  deleteAccount(account: Account): Promise<DeletionReceipt>
  close(): Promise<void>
}

/**
 * Opens the objects that operator commands change. A service may be running. Creates the store and the first account.
 */
export async function openAdministration(config: Config): Promise<Administration> {
  const store = await openStore(config)
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  const deployments = new Deployments(store, undefined, undefined, { validates: false })
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
  const openValues = async () => {
    const encryption = await openEncryption(config, store)
    return new AccountValues(store, encryption, new Cursors(encryption))
  }
  const openDeclaredValues = async () => {
    if (!(await hasEncryptionKey(store))) return undefined
    return new DeclaredValuesReader(store, await openEncryption(config, store), createSecretStore(config))
  }
  const contents = new Contents(store, await openBlobs(config))
  const data: Pick<Administration, 'exportAccount' | 'deleteAccount'> = {
    exportAccount: async (id, directory, secrets) => {
      const encryption = secrets ? await openEncryption(config, store) : undefined
      const readFiles = (deploymentId: string) => deployments.readFiles(deploymentId)
      const options = { columns: encryptedColumns, encryption, readFiles, contents, now: Date.now() }
      return exportAccount(store, id, directory, options)
    },
    deleteAccount: (account) => deleteAccount(store, account, contents),
  }
  const values = { openValues, openDeclaredValues }
  const environments = new Environments(store, contents, config.ENVIRONMENTS_MAX)
  const users = { environments, users: new Users(store, config), links: new SignInLinks(store) }
  return { accounts, ...users, apiKeys, deployments, ...values, ...data, close }
}

/** Opens the domain objects of a service for a command, which serves nothing. A service may be running. */
export async function openDomain(config: Config, log: Logger) {
  const steps = new Steps()
    .step('store', async () => ({ store: await openStore(config) }), { store: ({ store }) => store.close() })
    .step('deployments', async ({ store }) => ({ deployments: await new Deployments(store).open() }), {
      work: ({ deployments }) => deployments.close(),
    })
    .step(
      'domain',
      async ({ store, deployments: workflows }) => {
        const [encryption, blobs] = [await openEncryption(config, store), await openBlobs(config, log)]
        const { artifacts: artifactRetentionDays } = retentionFrom(config)
        return { domain: createDomain({ config, store, encryption, blobs, log, workflows, artifactRetentionDays }) }
      },
      {
        followers: ({ domain }) => domain.feed.close(),
        apiKeys: ({ domain }) => domain.apiKeys.close(),
        refusals: ({ domain }) => domain.refusals.close(),
      },
    )
  const { opened, close } = await steps.open()
  return { domain: opened.domain, close }
}

// The order of starts and stops.

/** The phases of a stop, in order. What closes in the same phase closes at the same time. */
const stopPhases = [
  /** Probes see that the process stops. */
  'unready',
  /** The worker claims no more runs. It ends with `work`. */
  'workerStop',
  /** Listeners let clients go to another process. */
  'drain',
  /** Load balancers notice, while requests are still served. */
  'wait',
  /** Event streams end. */
  'followers',
  /** Requests, attempts, deliveries and maintenance end. */
  'work',
  'apiKeys',
  'refusals',
  'management',
  'tracing',
  'store',
] as const

type StopPhase = (typeof stopPhases)[number]

type Closers<Opened> = { readonly [phase in StopPhase]?: (opened: Opened) => unknown }

interface Step {
  readonly name: string
  open(opened: object): unknown
  readonly closers: Closers<object>
}

/** Steps of a start, each with what it opens and in which phases of a stop that closes. */
export class Steps<Opened extends object = object> {
  readonly #steps: readonly Step[]

  constructor(steps: readonly Step[] = []) {
    this.#steps = steps
  }

  /**
   * Adds a step after the others.
   *
   * @param open gets what the steps before it have opened, and returns what it opens itself, if anything.
   * @param closers get that, too.
   */
  step<More>(
    name: string,
    open: (opened: Opened) => More | Promise<More>,
    closers: Closers<Opened & (More extends object ? More : object)> = {},
  ): Steps<Opened & (More extends object ? More : object)> {
    return new Steps([...this.#steps, { name, open, closers } as Step])
  }

  get stopOrder(): Record<StopPhase, string[]> {
    const closing = (phase: StopPhase) => this.#steps.filter(({ closers }) => closers[phase]).map(({ name }) => name)
    return Object.fromEntries(stopPhases.map((phase) => [phase, closing(phase)])) as Record<StopPhase, string[]>
  }

  /** Takes the steps in order. If one fails, closes what those before it have opened, and throws the step's error. */
  async open(): Promise<{ opened: Opened; close(): Promise<void> }> {
    const opened = {}
    const done: Step[] = []
    try {
      for (const step of this.#steps) {
        Object.assign(opened, await step.open(opened))
        done.push(step)
      }
    } catch (error) {
      // The error of the step is the one to report.
      await close(done, opened).catch(() => {})
      throw error
    }
    return { opened: opened as Opened, close: () => close(done, opened) }
  }
}

/** Continues when something cannot be closed, and then throws the first error. */
async function close(steps: readonly Step[], opened: object): Promise<void> {
  const errors: unknown[] = []
  for (const phase of stopPhases) {
    const closing = steps.map(async ({ closers }) => closers[phase]?.(opened))
    for (const result of await Promise.allSettled(closing)) if (result.status === 'rejected') errors.push(result.reason)
  }
  if (errors.length > 0) throw errors[0]
}
