/** A world of a simulator from outside: its thread, which another one replaces at a reset, and its snapshots. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { AddressName, PassedTo, WorldAddresses } from './front.ts'
import { answerCalls, type Caller, createCaller } from './thread-calls.ts'
import type { OpenedWorld, SavedWorld, WorldContent, WorldOptions } from './world.ts'

/** How long the thread of a world that was replaced may take to send its last response. */
const lastResponseMilliseconds = 1000

/** Each is a copy of the store in memory. */
export const snapshotsMax = 100

/** Node's default, 48 MB, takes 50 MB more for each world, and an advance as long. */
const resourceLimits = { maxYoungGenerationSizeMb: 8 }

/** No name that a caller can give. */
const initial = ' initial'

interface WorldThread {
  thread: Worker
  call: Caller
  /** The world that it serves. */
  world: HostedWorld | undefined
}

/** Starts threads, and keeps one that has imported the service already. */
export class WorldThreads {
  #spare: WorldThread | undefined

  take(): WorldThread {
    const taken = this.#spare ?? this.#start()
    this.#spare = undefined
    return taken
  }

  prepare(): void {
    this.#spare ??= this.#start()
  }

  async stop(): Promise<void> {
    const spare = this.#spare
    this.#spare = undefined
    await spare?.thread.terminate()
  }

  #start(): WorldThread {
    const thread = new Worker(new URL(`./world-thread${extname(import.meta.url)}`, import.meta.url), { resourceLimits })
    const started: WorldThread = { thread, call: createCaller(thread), world: undefined }
    const world = () => started.world as HostedWorld
    answerCalls(thread, {
      reset: () => world().reset(),
      snapshot: (name: string) => world().snapshot(name),
      restore: (name: string) => world().restore(name),
      listSnapshots: async () => world().listSnapshots(),
    })
    return started
  }
}

export class HostedWorld implements PassedTo {
  readonly options: WorldOptions
  readonly #threads: WorldThreads
  readonly #snapshots = new Map<string, SavedWorld>()
  readonly #old = new Set<Worker>()
  #current: WorldThread | undefined
  #opened = Promise.withResolvers<OpenedWorld>()
  #latest: OpenedWorld | undefined
  #replacing: Promise<unknown> = Promise.resolve()

  /** @param options `addresses` are those at which callers reach the world. */
  constructor(threads: WorldThreads, options: WorldOptions) {
    this.#threads = threads
    this.options = options
    this.#opened.promise.catch(() => {})
  }

  /** @param content the world opens while it is built. */
  async start(content: Promise<WorldContent>): Promise<void> {
    const world = this.#threads.take()
    try {
      await Promise.all([this.#open(world, this.options), content.then((given) => world.call('begin', given))])
      this.#snapshots.set(initial, await world.call('save', undefined))
    } catch (error) {
      this.#opened.reject(error)
      await world.thread.terminate()
      throw error
    }
  }

  get addresses(): WorldAddresses {
    return this.options.addresses
  }

  /** Signs up the admin of the account; works once. */
  get welcomeUrl(): string | undefined {
    const token = this.#latest?.welcomeToken
    return token && `${this.addresses.dashboardUrl}/links/${token}`
  }

  async listening(): Promise<WorldAddresses> {
    return (await this.#opened.promise).listening
  }

  documentHash(name: AddressName): string | undefined {
    return this.#latest?.documentHashes[name]
  }

  call<Result>(name: string, argument?: unknown): Promise<Result> {
    return this.#requireCurrent().call<Result>(name, argument)
  }

  async reset(): Promise<void> {
    await this.#replace(initial)
  }

  /** Returns whether there is a snapshot of this name. */
  restore(name: string): Promise<boolean> {
    return this.#replace(name)
  }

  /** Returns whether there is room for it. */
  async snapshot(name: string): Promise<boolean> {
    if (this.#snapshots.size > snapshotsMax && !this.#snapshots.has(name)) return false
    this.#snapshots.set(name, await this.call<SavedWorld>('save'))
    return true
  }

  listSnapshots(): { name: string; now: number }[] {
    return [...this.#snapshots].filter(([name]) => name !== initial).map(([name, { now }]) => ({ name, now }))
  }

  async stop(): Promise<void> {
    await this.#replacing
    const world = this.#current
    this.#current = undefined
    this.#opened = Promise.withResolvers()
    this.#opened.promise.catch(() => {})
    this.#opened.reject(new Error('The world has ended.'))
    await Promise.all([...this.#old].map((thread) => this.#end(thread)))
    try {
      await world?.call('close', undefined)
    } finally {
      await world?.thread.terminate()
    }
  }

  /** Starts another thread from a snapshot. */
  #replace(name: string): Promise<boolean> {
    const replaced = this.#replacing.then(async () => {
      const saved = this.#snapshots.get(name)
      const old = this.#current
      if (!saved || !old) return false
      const next = this.#threads.take()
      await next.call('ready', undefined)
      // Requests wait for the next world.
      this.#opened = Promise.withResolvers()
      this.#opened.promise.catch(() => {})
      await old.call('retire', undefined)
      this.#old.add(old.thread)
      try {
        await this.#open(next, { ...this.options, saved })
      } catch (error) {
        this.#current = undefined
        this.#opened.reject(error)
        await next.thread.terminate()
        throw error
      }
      setTimeout(() => this.#end(old.thread), lastResponseMilliseconds).unref()
      // Tests that reset the world once do so again.
      this.#threads.prepare()
      return true
    })
    this.#replacing = replaced.catch(() => {})
    return replaced
  }

  async #open(world: WorldThread, options: WorldOptions): Promise<void> {
    world.world = this
    const opened = await world.call<OpenedWorld>('open', options)
    this.#latest = { ...opened, welcomeToken: opened.welcomeToken ?? this.#latest?.welcomeToken }
    this.#current = world
    this.#opened.resolve(this.#latest)
  }

  #requireCurrent(): WorldThread {
    if (!this.#current) throw new Error('The simulator has stopped.')
    return this.#current
  }

  async #end(thread: Worker): Promise<void> {
    this.#old.delete(thread)
    await thread.terminate()
  }
}
