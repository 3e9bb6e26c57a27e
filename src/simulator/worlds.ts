/** The worlds of a simulator: one that is always there, and those that callers make, each reached by its API key. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '../contract/problem.ts'
import { Front, type Route, readCredential, type WorldAddresses } from './front.ts'
import { HostedWorld, WorldThreads } from './hosted-world.ts'
import type { Scenario } from './scenarios-schema.ts'
import type { WorldContent, WorldOptions } from './world.ts'

/** Each is a thread with a copy of the service, of some 100 MB. */
export const worldsMax = 20

/** Of tokens that worlds have made. */
const knownMax = 10_000

/** How long requests wait for workflows that are built. */
const builtMilliseconds = 30_000

const starting = new Problem(
  { kind: 'unavailable', detail: 'The simulator builds the workflows: try again.' },
  { 'Retry-After': '1' },
)

export interface NewWorld {
  apiKey: string
  now: number
  seed: string
  speed: number
  scenarios: readonly Scenario[]
}

export class Worlds {
  readonly #front: Front
  readonly #threads = new WorldThreads()
  readonly #worlds = new Map<string, HostedWorld>()
  /** The worlds of other credentials than their first API key. */
  readonly #known = new Map<string, HostedWorld>()
  readonly #options: Omit<WorldOptions, 'addresses'>
  readonly #apiKey: string
  #addresses: WorldAddresses | undefined
  #content: WorldContent | undefined
  readonly #isBuilt = Promise.withResolvers<void>()

  /** @param options of the first world. */
  constructor(options: Omit<WorldOptions, 'addresses'>) {
    this.#options = options
    this.#apiKey = options.apiKeys[0]?.value ?? ''
    this.#front = new Front(options.settings)
    this.#isBuilt.promise.catch(() => {})
    // Imports the service while the workflows are built.
    this.#threads.prepare()
  }

  /** @param building workflows and scenarios. */
  async open(building: Promise<WorldContent>, control: Control): Promise<void> {
    let starting: Promise<void> | undefined
    try {
      const byKey: Route = async (request) => {
        await this.built()
        return this.#worldOf(readCredential(request))
      }
      this.#addresses = await this.#front.open({
        executionUrl: byKey,
        browserContextUrl: byKey,
        dashboardUrl: async () => {
          await this.built()
          return this.first
        },
        managementUrl: (request, response) => control(this, request, response),
      })
      const first = new HostedWorld(this.#threads, { ...this.#options, addresses: this.#addresses })
      starting = first.start(building)
      starting.catch(() => {})
      this.#content = await building
      this.#worlds.set(this.#apiKey, first)
      this.#isBuilt.resolve()
      await starting
    } catch (error) {
      this.#isBuilt.reject(error)
      await starting?.catch(() => {})
      await this.stop()
      throw error
    }
  }

  /**
   * Waits until the first world exists: ports are open while workflows are built.
   *
   * @throws {Problem} if that takes long.
   */
  async built(): Promise<void> {
    if (this.#worlds.size > 0) return
    const { promise, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(reject, builtMilliseconds, starting)
    await Promise.race([this.#isBuilt.promise, promise]).finally(() => clearTimeout(timer))
  }

  /** Call it when `built` has resolved. */
  get first(): HostedWorld {
    return this.#worlds.get(this.#apiKey) as HostedWorld
  }

  /** The world of an API key that it was made with. */
  find(apiKey: string): HostedWorld | undefined {
    return this.#worlds.get(apiKey.toLowerCase())
  }

  list(): ReadonlyMap<string, HostedWorld> {
    return this.#worlds
  }

  /** Of the first world. Call it when `built` has resolved. */
  get content(): WorldContent {
    return this.#content as WorldContent
  }

  /** Returns `undefined` if there are too many. */
  async create({ apiKey, scenarios, ...given }: NewWorld): Promise<HostedWorld | undefined> {
    if (this.#worlds.size >= worldsMax) return undefined
    const addresses = { ...(this.#addresses as WorldAddresses) }
    const world = new HostedWorld(this.#threads, {
      ...{ ...this.#options, ...given, addresses },
      apiKeys: [{ name: 'simulator', value: apiKey, scopes: null }],
    })
    this.#worlds.set(apiKey, world)
    try {
      addresses.dashboardUrl = await this.#front.openDashboard(world)
      await world.start(Promise.resolve({ ...this.content, scenarios }))
      return world
    } catch (error) {
      await this.end(apiKey)
      throw error
    }
  }

  async end(apiKey: string): Promise<void> {
    const world = this.find(apiKey)
    if (!world) return
    this.#worlds.delete(apiKey.toLowerCase())
    for (const [credential, each] of this.#known) if (each === world) this.#known.delete(credential)
    await this.#front.closeDashboard(world)
    await world.stop()
  }

  async stop(): Promise<void> {
    await this.#front.close()
    await Promise.all([...this.#worlds.values()].map((world) => world.stop()))
    // A world that was being reset has prepared a thread.
    await this.#threads.stop()
  }

  /** A key or a token that a world has made is found by asking the worlds; what none knows is for the first one to refuse. */
  async #worldOf(credential: string | undefined): Promise<HostedWorld> {
    if (credential === undefined || this.#worlds.size <= 1) return this.first
    const found = this.find(credential) ?? this.#known.get(credential)
    if (found) return found
    for (const world of this.#worlds.values()) {
      await world.listening()
      if (!(await world.call<boolean>('knows', credential))) continue
      if (this.#known.size >= knownMax) this.#known.clear()
      this.#known.set(credential, world)
      return world
    }
    return this.first
  }
}

/** Handles a request of the management address, or returns the world that it is for. */
export type Control = (
  worlds: Worlds,
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<HostedWorld | undefined>
