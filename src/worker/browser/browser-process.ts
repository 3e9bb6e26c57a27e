/** The worker's side of one host process, and of the browser in it. */
import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../../config.ts'
import type { FromHost, ToHost } from './messages.ts'
import { makeTemporaryDirectory } from './temporary-directory.ts'

/** Playwright itself gives a browser half of it to start. */
const startMillisecondsMax = 60_000

/** A browser that says nothing for longer is of no use to anyone. */
const checkMillisecondsMax = 10_000

const endMillisecondsMax = 5000

export type Start = Exclude<ToHost, { type: 'check' }>
export type Started = Extract<FromHost, { type: 'started' }>

/** A browser that did not start. */
export class StartFailed extends Error {
  /** It may well start without its sandbox. */
  readonly ofSandbox: boolean

  constructor(message: string, ofSandbox = false) {
    super(message)
    this.ofSandbox = ofSandbox
  }
}

export class BrowserProcess {
  /** Resolves when the process has ended and its files are removed, as far as they can be. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #checks = new Map<number, () => void>()
  #checkId = 0

  /** @param onUncaught told the name of an error that the browser's process has survived. */
  constructor(onUncaught: (name: string) => void) {
    const directory = makeTemporaryDirectory()
    this.#child = fork(fileURLToPath(new URL('./host-process.ts', import.meta.url)), [directory.path], {
      // The profile is there, and whatever else the browser makes.
      env: { ...environmentWithoutSecrets(process.env), TMPDIR: directory.path },
      execArgv: ['--max-semi-space-size=1'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const ended = new Promise<void>((resolve) => {
      this.#child.once('exit', resolve)
      this.#child.once('error', resolve)
    })
    // What cannot be removed is no reason to end the worker.
    this.ended = ended.then(() => directory.remove()).catch(() => {})
    this.#child.on('message', (message: FromHost) => {
      if (message.type === 'checked') this.#checks.get(message.id)?.()
      if (message.type === 'uncaught') onUncaught(message.name)
    })
  }

  /** @throws {StartFailed} */
  async start(start: Start, stop: AbortSignal): Promise<Started> {
    this.#send(start)
    const message = await Promise.race([this.#answer(stop), this.ended])
    if (message?.type === 'started') return message
    await this.#kill()
    stop.throwIfAborted()
    const { message: reason, ofSandbox } =
      message?.type === 'refused' ? message : { message: 'its process ended or said nothing', ofSandbox: false }
    if (start.type === 'launch') throw new StartFailed(`The browser did not start: ${reason}`, ofSandbox)
    throw new StartFailed(`No browser answers at BROWSER_CDP_URL (${reason}): start it there, or set another address.`)
  }

  /** Whether the browser has started. */
  async #answer(stop: AbortSignal): Promise<FromHost | undefined> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(startMillisecondsMax)])
    try {
      for await (const [message] of on(this.#child, 'message', { signal })) {
        if (message.type !== 'uncaught') return message
      }
    } catch {
      // It is not waited for any longer.
    }
    return undefined
  }

  /** Whether the browser answers; one that does not is ended. */
  async check(): Promise<boolean> {
    this.#checkId += 1
    const id = this.#checkId
    let timer: NodeJS.Timeout | undefined
    const answer = new Promise<boolean>((resolve) => {
      this.#checks.set(id, () => resolve(true))
      timer = setTimeout(() => resolve(false), checkMillisecondsMax)
    })
    this.#send({ type: 'check', id })
    const answered = await Promise.race([answer, this.ended.then(() => false)])
    clearTimeout(timer)
    this.#checks.delete(id)
    if (!answered) await this.#kill()
    return answered
  }

  /** There is nothing in the browser to save: it is not asked to close. */
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
    // A process that has ended is heard of by its exit.
    if (this.#child.connected) this.#child.send(message, () => {})
  }
}
