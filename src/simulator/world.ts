/**
 * A world: the service on a store in memory, with a clock that is set, seeded randomness, and a worker that follows
 * scripts. It runs in a thread, whose time and randomness are replaced before this module is imported.
 */
import { hash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import type { Logger } from 'pino'
import { servingSteps } from '../app.ts'
import { readConfig } from '../config/config.ts'
import { addRange } from '../config/setting-kinds.ts'
import { hashKeyValue } from '../domain/api-keys/api-key.ts'
import { RunTokens } from '../domain/api-keys/run-tokens.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import type { Snapshot } from '../domain/deployments/snapshot.ts'
import { WebhookSender } from '../domain/webhooks/send-webhook.ts'
import { browserContextContract, executionContract } from '../openapi/served-documents.ts'
import { type MemoryStore, openMemoryStore } from '../storage/sqlite/memory-store.ts'
import { readRoles, type Surface } from '../surfaces/roles.ts'
import { openLog } from '../telemetry/log.ts'
import { Behaviour, type SavedBehaviour } from './behaviour.ts'
import { controlRoutes, type WorldChanges } from './control-api.ts'
import { Driver } from './driver.ts'
import type { AddressName, WorldAddresses } from './front.ts'
import type { Scenario } from './scenarios-schema.ts'
import { type SavedWorker, ScriptedWorker } from './scripted-worker.ts'
import type { SeededRandomness } from './seeded-randomness.ts'
import { systemNow, type VirtualClock } from './virtual-clock.ts'

export interface WorldOptions {
  seed: string
  /** Milliseconds since 1970. */
  now: number
  /** Simulated seconds in a second; 0: the clock stands still. */
  speed: number
  /** How many attempts run at the same time. */
  slots: number
  /** Where callers reach it. */
  addresses: WorldAddresses
  /** Settings of the service. */
  settings: Readonly<Record<string, string>>
  apiKeys: readonly { name: string; value: string; scopes: readonly string[] | null }[]
  /** What another world has saved, in place of a new one. */
  saved?: SavedWorld | undefined
}

/** What a new world begins with. */
export interface WorldContent {
  workflows: Snapshot
  scenarios: readonly Scenario[]
}

/** Everything that a world consists of, except what its listeners and connections have. */
export interface SavedWorld {
  store: Uint8Array
  now: number
  /** How many random bytes were used. */
  randomness: number
  speed: number
  worker: SavedWorker
  behaviour: SavedBehaviour
}

export interface OpenedWorld {
  /** Where the thread listens. */
  listening: WorldAddresses
  /** By the surfaces that send them. */
  documentHashes: Partial<Record<AddressName, string>>
  /** Signs up the account's admin in the dashboard; works once. */
  welcomeToken: string | undefined
}

/** How long the next world may take to listen. */
const replaceSecondsMax = 60

const workerId = '00000000-0000-7000-8000-000000000001'

export class World {
  readonly #clock: VirtualClock
  readonly #randomness: SeededRandomness
  readonly #steps: ReturnType<typeof worldSteps>
  #opened: Awaited<ReturnType<ReturnType<typeof worldSteps>['open']>> | undefined

  constructor(dependencies: WorldDependencies, options: WorldOptions) {
    this.#clock = dependencies.clock
    this.#randomness = dependencies.randomness
    this.#steps = worldSteps(dependencies, options)
  }

  async open(): Promise<OpenedWorld> {
    const opened = await this.#steps.open()
    this.#opened = opened
    const { listeners, welcomeToken } = opened.opened
    const urlOf = (name: Surface) => listeners.surfaces.get(name)?.url ?? ''
    const listening = {
      ...{ dashboardUrl: urlOf('dashboard'), executionUrl: urlOf('execution') },
      ...{ browserContextUrl: urlOf('browser-context'), managementUrl: listeners.management.url },
    }
    const documentHashes = {
      executionUrl: executionContract.documentHash,
      browserContextUrl: browserContextContract.documentHash,
    }
    return { listening, documentHashes, welcomeToken }
  }

  get driver(): Driver {
    return this.#parts.driver
  }

  get worker(): ScriptedWorker {
    return this.#parts.worker
  }

  get store(): MemoryStore {
    return this.#parts.memory
  }

  save(): Promise<SavedWorld> {
    const { memory, worker, driver, behaviour } = this.#parts
    return driver.exclusively(async () => {
      await worker.flush()
      return {
        store: await memory.serialize(),
        now: this.#clock.now(),
        randomness: this.#randomness.skipToPosition(),
        speed: driver.speed,
        worker: worker.save(),
        behaviour: behaviour.save(),
      }
    })
  }

  /** Whether it is an API key of this world, or a token that was made with one. */
  async knows(credential: string): Promise<boolean> {
    const { apiKeys, runTokens } = this.#parts.domain
    const caller = await (RunTokens.looksLike(credential) ? runTokens : apiKeys).authenticate(credential)
    return caller !== undefined
  }

  /** Serves nothing any more, except the request that replaces this world: it is answered when the next one listens. */
  async retire(): Promise<void> {
    const { listeners, driver } = this.#parts
    await driver.stop()
    void listeners.management.stop(replaceSecondsMax)
    await Promise.all([...listeners.surfaces.values()].map((listener) => listener.stop(0)))
  }

  async close(): Promise<void> {
    await this.#opened?.close()
  }

  get #parts() {
    if (!this.#opened) throw new Error('The world is not open.')
    return this.#opened.opened
  }
}

export interface WorldDependencies {
  clock: VirtualClock
  randomness: SeededRandomness
  changes: WorldChanges
  /** Of a new world, which opens while its workflows are built. */
  content(): Promise<WorldContent>
}

function worldSteps({ clock, randomness, changes, content }: WorldDependencies, options: WorldOptions) {
  const { saved, seed } = options
  // Tokens of other worlds with this seed are not valid here.
  const secret = `simulator/key/${seed}/${options.apiKeys[0]?.value}`
  const config = readConfig({
    ...options.settings,
    ...ownPorts,
    ...(options.settings.HOST && { ALLOWED_HOSTS: withHost(options.settings) }),
    ENCRYPTION_KEY: hash('sha256', secret, 'base64'),
    ...(!saved && { WORKFLOWS_DIR: 'workflows' }),
    WEBHOOK_PRIVATE_ADDRESSES: loopback.join(','),
  })
  const log: Logger = openLog(config)
  const roles = readRoles(['execution', 'browser-context', 'dashboard'])
  const made: { memory?: MemoryStore } = {}
  const control = controlRoutes(changes)
  const open = async () => {
    made.memory = await openMemoryStore(saved?.store)
    return made.memory
  }
  const build = async () => (await content()).workflows
  const behaviour = new Behaviour(seed, saved?.behaviour)
  const { intercept } = behaviour.faults
  const simulated = {
    open,
    addresses: options.addresses,
    intercept,
    routes: control.routes,
    sender: loopbackSender(),
    dispatch: { signedAt: systemNow },
  }
  return servingSteps({ config, log, command: '', roles, options: { build }, simulated })
    .step('worker', async ({ domain, deployments, encryption, webhooks, maintenance }) => {
      const memory = made.memory as MemoryStore
      if (!saved) {
        behaviour.useScenarios((await content()).scenarios)
        await createKeys(memory, domain, options.apiKeys)
      }
      const dependencies = { ...domain, deployments, encryption, now: clock.now, scripts: () => behaviour.scenarios }
      const workerSettings = { id: workerId, seed, slots: options.slots, leaseSeconds: config.LEASE_SECONDS }
      const worker = new ScriptedWorker(dependencies, workerSettings)
      if (saved) {
        await worker.restore(saved.worker)
        // A run may have been cancelled just before.
        memory.notify('cancellations')
      } else await worker.start()
      const onError = (err: unknown) => log.error({ err }, 'the clock of the simulator failed')
      const driver = new Driver({ clock, store: memory, maintenance, webhooks, worker, onError })
      return { memory, worker, driver, behaviour }
    })
    .step(
      'driver',
      ({ driver, worker, domain, deployments, store }) => {
        if (saved) randomness.seek(seed, saved.randomness)
        // IDs that a new world has made before have another time, so that its next ones are those of a restored one.
        else clock.set(options.now)
        control.open({ clock, driver, worker, domain, deployments, store, behaviour })
        driver.setSpeed(saved?.speed ?? options.speed)
      },
      { workerStop: ({ driver }) => driver.stop(), work: ({ webhooks }) => webhooks.stop() },
    )
    .step('readiness', ({ readiness }) => readiness.start(), { unready: ({ readiness }) => readiness.stop() })
}

/** The front listens on those of the settings. */
const ownPorts = {
  ...{ HOST: '127.0.0.1', MANAGEMENT_HOST: '127.0.0.1' },
  ...{ DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' },
}

/** The name of the front's host is known, as that of a service's own. */
function withHost({ HOST, ALLOWED_HOSTS }: WorldOptions['settings']): string | undefined {
  return HOST && isIP(HOST) === 0 ? [HOST, ...(ALLOWED_HOSTS ? [ALLOWED_HOSTS] : [])].join(',') : ALLOWED_HOSTS
}

type WorldDomain = Parameters<Parameters<ReturnType<typeof servingSteps>['step']>[1]>[0]['domain']

/** Creates the keys with values that are known in advance. */
async function createKeys(store: MemoryStore, domain: WorldDomain, apiKeys: WorldOptions['apiKeys']): Promise<void> {
  const [account] = await domain.accounts.list()
  if (!account) throw new Error('The world has no account.')
  const accountId = account.id
  await store.write(({ query }) =>
    query.updateTable('accounts').set({ scopes_enabled: 1 }).where('id', '=', accountId).execute(),
  )
  const userId = await domain.accounts.findAdminId(accountId)
  for (const { name, value, scopes } of apiKeys) {
    const { id } = await domain.apiKeys.create({ accountId, userId, name, scopes: null, expiresAt: null }, operator)
    const known = { hash: hashKeyValue(value), prefix: value.slice(0, 8), scopes: scopes && JSON.stringify(scopes) }
    await store.write(({ query }) => query.updateTable('api_keys').set(known).where('id', '=', id).execute())
  }
}

const loopback = ['127.0.0.0/8', '::1']

/** Sends webhooks to this machine only: a year of a world passes in seconds, which no endpoint of others expects. */
function loopbackSender() {
  const ranges = new BlockList()
  for (const range of loopback) addRange(ranges, range, 'WEBHOOK_PRIVATE_ADDRESSES')
  const sender = new WebhookSender(ranges)
  /** Results are returned in the order of the requests, so that they are recorded in the same order each time. */
  let last: Promise<unknown> = Promise.resolve()
  return {
    async send(...request: Parameters<WebhookSender['send']>) {
      const { hostname } = new URL(request[0].url)
      const isLocal = /^(?:127\.[\d.]+|\[::1\]|(?:.+\.)?localhost)$/.test(hostname)
      const sending = isLocal ? sender.send(...request) : Promise.resolve(notLocal)
      const result = last.then(() => sending)
      last = result.catch(() => {})
      return result
    },
    close: () => sender.close(),
  }
}

const notLocal = { status: null, body: null, error: 'The simulator sends webhooks to loopback addresses only.' }
