/** The one browser of a worker: started when a run first needs it, restarted after a crash, ended when idle. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { environmentWithoutSecrets } from '../../config/config.ts'
import { ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { directoryPrefixes, rootOf } from '../../storage/temporary-directory.ts'
import { BrowserProcess, type Start, StartError, type Started } from './browser-process.ts'
import { BrowserMissing, type FoundBrowser, findBrowser } from './find-browser.ts'

export { BrowserMissing }

/** The address that executors connect to. It is a secret, which gives full control of the browser. */
export interface BrowserEndpoint {
  url: string
}

export interface BrowserOptions {
  /** BROWSER_PATH: the executable; found automatically if unset. */
  path: string | undefined
  /** BROWSER_CDP_URL: the address of a remote browser. */
  cdpUrl: string | undefined
  /** Time without users before the browser is ended; a minute by default. */
  idleMilliseconds?: number
}

/** The running browser, for logs and `doctor`. */
interface RunningBrowser {
  from: FoundBrowser['from'] | 'BROWSER_CDP_URL'
  /** Undefined for a remote browser, as is `sandboxed`. */
  executable: string | undefined
  version: string
  sandboxed: boolean | undefined
}

interface Running extends RunningBrowser {
  process: BrowserProcess
  url: string
  startedAt: number
}

/** A browser that ends sooner counts as a failed start; each further start then waits twice as long. */
const stableMilliseconds = 30_000
const backoffMillisecondsMax = 30_000

export class BrowserHost {
  readonly #options: BrowserOptions
  readonly #log: Logger
  readonly #closing = new AbortController()
  /** After the worker's death, the host process ends the browser and removes its files, which takes up to 2 s. */
  readonly #reaper = new ProcessReaper({
    graceSeconds: 5,
    filesPrefix: (id) => join(rootOf('browser'), directoryPrefixes.browser + id),
  })
  #users = 0
  #starting: Promise<Running> | undefined
  #running: Running | undefined
  #idleTimer: NodeJS.Timeout | undefined
  /** Consecutive failures to start or to stay up. */
  #failures = 0
  /** Chromium's sandbox does not work as root. */
  #sandbox = process.getuid?.() !== 0
  #warnedOfSandbox = false

  constructor(options: BrowserOptions, log: Logger) {
    this.#options = options
    this.#log = log
  }

  /**
   * Starts the browser if it is not running, and counts a user until `release`.
   *
   * @throws {BrowserMissing} or another Error when it does not start; there is nothing to release then.
   */
  async acquire(): Promise<BrowserEndpoint> {
    this.#users += 1
    clearTimeout(this.#idleTimer)
    try {
      return { url: (await this.#responsive()).url }
    } catch (error) {
      this.release()
      throw error
    }
  }

  release(): void {
    this.#users -= 1
    if (this.#users > 0 || this.#closing.signal.aborted) return
    this.#idleTimer = setTimeout(() => void this.#end(), this.#options.idleMilliseconds ?? 60_000).unref()
  }

  /** Returns undefined while no browser runs. */
  describe(): RunningBrowser | undefined {
    if (!this.#running) return undefined
    const { from, executable, version, sandboxed } = this.#running
    return { from, executable, version, sandboxed }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('The worker is stopping and starts no browser.'))
    clearTimeout(this.#idleTimer)
    await this.#starting?.catch(() => {})
    await this.#end()
    this.#reaper.close()
  }

  async #end(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.process.end()
  }

  /** The running browser once it has replied to a check, or a new one. */
  async #responsive(): Promise<Running> {
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
    const { path, cdpUrl } = this.#options
    const found = cdpUrl ? undefined : await findBrowser(path, environmentWithoutSecrets(process.env))
    // The first retry does not wait.
    if (this.#failures >= 2) await this.#backOff(Math.min(backoffMillisecondsMax, 100 * 2 ** this.#failures))
    try {
      const running = found ? await this.#launch(found) : await this.#connect(cdpUrl ?? '')
      this.#running = running
      void running.process.ended.then(() => this.#onEnded(running))
      this.#log.info(this.describe(), 'browser started')
      return running
    } catch (error) {
      this.#failures += 1
      throw error
    }
  }

  async #backOff(milliseconds: number): Promise<void> {
    this.#log.warn({ milliseconds }, 'browser fails repeatedly; waiting before the next start')
    const { signal } = this.#closing
    await delay(milliseconds, undefined, { signal }).catch(() => signal.throwIfAborted())
  }

  async #launch(found: FoundBrowser): Promise<Running> {
    const { from, executable, environment, version } = found
    const sandbox = this.#sandbox
    try {
      const started = await this.#startProcess({ type: 'launch', executable, environment, sandbox })
      if (!sandbox) this.#warnOfSandbox({}, 'browser runs without its sandbox, which does not work as root')
      return { ...started, from, executable, version, sandboxed: sandbox }
    } catch (error) {
      if (!sandbox || !(error instanceof StartError) || !error.isSandboxError) throw error
      this.#sandbox = false
      this.#warnOfSandbox({ err: error }, 'this system does not allow the browser its sandbox; running without it')
      return this.#launch(found)
    }
  }

  /** Once, and not at every start of the browser. */
  #warnOfSandbox(details: object, message: string): void {
    if (!this.#warnedOfSandbox) this.#log.warn(details, message)
    this.#warnedOfSandbox = true
  }

  async #connect(cdpUrl: string): Promise<Running> {
    const started = await this.#startProcess({ type: 'connect', cdpUrl })
    return { ...started, from: 'BROWSER_CDP_URL', executable: undefined, sandboxed: undefined }
  }

  async #startProcess(start: Start): Promise<Started & Pick<Running, 'process' | 'startedAt'>> {
    const startedAt = performance.now()
    const onUncaught = (error: string) => this.#log.warn({ error }, 'uncaught error in the browser host')
    const process = new BrowserProcess(this.#reaper.mark(), onUncaught)
    return { ...(await process.start(start, this.#closing.signal)), process, startedAt }
  }

  #onEnded(running: Running): void {
    if (this.#running !== running) return
    this.#running = undefined
    const wasStable = performance.now() - running.startedAt > stableMilliseconds
    this.#failures = wasStable ? 0 : this.#failures + 1
    this.#log.error('browser ended; restarting when a run needs it')
  }
}
