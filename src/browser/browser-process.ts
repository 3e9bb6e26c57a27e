/** The worker's side of one host process, and of the browser in it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../config.ts'
import type { FoundBrowser } from './find-browser.ts'
import type { BrowserDescription, FromHost, ToHost } from './messages.ts'
import { makeTemporaryDirectory } from './temporary-directory.ts'

/** Twice what Playwright gives a browser to start. */
const startMillisecondsMax = 60_000

/** Beyond this a browser that says nothing is of no use to anyone. */
const checkMillisecondsMax = 10_000

/** A browser that did not start; `ofSandbox` when it may well start without its sandbox. */
export class StartFailed extends Error {
  readonly ofSandbox: boolean

  constructor(message: string, ofSandbox = false) {
    super(message)
    this.ofSandbox = ofSandbox
  }
}

export interface StartedBrowser extends BrowserDescription {
  url: string
}

export class BrowserProcess {
  readonly #child: ChildProcess
  /** Resolves when the process has ended and its files are removed. */
  readonly ended: Promise<void>
  readonly #checks = new Map<number, () => void>()
  #checkId = 0

  constructor() {
    const directory = makeTemporaryDirectory()
    const env = { ...environmentWithoutSecrets(process.env), TMPDIR: directory.path }
    const module = fileURLToPath(new URL('./host-process.ts', import.meta.url))
    this.#child = fork(module, {
      env,
      execArgv: ['--max-semi-space-size=1'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.ended = new Promise((resolve) => {
      const end = () => {
        directory.remove()
        resolve()
      }
      this.#child.once('exit', end)
      this.#child.once('error', end)
    })
    this.#child.on('message', (message: FromHost) => {
      if (message.type === 'checked') this.#checks.get(message.id)?.()
    })
  }

  /** @throws {StartFailed} */
  async start({ executable, environment }: FoundBrowser, sandbox: boolean): Promise<StartedBrowser> {
    this.#send({ type: 'launch', executable, environment, sandbox })
    const message = await Promise.race([this.#firstMessage(), this.ended])
    if (message?.type === 'started') return message
    await this.kill()
    if (message?.type === 'refused')
      throw new StartFailed(`The browser did not start: ${message.message}`, message.ofSandbox)
    throw new StartFailed('The browser did not start: its process ended or said nothing.')
  }

  async #firstMessage(): Promise<FromHost | undefined> {
    try {
      const [message] = await once(this.#child, 'message', { signal: AbortSignal.timeout(startMillisecondsMax) })
      return message as FromHost
    } catch {
      return undefined
    }
  }

  /** Whether the browser answers; one that does not is ended. */
  async check(): Promise<boolean> {
    this.#checkId += 1
    const id = this.#checkId
    let timer: NodeJS.Timeout | undefined
    const answered = await Promise.race([
      new Promise<boolean>((resolve) => {
        this.#checks.set(id, () => resolve(true))
        timer = setTimeout(() => resolve(false), checkMillisecondsMax)
        this.#send({ type: 'check', id })
      }),
      this.ended.then(() => false),
    ])
    clearTimeout(timer)
    this.#checks.delete(id)
    if (!answered) await this.kill()
    return answered
  }

  /** Ends the browser in order, as far as that takes no time: there is nothing in it to save. */
  async end(): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5000)
    if (this.#child.connected) this.#child.disconnect()
    await this.ended
    clearTimeout(timer)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  #send(message: ToHost): void {
    // A process that has ended is heard of by its exit.
    if (this.#child.connected) this.#child.send(message, () => {})
  }
}
