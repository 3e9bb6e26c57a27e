/** One browser for all runs of a worker: started when the first needs it, again when it died, ended when none does. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { BrowserProcess, type Start, type Started, StartFailed } from './browser-process.ts'
import { BrowserMissing, type FoundBrowser, findBrowser } from './find-browser.ts'

export { BrowserMissing }

/** What an executor connects to. The address is a secret: whoever knows it may use the browser. */
export interface BrowserEndpoint {
  url: string
}

export interface BrowserOptions {
  /** BROWSER_PATH: the executable; one is looked for without. */
  path: string | undefined
  /** BROWSER_CDP_URL: a browser that runs elsewhere. */
  cdpUrl: string | undefined
  /** How long the browser runs on with no user; a minute unless given. */
  idleMilliseconds?: number
}

/** The browser that runs, for people. */
export interface RunningBrowser {
  from: FoundBrowser['from'] | 'BROWSER_CDP_URL'
  /** Undefined for one elsewhere, and so is `sandboxed`. */
  executable: string | undefined
  version: string
  sandboxed: boolean | undefined
}

interface Running extends RunningBrowser {
  process: BrowserProcess
  url: string
  startedAt: number
}

/** A browser that ended sooner is none to start again at any rate: each further start waits twice as long. */
const longLivedMilliseconds = 30_000
const waitMillisecondsMax = 30_000

export class BrowserHost {
  readonly #options: BrowserOptions
  readonly #log: Logger
  readonly #closing = new AbortController()
  #users = 0
  #starting: Promise<Running> | undefined
  #running: Running | undefined
  #idle: NodeJS.Timeout | undefined
  /** Browsers in a row that did not start or soon ended. */
  #failures = 0
  // Root's browser cannot have one.
  #sandbox = process.getuid?.() !== 0

  constructor(options: BrowserOptions, log: Logger) {
    this.#options = options
    this.#log = log
  }

  /**
   * Starts the browser where it does not run; counts a user until `release`.
   *
   * @throws {BrowserMissing} or another Error when it does not start; there is no user to release then.
   */
  async acquire(): Promise<BrowserEndpoint> {
    this.#users += 1
    clearTimeout(this.#idle)
    try {
      return { url: (await this.#answering()).url }
    } catch (error) {
      this.release()
      throw error
    }
  }

  release(): void {
    this.#users -= 1
    if (this.#users > 0 || this.#closing.signal.aborted) return
    this.#idle = setTimeout(() => void this.#end(), this.#options.idleMilliseconds ?? 60_000).unref()
  }

  /** The browser that runs now; undefined while none does. */
  describe(): RunningBrowser | undefined {
    if (!this.#running) return undefined
    const { from, executable, version, sandboxed } = this.#running
    return { from, executable, version, sandboxed }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('The worker is stopping: it starts no browser any more.'))
    clearTimeout(this.#idle)
    await this.#starting?.catch(() => {})
    await this.#end()
  }

  async #end(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.process.end()
  }

  async #answering(): Promise<Running> {
    for (;;) {
      this.#closing.signal.throwIfAborted()
      const running = this.#running
      if (!running) {
        this.#starting ??= this.#start().finally(() => {
          this.#starting = undefined
        })
        return this.#starting
      }
      if (await running.process.check()) return running
    }
  }

  async #start(): Promise<Running> {
    const running = await this.#startAnew()
    this.#running = running
    void running.process.ended.then(() => this.#ended(running))
    this.#log.info(this.describe(), 'browser started')
    return running
  }

  async #startAnew(): Promise<Running> {
    const { path, cdpUrl } = this.#options
    const found = cdpUrl ? undefined : await findBrowser(path)
    // The first start after a failure is made at once.
    if (this.#failures >= 2) await this.#wait(Math.min(waitMillisecondsMax, 100 * 2 ** this.#failures))
    try {
      return found ? await this.#launch(found) : await this.#reach(cdpUrl ?? '')
    } catch (error) {
      this.#failures += 1
      throw error
    }
  }

  async #wait(milliseconds: number): Promise<void> {
    this.#log.warn({ milliseconds }, 'browsers do not start or soon end; the next one is waited for')
    const { signal } = this.#closing
    await delay(milliseconds, undefined, { signal }).catch(() => signal.throwIfAborted())
  }

  async #launch(found: FoundBrowser): Promise<Running> {
    const { from, executable, environment, version } = found
    const sandbox = this.#sandbox
    try {
      const started = await this.#startProcess({ type: 'launch', executable, environment, sandbox })
      if (!sandbox) this.#log.debug('the browser runs without its sandbox')
      return { ...started, from, executable, version, sandboxed: sandbox }
    } catch (error) {
      if (!sandbox || !(error instanceof StartFailed) || !error.ofSandbox) throw error
      this.#sandbox = false
      const running = await this.#launch(found)
      this.#log.warn({ err: error }, 'the browser starts only without its sandbox, which this system does not allow')
      return running
    }
  }

  async #reach(cdpUrl: string): Promise<Running> {
    const started = await this.#startProcess({ type: 'reach', cdpUrl })
    return { ...started, from: 'BROWSER_CDP_URL', executable: undefined, sandboxed: undefined }
  }

  async #startProcess(start: Start): Promise<Started & Pick<Running, 'process' | 'startedAt'>> {
    const startedAt = performance.now()
    const process = new BrowserProcess((name) => {
      this.#log.warn({ error: name }, 'an error in the process of the browser was not caught; it goes on')
    })
    return { ...(await process.start(start, this.#closing.signal)), process, startedAt }
  }

  #ended(running: Running): void {
    if (this.#running !== running) return
    this.#running = undefined
    const livedLong = performance.now() - running.startedAt > longLivedMilliseconds
    this.#failures = livedLong ? 0 : this.#failures + 1
    this.#log.error('the browser ended; it is started again when a run needs it')
  }
}
