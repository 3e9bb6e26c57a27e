/** The worker's side of one host process and the browser in it. */
import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../../config/config.ts'
import type { Mark } from '../../domain/workflows/process-reaper.ts'
import { createTemporaryDirectory } from '../../storage/temporary-directory.ts'
import type { FromHost, ToHost } from './host-messages.ts'

/** Twice Playwright's own limit for starting a browser. */
const startMillisecondsMax = 60_000
/** A browser that takes longer to reply is killed. */
const checkMillisecondsMax = 10_000
const endMillisecondsMax = 5000

export type Start = Exclude<ToHost, { type: 'check' }>
export type Started = Extract<FromHost, { type: 'started' }>

/** A browser that did not start. */
export class StartError extends Error {
  /** Whether it may start without its sandbox. */
  readonly isSandboxError: boolean

  constructor(message: string, isSandboxError = false) {
    super(message)
    this.isSandboxError = isSandboxError
  }
}

export class BrowserProcess {
  /** Resolves when the process has ended and its files are removed, as far as possible. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #checks = new Map<number, () => void>()
  #lastCheckId = 0

  /**
   * @param mark ends what is left of the host process and the browser.
   * @param onUncaught called with the name of an error that the host process survived.
   */
  constructor(mark: Mark, onUncaught: (name: string) => void) {
    const directory = createTemporaryDirectory('browser', mark.reaperId)
    this.#child = fork(
      fileURLToPath(new URL(`./host-process${extname(import.meta.url)}`, import.meta.url)),
      [directory.path],
      {
        // The browser creates its profile and other files there.
        env: { ...environmentWithoutSecrets(process.env), ...mark.environment, TMPDIR: directory.path },
        execArgv: ['--max-semi-space-size=1'],
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      },
    )
    const ended = new Promise<void>((resolve) => {
      this.#child.once('exit', resolve)
      this.#child.once('error', resolve)
    })
    void ended.then(() => mark.kill())
    // Files that cannot be removed must not end the worker.
    this.ended = ended.then(() => directory.remove()).catch(() => {})
    this.#child.on('message', (message: FromHost) => {
      if (message.type === 'checked') this.#checks.get(message.id)?.()
      if (message.type === 'uncaught') onUncaught(message.name)
    })
  }

  /** @throws {StartError} */
  async start(start: Start, stop: AbortSignal): Promise<Started> {
    this.#send(start)
    const message = await Promise.race([this.#startReply(stop), this.ended])
    if (message?.type === 'started') return message
    await this.#kill()
    stop.throwIfAborted()
    const { message: reason, isSandboxError } =
      message?.type === 'failed' ? message : { message: 'its process ended or did not reply', isSandboxError: false }
    if (start.type === 'launch') throw new StartError(`The browser did not start: ${reason}`, isSandboxError)
    throw new StartError(`No browser replies at BROWSER_CDP_URL (${reason}): start it, or set another address.`)
  }

  /** Returns undefined when the reply does not come in time. */
  async #startReply(stop: AbortSignal): Promise<FromHost | undefined> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(startMillisecondsMax)])
    try {
      for await (const [message] of on(this.#child, 'message', { signal })) {
        if (message.type !== 'uncaught') return message
      }
    } catch {
      // Stopped, or timed out.
    }
    return undefined
  }

  /** Returns whether the browser replies; kills it otherwise. */
  async check(): Promise<boolean> {
    this.#lastCheckId += 1
    const id = this.#lastCheckId
    let timer: NodeJS.Timeout | undefined
    const reply = new Promise<boolean>((resolve) => {
      this.#checks.set(id, () => resolve(true))
      timer = setTimeout(() => resolve(false), checkMillisecondsMax)
    })
    this.#send({ type: 'check', id })
    const replied = await Promise.race([reply, this.ended.then(() => false)])
    clearTimeout(timer)
    this.#checks.delete(id)
    if (!replied) await this.#kill()
    return replied
  }

  /** Ends the browser without asking it to close: there is nothing in it to save. */
  async end(): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), endMillisecondsMax)
    if (this.#child.connected) this.#child.disconnect()
    await this.ended
    clearTimeout(timer)
  }

  async #kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  #send(message: ToHost): void {
    // Errors are ignored: the exit event reports a dead process.
    if (this.#child.connected) this.#child.send(message, () => {})
  }
}
