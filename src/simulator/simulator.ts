/** Starts simulators, and replaces their worlds. Imported as `execution-service/simulator`. */
import { readFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { buildSnapshot } from '../domain/deployments/build-snapshot.ts'
import type { Snapshot } from '../domain/deployments/snapshot.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import { speedMax } from './driver.ts'
import { ScenariosInvalid } from './scenario-errors.ts'
import { Scenarios } from './scenarios.ts'
import type { Scenario } from './scenarios-schema.ts'
import type { startSimulator as declared, Simulator, SimulatorOptions } from './simulator-api.ts'
import { answerCalls, type Caller, createCaller } from './thread-calls.ts'
import type { OpenedWorld, SavedWorld, WorldOptions } from './world.ts'

export type { RunOutcome, Simulator, SimulatorOptions } from './simulator-api.ts'

/** The valid key of the mock. */
export const defaultApiKey = '00000000-0000-4000-8000-000000000200'

/** The key without scopes of the mock. */
const powerlessApiKey = '00000000-0000-4000-8000-000000000403'

const defaultSlots = 1000

/** How long the thread of a world that was replaced may take to send its last response. */
const lastResponseMilliseconds = 1000

/** Each is a copy of the store in memory. */
export const snapshotsMax = 100

/** No name that a caller can give. */
const initial = ' initial'

export const startSimulator: typeof declared = (options) => simulate(buildSnapshot(resolve(options.workflows)), options)

/** @param building the workflows. */
export async function simulate(
  building: Promise<Snapshot>,
  options: Omit<SimulatorOptions, 'workflows'> = {},
): Promise<Simulator> {
  const {
    apiKey = defaultApiKey,
    now = new Date(),
    seed = 'seed',
    speed = 0,
    slots = defaultSlots,
    settings = {},
  } = options
  building.catch(() => {})
  checkSpeed(speed)
  if (Number.isNaN(now.getTime())) throw new Error('now is no valid time.')
  const front = new Front({
    ...{ seed, speed, slots, now: now.getTime(), scenarios: [] },
    settings: { ...freePorts, ...quiet, ...settings },
    apiKeys: [
      { name: 'simulator', value: apiKey, scopes: null },
      { name: 'without scopes', value: powerlessApiKey, scopes: [] },
    ].filter(({ value }, index) => index === 0 || value !== apiKey),
  })
  await front.start(building, options.scenarios)
  return front.api(apiKey)
}

function checkSpeed(speed: number): number {
  if (speed >= 0 && speed <= speedMax) return speed
  throw new Error(`The speed is ${speed}: use a number from 0 to ${speedMax}.`)
}

/** A clock that stands still would let no window of a rate limit end. */
const quiet = { LOG_LEVEL: 'error', RATE_LIMIT_PER_MINUTE: '1000000' }

const freePorts = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }

interface WorldThread {
  thread: Worker
  call: Caller
}

/** Starts the threads of worlds, one after the other on the same ports, and keeps their snapshots. */
class Front {
  readonly #options: WorldOptions
  readonly #snapshots = new Map<string, SavedWorld>()
  #current: WorldThread | undefined
  #spare: WorldThread | undefined
  readonly #old = new Set<Worker>()
  #addresses: OpenedWorld | undefined
  #replacing: Promise<unknown> = Promise.resolve()

  constructor(options: WorldOptions) {
    this.#options = options
  }

  async start(building: Promise<Snapshot>, scenarios: SimulatorOptions['scenarios']): Promise<void> {
    const world = this.#startThread()
    try {
      const workflows = await building
      const checked = await readScenarios(scenarios, workflows)
      await this.#open(world, { ...this.#options, workflows, scenarios: checked })
      this.#snapshots.set(initial, await world.call('save', undefined))
    } catch (error) {
      await world.thread.terminate()
      throw error
    }
  }

