/** The browser of one attempt, in the executor: opened when the workflow first asks, closed when the attempt ends. */
import type { BrowserContext } from 'playwright-core'
import { stateBytesMax } from '../domain/browser-contexts/storage-state.ts'
import type { BrowserEndpoint } from './browser/browser-host.ts'
import { type OpenBrowser, openBrowser } from './browser/connection.ts'
import type { TakenState } from './messages.ts'

/** When the storage state is to be told: at the end of a run that succeeds, of any, or never. */
export type TellsState = 'never' | 'onSuccess' | 'always'

export class RunBrowser {
  readonly #ask: () => void
  readonly #signal: AbortSignal
  readonly #tellsState: TellsState
  readonly #readMillisecondsMax: number
  #opening: Promise<OpenBrowser> | undefined
  #give: { resolve(opened: Promise<OpenBrowser>): void; reject(error: Error): void } | undefined
  #state: Promise<TakenState> | undefined
  #closing: Promise<void> | undefined
  #isClosed = false
  #died = false

  /**
   * @param ask asks the worker for a browser, which answers by `given` or `refused`.
   * @param readMillisecondsMax how long reading the storage state may take.
   */
  constructor(ask: () => void, signal: AbortSignal, tellsState: TellsState, readMillisecondsMax = 30_000) {
    this.#ask = ask
    this.#signal = signal
    this.#tellsState = tellsState
    this.#readMillisecondsMax = readMillisecondsMax
    // Whatever the workflow waits for in a page comes to an end then.
    signal.addEventListener('abort', () => void this.end(true), { once: true })
  }

  /** Whether it ended and nobody had closed it. */
  get died(): boolean {
    return this.#died
  }

  /** The same context at every call. */
  async open(): Promise<BrowserContext> {
    this.#signal.throwIfAborted()
    // By code that the workflow has left behind.
    if (this.#closing) throw hasEnded()
    this.#opening ??= new Promise<OpenBrowser>((resolve, reject) => {
      this.#give = { resolve, reject }
      this.#ask()
    })
    return (await this.#opening).context
  }

  given(endpoint: BrowserEndpoint, storageState: string | undefined): void {
    // Nobody would close it.
    if (this.#closing) return
    this.#give?.resolve(openBrowser(endpoint, storageState).then((opened) => this.#watched(opened)))
  }

  refused(message: string): void {
    this.#give?.reject(Object.assign(new Error(message), { name: 'BrowserUnavailable' }))
  }

  /** Closes the browser; tells first what it holds, when the workflow has opened it and that is wanted. */
  async end(succeeded: boolean): Promise<TakenState> {
    // A browser that was asked for and has not come yet is not waited for: the worker may be busy starting one.
    this.#give?.reject(this.#signal.aborted ? this.#signal.reason : hasEnded())
    const tells = succeeded ? this.#tellsState !== 'never' : this.#tellsState === 'always'
    const state = tells ? await this.#takeState() : undefined
    this.#closing ??= this.#close()
    await this.#closing
    return state
  }

  /** Once: what comes later is the same. */
  async #takeState(): Promise<TakenState> {
    const opened = await this.#opened()
    if (opened) this.#state ??= stateOf(opened, this.#readMillisecondsMax)
    return this.#state
  }

  async #close(): Promise<void> {
    const opened = await this.#opened()
    this.#isClosed = true
    await opened?.close()
  }

  async #opened(): Promise<OpenBrowser | undefined> {
    return this.#opening?.catch(() => undefined)
  }

  /** A workflow may close its context by itself, or the browser, as Playwright's examples do: it is read before. */
  #watched(opened: OpenBrowser): OpenBrowser {
    // Of the browser's end Playwright tells a turn later than calls fail; of the context's before.
    opened.context.once('close', () => {
      this.#died = !this.#isClosed
    })
    for (const closable of [opened.context, opened.context.browser()]) {
      if (!closable) continue
      const close = closable.close.bind(closable)
      closable.close = async (options) => {
        if (!this.#closing && this.#tellsState !== 'never') await this.#takeState()
        this.#isClosed = true
        await close(options)
      }
    }
    return opened
  }
}

function hasEnded(): Error {
  return new Error('The run has ended.')
}

/** Playwright would wait for ever for a page in a loop, and for one that has stored a value which contains itself. */
async function stateOf(opened: OpenBrowser, millisecondsMax: number): Promise<TakenState> {
  let timer: NodeJS.Timeout | undefined
  const tooSlow = new Promise<never>((_, reject) => {
    const time = `it was not told within ${millisecondsMax / 1000} s`
    const message = `${time}: a page may be in a loop, or have stored a value that contains itself.`
    timer = setTimeout(() => reject(new Error(message)), millisecondsMax)
  })
  try {
    const json = await Promise.race([opened.storageState(), tooSlow])
    const bytes = Buffer.byteLength(json)
    return bytes > stateBytesMax ? { tooLarge: bytes } : { json }
  } catch (error) {
    return { unreadable: (error as Error).message.split('\n')[0] ?? '' }
  } finally {
    clearTimeout(timer)
  }
}
