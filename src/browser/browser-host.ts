/** One browser for all runs of a worker: started when the first needs it, again when it died, ended when none does. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { BrowserProcess, type StartedBrowser, StartFailed } from './browser-process.ts'
import { BrowserMissing, type FoundBrowser, findBrowser } from './find-browser.ts'

export { BrowserMissing }

/** What an executor connects to. The address is a secret: whoever knows it may use the browser. */
export interface BrowserEndpoint {
  protocol: 'playwright' | 'cdp'
  url: string
}

export interface BrowserOptions {
  path: string | undefined
  cdpUrl: string | undefined
  /** How long the browser runs on with no user, in milliseconds; a minute unless given. */
  idleMilliseconds?: number
}

/** The browser that runs, for people. */
export interface RunningBrowser extends Omit<FoundBrowser, 'environment'> {
  sandboxed: boolean
  pid: number
}

interface Running {
  process: BrowserProcess
  started: StartedBrowser
  found: FoundBrowser
  startedAt: number
}

/** A browser that lived for less is waited for before the next is started, the longer the more of them there were. */
const longLivedMilliseconds = 30_000
const waitMillisecondsMax = 30_000

export class BrowserHost {
  readonly #options: BrowserOptions
  readonly #log: Logger
  readonly #closing = new AbortController()
  #users = 0
  #running: Promise<Running> | undefined
  #current: Running | undefined
  #idle: NodeJS.Timeout | undefined
  /** Browsers in a row that did not start or soon died. */
  #failures = 0
  #mayBeSandboxed = process.getuid?.() !== 0

  constructor(options: BrowserOptions, log: Logger) {
    this.#options = options
    this.#log = log
  }

  /**
   * Starts the browser where it does not run; counts a user until `release`.
   *
   * @throws {BrowserMissing} or another Error when it does not start; there is no user to release then.
   */
  async take(): Promise<BrowserEndpoint> {
    const { cdpUrl } = this.#options
    if (cdpUrl) return { protocol: 'cdp', url: cdpUrl }
    this.#users += 1
    clearTimeout(this.#idle)
    try {
      return { protocol: 'playwright', url: (await this.#alive()).started.url }
    } catch (error) {
      this.release()
      throw error
    }
  }

  release(): void {
    if (this.#options.cdpUrl) return
    this.#users -= 1
    if (this.#users > 0 || this.#closing.signal.aborted) return
    const end = () =>
      void this.#end().catch((error: unknown) => this.#log.warn({ err: error }, 'the browser did not end'))
    this.#idle = setTimeout(end, this.#options.idleMilliseconds ?? 60_000).unref()
  }

  /** The browser that runs now; undefined while none does, and for one elsewhere. */
  describe(): RunningBrowser | undefined {
    if (!this.#current) return undefined
    const { found, started } = this.#current
    const { from, executable, version } = found
    return { from, executable, version, sandboxed: started.sandboxed, pid: started.pid }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('The worker is stopping.'))
    clearTimeout(this.#idle)
    await this.#end()
  }

  async #end(): Promise<void> {
    const running = await this.#running?.catch(() => undefined)
    this.#running = undefined
    this.#current = undefined
    await running?.process.end()
  }

  /** A browser that has just answered. */
  async #alive(): Promise<Running> {
    for (;;) {
      this.#closing.signal.throwIfAborted()
      const before = this.#running
      if (!before) {
        this.#running = this.#start()
        return this.#running
      }
      const running = await before
      if (await running.process.check()) return running
      if (this.#running === before) this.#running = undefined
    }
  }

  async #start(): Promise<Running> {
    try {
      const found = await findBrowser(this.#options.path)
      await this.#wait()
      const running = await this.#launch(found)
      this.#current = running
      void running.process.ended.then(() => this.#ended(running))
      this.#log.info({ ...this.describe(), url: undefined }, 'browser started')
      return running
    } catch (error) {
      this.#running = undefined
      if (error instanceof StartFailed) this.#failures += 1
      throw error
    }
  }

  async #launch(found: FoundBrowser): Promise<Running> {
    const startedAt = performance.now()
    const process = new BrowserProcess()
    try {
      const started = await process.start(found, this.#mayBeSandboxed)
      if (!this.#mayBeSandboxed) this.#log.debug('the browser runs without its sandbox')
      return { process, started, found, startedAt }
    } catch (error) {
      if (!this.#mayBeSandboxed || !(error instanceof StartFailed) || !error.ofSandbox) throw error
      this.#mayBeSandboxed = false
      this.#log.warn({ err: error }, 'the browser cannot have its sandbox here; it runs without')
      return this.#launch(found)
    }
  }

  #ended(running: Running): void {
    if (this.#current !== running) return
    this.#current = undefined
    this.#running = undefined
    const livedLong = performance.now() - running.startedAt > longLivedMilliseconds
    this.#failures = livedLong ? 0 : this.#failures + 1
    this.#log.error('the browser ended; the next run that needs one starts it again')
  }

  /** The first start after a failure is made at once. */
  async #wait(): Promise<void> {
    if (this.#failures < 2) return
    const milliseconds = Math.min(waitMillisecondsMax, 250 * 2 ** (this.#failures - 1))
    await delay(milliseconds, undefined, { signal: this.#closing.signal })
  }
}