  api(apiKey: string): Simulator {
    const call = <Result>(name: string, argument?: unknown) => this.#requireCurrent().call<Result>(name, argument)
    const opened = () => this.#addresses as OpenedWorld
    const now = async () => new Date(await call<number>('now'))
    const advanceTo = async (to: Date) => {
      if (Number.isNaN(to.getTime())) throw new Error('The time is not valid.')
      const present = await now()
      if (to < present) {
        const message = `${to.toISOString()} is before the present of this world, ${present.toISOString()}: the clock cannot be set back.`
        throw new Error(message)
      }
      await call('advanceTo', to.getTime())
    }
    return {
      get executionUrl() {
        return opened().executionUrl
      },
      get browserContextUrl() {
        return opened().browserContextUrl
      },
      get dashboardUrl() {
        return opened().dashboardUrl
      },
      get managementUrl() {
        return opened().managementUrl
      },
      get welcomeUrl() {
        return opened().welcomeUrl
      },
      apiKey,
      now,
      advance: async ({ seconds }) => advanceTo(new Date((await now()).getTime() + Math.round(seconds * 1000))),
      advanceTo,
      setSpeed: async (speed) => call('setSpeed', checkSpeed(speed)),
      decide: (runId, outcome) =>
        send(opened().managementUrl, 'PUT', `runs/${encodeURIComponent(runId)}/outcome`, outcome),
      setScenarios: (scenarios) => send(opened().managementUrl, 'POST', 'scenarios', { scenarios }),
      setFaults: (operations) => send(opened().managementUrl, 'POST', 'faults', { operations }),
      reset: () => this.#replace(initial).then(() => {}),
      snapshot: async (name) => {
        if (!(await this.#snapshot(name))) throw new Error(`There are ${snapshotsMax} snapshots: use the name of one.`)
      },
      restore: async (name) => {
        if (!(await this.#replace(name))) throw new Error(`There is no snapshot "${name}".`)
      },
      stop: () => this.#stop(),
    }
  }

  /** Starts another world from a snapshot; returns whether there is one of this name. */
  #replace(name: string): Promise<boolean> {
    const replaced = this.#replacing.then(async () => {
      const saved = this.#snapshots.get(name)
      const old = this.#current
      if (!saved || !old) return false
      const next = this.#spare ?? this.#startThread()
      this.#spare = undefined
      await next.call('ready', undefined)
      await old.call('leavePorts', undefined)
      this.#old.add(old.thread)
      try {
        await this.#open(next, { ...this.#options, saved })
      } catch (error) {
        // The old world has left its ports.
        this.#current = undefined
        await next.thread.terminate()
        throw error
      }
      setTimeout(() => this.#end(old.thread), lastResponseMilliseconds).unref()
      // Tests that reset the world once do so again.
      this.#spare = this.#startThread()
      return true
    })
    this.#replacing = replaced.catch(() => {})
    return replaced
  }

  async #open(world: WorldThread, options: WorldOptions): Promise<void> {
    const opened = await world.call<OpenedWorld>('open', {
      ...options,
      settings: { ...options.settings, ...this.#ports() },
    })
    this.#addresses = { ...opened, welcomeUrl: opened.welcomeUrl ?? this.#addresses?.welcomeUrl }
    this.#current = world
  }

  /** The ports of the first world. */
  #ports(): Record<string, string> {
    if (!this.#addresses) return {}
    const { dashboardUrl, executionUrl, browserContextUrl, managementUrl } = this.#addresses
    return {
      DASHBOARD_PORT: new URL(dashboardUrl).port,
      EXECUTION_PORT: new URL(executionUrl).port,
      BROWSER_CONTEXT_PORT: new URL(browserContextUrl).port,
      MANAGEMENT_PORT: new URL(managementUrl).port,
    }
  }

  #startThread(): WorldThread {
    const thread = new Worker(new URL(`./world-thread${extname(import.meta.url)}`, import.meta.url))
    const call = createCaller(thread)
    answerCalls(thread, {
      reset: () => this.#replace(initial),
      snapshot: (name: string) => this.#snapshot(name),
      restore: (name: string) => this.#replace(name),
      listSnapshots: async () =>
        [...this.#snapshots].filter(([name]) => name !== initial).map(([name, { now }]) => ({ name, now })),
    })
    return { thread, call }
  }

  /** Returns whether there is room for it. */
  async #snapshot(name: string): Promise<boolean> {
    if (this.#snapshots.size > snapshotsMax && !this.#snapshots.has(name)) return false
    this.#snapshots.set(name, await this.#requireCurrent().call<SavedWorld>('save', undefined))
    return true
  }

  #requireCurrent(): WorldThread {
    if (!this.#current) throw new Error('The simulator has stopped.')
    return this.#current
  }

  async #stop(): Promise<void> {
    await this.#replacing
    const world = this.#current
    this.#current = undefined
    await this.#spare?.thread.terminate()
    await Promise.all([...this.#old].map((thread) => this.#end(thread)))
    try {
      await world?.call('close', undefined)
    } finally {
      await world?.thread.terminate()
    }
  }

  async #end(thread: Worker): Promise<void> {
    this.#old.delete(thread)
    await thread.terminate()
  }
}

async function send(managementUrl: string, method: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${managementUrl}/simulator/${path}`, { method, body: JSON.stringify(body) })
  if (response.ok) return
  const { detail, errors = [] } = (await response.json()) as { detail: string; errors?: Record<string, string>[] }
  throw new Error([detail, ...errors.map((each) => `${each.pointer} ${each.detail}.`)].join(' '))
}

/** @throws {ScenariosInvalid} */
async function readScenarios(given: SimulatorOptions['scenarios'], snapshot: Snapshot): Promise<readonly Scenario[]> {
  if (given === undefined) return []
  const workflows = new Workflows(snapshot.workflows)
  if (typeof given === 'string') {
    const text = await readFile(given, 'utf8').catch((error: Error) => {
      throw new ScenariosInvalid([{ pointer: '', detail: `cannot be read: ${error.message}` }], given)
    })
    return Scenarios.read(text, workflows, given).toJSON().scenarios
  }
  return Scenarios.from({ scenarios: given }, workflows).toJSON().scenarios
}
