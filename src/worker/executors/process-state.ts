/**
 * Whether a process is as it was before its attempts, so that it may execute another one. Nothing is restored: a module
 * that is loaded during an attempt may depend on what it has set. The process of an attempt that has changed something
 * ends. The guide of writing workflows lists what counts.
 *
 * A check takes 30 µs, since every run pays for it: half of that for the names of globals and for two files in `/proc`.
 */
import type { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { Server, Socket } from 'node:net'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { processUse } from './process-memory.ts'

/** A larger process is replaced instead of reused. */
const reusableBytesMax = 256 * 1024 * 1024

const timeExactMilliseconds = 100

/** The globals of the language. Node.js loads some of its own when they are read, which takes up to 70 ms. */
const languageGlobals =
  'AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError FinalizationRegistry Float32Array Float64Array Function Int16Array Int32Array Int8Array Intl JSON Map Math Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval isFinite isNaN parseFloat parseInt unescape'.split(
    ' ',
  )
const functionsOfNode =
  'clearImmediate clearInterval clearTimeout console fetch queueMicrotask setImmediate setInterval setTimeout structuredClone'.split(
    ' ',
  )
const prototypesOf = 'Array Date Error Function Map Number Object Promise RegExp Set String'.split(' ')

/** Where `fetch` has its default dispatcher, from its first call on. */
const dispatchers = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`))
const dispatcherClasses: unknown[] = ['Agent', 'Dispatcher1Wrapper']

export class ProcessState {
  readonly #directory: string
  readonly #environment = process.env
  readonly #variables = JSON.stringify(process.env)
  readonly #workingDirectory = process.cwd()
  readonly #umask = process.umask()
  #globals = globalKeys()
  #getters = globalGetters()
  readonly #dispatchers = new Map<symbol, unknown>(dispatchers.map((key) => [key, Reflect.get(globalThis, key)]))
  #listeners: unknown[]
  readonly #workers = new Set<Worker>()
  readonly #unreferenced = new Unreferenced()
  #members: Members
  /** Known changes of an attempt, which `allow` would hide. */
  #isChanged = false
  #hasAllowed = false
  #resources = 0
  #emptySince = 0

  /**
   * Call it when the modules are loaded: what they have set remains.
   *
   * @param directory the process's own for temporary files.
   * @param attempts has a value while code of an attempt runs.
   */
  constructor(directory: string, attempts: AsyncLocalStorage<unknown>) {
    this.#directory = directory
    this.#unreferenced.track(attempts)
    process.on('worker', (worker) => {
      this.#workers.add(worker)
      worker.once('exit', () => this.#workers.delete(worker))
    })
    this.#listeners = listenersOfProcess()
    this.#members = new Members()
  }

  /** Call it before an attempt. */
  begin(): void {
    this.#resources = process.getActiveResourcesInfo().length
    if (this.#hasAllowed) this.#removeOwnFiles()
  }

  /** Loads a library of the service during an attempt. What it sets remains. Only the first call has an effect. */
  allow(load: () => unknown): void {
    if (this.#hasAllowed) return
    this.#hasAllowed = true
    this.#isChanged = !this.#hasSameGlobals()
    load()
    this.#globals = globalKeys()
    this.#getters = globalGetters()
    this.#listeners = listenersOfProcess()
    this.#members = new Members()
  }

  /** Whether the attempt has left nothing in the process. */
  isUnchanged(): boolean {
    const isCounted = this.#unreferenced.countAgain()
    const { hasStarted, bytes } = processUse()
    return (
      isCounted &&
      !this.#isChanged &&
      process.getActiveResourcesInfo().length <= this.#resources &&
      this.#workers.size === 0 &&
      !hasStarted &&
      bytes < reusableBytesMax &&
      this.#hasSameSettings() &&
      this.#hasSameGlobals() &&
      this.#hasSameDispatcher() &&
      this.#hasNoFiles()
    )
  }

  #hasSameGlobals(): boolean {
    return (
      isSame(globalKeys(), this.#globals) &&
      isSame(globalGetters(), this.#getters) &&
      isSame(listenersOfProcess(), this.#listeners) &&
      this.#members.areSame()
    )
  }

  /** Lists the directory only if it may have changed since it was empty: a time of change is exact to some milliseconds. */
  #hasNoFiles(): boolean {
    const { mtimeMs } = statSync(this.#directory)
    if (mtimeMs === this.#emptySince) return true
    if (!readdirSync(this.#directory).every(isOfPlaywright)) return false
    if (Date.now() - mtimeMs > timeExactMilliseconds) this.#emptySince = mtimeMs
    return true
  }

  #hasSameSettings(): boolean {
    return (
      process.cwd() === this.#workingDirectory &&
      // Reading it without a value sets it to 0 for a moment, for all threads.
      process.umask(this.#umask) === this.#umask &&
      process.env === this.#environment &&
      JSON.stringify(process.env) === this.#variables &&
      process.exitCode === undefined &&
      !process.hasUncaughtExceptionCaptureCallback()
    )
  }

  /** What Playwright has left of traces, after the attempt has sent them. */
  #removeOwnFiles(): void {
    for (const name of readdirSync(this.#directory))
      if (isOfPlaywright(name)) rmSync(join(this.#directory, name), { recursive: true, force: true })
  }

  /** Node.js adds a dispatcher with the first call of `fetch`; any other is the attempt's. */
  #hasSameDispatcher(): boolean {
    return dispatchers.every((key) => {
      const value: unknown = Reflect.get(globalThis, key)
      const known = this.#dispatchers.get(key)
      if (value === known) return true
      this.#dispatchers.set(key, value)
      return known === undefined && dispatcherClasses.includes(value?.constructor.name)
    })
  }
}

const isOfPlaywright = (name: string) => name.startsWith('playwright-')

/** Faster than `Reflect.ownKeys`. */
function globalKeys(): PropertyKey[] {
  const keys: PropertyKey[] = Object.getOwnPropertyNames(globalThis)
  for (const symbol of Object.getOwnPropertySymbols(globalThis)) if (!dispatchers.includes(symbol)) keys.push(symbol)
  return keys
}

/** Getters of globals that Node.js loads when they are read, and `undefined` for others. */
function globalGetters(): unknown[] {
  const names = ['Buffer', 'crypto', 'navigator', 'performance', 'process']
  return names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name)?.get)
}

function listenersOfProcess(): unknown[] {
  return process.eventNames().flatMap((name) => [name, ...process.listeners(name as 'exit')])
}

function isSame(values: readonly unknown[], before: readonly unknown[]): boolean {
  return values.length === before.length && values.every((value, index) => value === before[index])
}

/** Replaced members of globals, and added ones that are enumerable. */
class Members {
  readonly #objects: readonly object[]
  readonly #names: readonly string[][]
  readonly #values: readonly unknown[][]
  readonly #keys: readonly number[]
  readonly #writes = [process.stdout, process.stderr].map(({ write }) => write)

  constructor() {
    const globals = languageGlobals.map((name): unknown => Reflect.get(globalThis, name))
    const prototypes = prototypesOf.map((name): object => Reflect.get(globalThis, name).prototype)
    const members = globals.filter((value): value is object => Object(value) === value)
    this.#objects = [globalThis, console, process, ...members, ...prototypes]
    this.#names = this.#objects.map(membersOf)
    this.#values = this.#objects.map((object, index) =>
      (this.#names[index] ?? []).map((name) => Reflect.get(object, name)),
    )
    this.#keys = this.#objects.map((object) => Object.keys(object).length)
  }

  areSame(): boolean {
    if (process.stdout.write !== this.#writes[0] || process.stderr.write !== this.#writes[1]) return false
    return this.#objects.every((object, index) => {
      if (Object.keys(object).length !== this.#keys[index]) return false
      const values = this.#values[index] as unknown[]
      const names = this.#names[index] as string[]
      // `every` would take twice as long.
      for (let member = 0; member < names.length; member += 1)
        if (object[names[member] as keyof object] !== values[member]) return false
      return true
    })
  }
}

/** Names of members that code can replace, and whose values can be read and compared. */
function membersOf(object: object): string[] {
  if (object === globalThis) return [...languageGlobals, ...functionsOfNode]
  return Object.getOwnPropertyNames(object).filter((name) => {
    const { value, writable } = Object.getOwnPropertyDescriptor(object, name) ?? {}
    return writable && value !== undefined && !Number.isNaN(value)
  })
}

/** Timers, sockets and servers that code of attempts has unreferenced, so that Node.js no longer counts them. */
class Unreferenced {
  readonly #all = new Set<{ ref(): unknown }>()

  track(attempts: AsyncLocalStorage<unknown>): void {
    const timer = setTimeout(() => {}, 0)
    clearTimeout(timer)
    const all = this.#all
    for (const prototype of [Object.getPrototypeOf(timer), Socket.prototype, Server.prototype]) {
      const { unref } = prototype
      prototype.unref = function (this: { ref(): unknown }) {
        // Node.js unreferences connections that it keeps for later requests.
        if (attempts.getStore() !== undefined && all.size < unreferencedMax && !isCalledByNode(prototype.unref))
          all.add(this)
        return unref.call(this)
      }
    }
  }

  /** References them again, which has no effect on those that have ended. Returns false if there were too many. */
  countAgain(): boolean {
    const { size } = this.#all
    for (const each of this.#all) each.ref()
    this.#all.clear()
    return size < unreferencedMax
  }
}

/** Bounds the memory for an attempt that unreferences a timer for each of many operations. */
const unreferencedMax = 10_000

function isCalledByNode(called: () => void): boolean {
  const { prepareStackTrace, stackTraceLimit } = Error
  Error.stackTraceLimit = 1
  Error.prepareStackTrace = (_, [frame]) => frame?.getFileName()
  const caller: { stack?: string } = {}
  Error.captureStackTrace(caller, called)
  const file = caller.stack
  Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  return file?.startsWith('node:') ?? false
}
