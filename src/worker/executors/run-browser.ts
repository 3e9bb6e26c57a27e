/**
 * The browser of one attempt, in the executor: opened when the workflow first asks, closed when the attempt ends. Executors
 * load this module only if a workflow uses a browser.
 */
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import type { CapturedState } from '../../domain/browser-contexts/storage-state.ts'
import { stateBytesMax } from '../../domain/browser-contexts/storage-state.ts'
import type { BrowserEndpoint } from '../browser/browser-host.ts'
import { type OpenBrowser, openBrowser } from '../browser/connection.ts'
import { EvidenceRecorder, type RawEvidence, type RecordingLevel, recordingLevel } from '../evidence/recorder.ts'
import { RunEvidence } from '../evidence/run-evidence.ts'
import { Screencast } from '../live-view/screencast.ts'
import { TakeOver } from '../live-view/take-over.ts'
import type { AttemptMessage, CaptureState, ToExecutor } from './messages.ts'
import type { Start } from './run-context.ts'

type BrowserMessage = Extract<
  ToExecutor,
  { type: 'browser' | 'browserUnavailable' | 'screencast' | 'takeOver' | 'input' }
>

/** The browser with its evidence, and the people who watch it or take it over. */
export class BrowserOfAttempt {
  readonly #browser: RunBrowser
  readonly #evidence: RunEvidence
  readonly #policy: Start['evidence']
  readonly #signal: AbortSignal
  readonly #screencast: Screencast
  readonly #takeOver: TakeOver
  #lastTakeOver: Promise<void> = Promise.resolve()
  /** Calls of `takeOver` that wait for a person. */
  #awaited = 0

  constructor(start: Start, send: (message: AttemptMessage) => void, signal: AbortSignal) {
    const request = () => send({ type: 'browserRequested' })
    const recording = recordingLevel(start.evidence, start.runAttempt, start.session?.kind === 'signIn')
    this.#browser = new RunBrowser(request, signal, start.captureState, recording)
    this.#browser.secrets = start.secrets
    this.#evidence = new RunEvidence(this.#browser, start, send)
    this.#policy = start.evidence
    this.#signal = signal
    const screencast = new Screencast(send)
    this.#browser.onOpened = (context) => screencast.attach(context)
    this.#browser.onClosing = () => screencast.stop()
    this.#screencast = screencast
    this.#takeOver = new TakeOver(send, signal)
  }

  onMessage(message: BrowserMessage): void {
    switch (message.type) {
      case 'browser':
        return this.#browser.provide(message.endpoint, message.storageState)
      case 'browserUnavailable':
        return this.#browser.fail(message.message)
      case 'screencast':
        return this.#screencast[message.action]()
      case 'takeOver':
        return this.#onTakeOver(message.action)
      case 'input':
        return this.#screencast.dispatch(message.input)
    }
  }

  /** One after the other: the workflow continues when its page has handled the person's input. */
  #onTakeOver(action: Extract<BrowserMessage, { type: 'takeOver' }>['action']): void {
    this.#lastTakeOver = this.#lastTakeOver.then(async () => {
      if (action === 'end') await this.#screencast.inputHandled()
      this.#takeOver[action]()
    })
  }

  open(options?: BrowserContextOptions): Promise<BrowserContext> {
    return this.#browser.open(options)
  }

  async takeOver(message: string, waitMinutes: number | undefined): Promise<boolean> {
    this.#awaited += 1
    try {
      await this.#browser.open()
      return await this.#takeOver.wait(message, waitMinutes)
    } finally {
      this.#awaited -= 1
    }
  }

  /** Whether the workflow waits for a person to take over. */
  get isAwaited(): boolean {
    return this.#awaited > 0
  }

  get isOpen(): boolean {
    return this.#browser.isOpen
  }

  /** Waits while a person has taken over. Steps call it before they start and after they have finished. */
  boundary(): Promise<void> {
    return this.#takeOver.boundary()
  }

  /** Opens what a test gives in place of the worker's browser. */
  provideOpened(open: (options: BrowserContextOptions) => Promise<OpenBrowser>): void {
    this.#browser.provideOpened(open)
  }

  /** Sends the evidence that the policy asks for. Call it before the signal is aborted, which closes the browser. */
  sendEvidenceOfTimeout(): void {
    if (this.#policy === 'off') return
    this.#evidence.keep()
    void this.#evidence.send()
  }

  /** Keeps evidence if the policy asks for it, closes the browser, and returns its storage state if it is to be captured. */
  end(succeeded: boolean): Promise<CapturedState> {
    // A cancelled run needs no evidence; that of a timed-out run is kept when the signal is aborted.
    const isKept = this.#policy === 'always' || (this.#policy === 'onFailure' && !succeeded)
    if (isKept && !this.#signal.aborted) this.#evidence.keep()
    return this.#browser.end(succeeded)
  }

  /** Whether the browser ended without being closed. */
  get crashed(): boolean {
    return this.#browser.crashed
  }

  /** Resolves when all evidence has been sent. */
  sendEvidence(): Promise<void> {
    return this.#evidence.send()
  }
}

export class RunBrowser {
  /** Whether the browser ended without being closed. */
  crashed = false
  readonly #request: () => void
  readonly #signal: AbortSignal
  readonly #captureState: CaptureState
  readonly #readMillisecondsMax: number
  #opening: Promise<OpenBrowser> | undefined
  #options: BrowserContextOptions = {}
  #pending: { resolve(opened: Promise<OpenBrowser>): void; reject(error: Error): void } | undefined
  #state: Promise<CapturedState> | undefined
  #closing: Promise<void> | undefined
  #isClosed = false
  readonly #recording: RecordingLevel | undefined
  #recorder: EvidenceRecorder | undefined
  get isOpen(): boolean {
    return this.#opening !== undefined && !this.#isClosed
  }

  onOpened: (context: BrowserContext) => void = () => {}
  /** Called before the browser is closed. */
  onClosing: () => void = () => {}
  /** The storage state that the browser was opened with. */
  restored: string | undefined
  /** Values to cover in screenshots. More may be added while the attempt runs. */
  secrets: readonly unknown[] = []

  /**
   * @param request asks the worker for a browser; `provide` or `fail` follows.
   * @param recording what is recorded of the browser for evidence; nothing if undefined.
   * @param readMillisecondsMax time limit for reading the storage state.
   */
  constructor(
    request: () => void,
    signal: AbortSignal,
    captureState: CaptureState,
    recording: RecordingLevel | undefined,
    readMillisecondsMax = 30_000,
  ) {
    this.#request = request
    this.#signal = signal
    this.#captureState = captureState
    this.#recording = recording
    this.#readMillisecondsMax = readMillisecondsMax
    // Closing the browser ends every call that the workflow awaits in a page.
    signal.addEventListener('abort', () => void this.end(true), { once: true })
  }

  /** Returns the same context at every call. */
  async open(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    this.#signal.throwIfAborted()
    // Called by code that outlived its attempt.
    if (this.#closing) throw hasEnded()
    this.#opening ??= new Promise<OpenBrowser>((resolve, reject) => {
      this.#pending = { resolve, reject }
      this.#options = options
      this.#request()
    })
    return (await this.#opening).context
  }

  provide(endpoint: BrowserEndpoint, storageState: string | undefined): void {
    this.restored = storageState
    this.provideOpened((options) => openBrowser(endpoint, storageState, options))
  }

  provideOpened(open: (options: BrowserContextOptions) => Promise<OpenBrowser>): void {
    // The attempt is ending: a browser opened now would not be closed.
    if (this.#closing) return
    this.#pending?.resolve(open(this.#options).then((opened) => this.#record(opened)))
  }

  fail(message: string): void {
    this.#pending?.reject(Object.assign(new Error(message), { name: 'BrowserUnavailable' }))
  }

  async #record(opened: OpenBrowser): Promise<OpenBrowser> {
    if (this.#recording) this.#recorder = await EvidenceRecorder.start(opened.context, this.#recording)
    this.onOpened(opened.context)
    return this.#captureBeforeClose(opened)
  }

  /** Collects what the browser did, if it is recorded. The browser stays open until then. */
  collectEvidence(): Promise<RawEvidence> | undefined {
    return this.#closing ? undefined : this.#recorder?.collect(this.secrets)
  }

  /** Closes the browser if the workflow has opened it, and returns its storage state if that is to be captured. */
  async end(succeeded: boolean): Promise<CapturedState> {
    // Does not wait for a requested browser, which the worker may still be starting.
    this.#pending?.reject(this.#signal.aborted ? this.#signal.reason : hasEnded())
    const captures = succeeded ? this.#captureState !== 'never' : this.#captureState === 'always'
    const state = captures ? await this.#capture() : undefined
    this.onClosing()
    this.#closing ??= this.#close()
    await this.#closing
    await this.#recorder?.discard()
    return state
  }

  /** Reads the state once; later calls return the same. */
  async #capture(): Promise<CapturedState> {
    const opened = await this.#opened()
    if (opened) this.#state ??= readState(opened, this.#readMillisecondsMax)
    return this.#state
  }

  async #close(): Promise<void> {
    const opened = await this.#opened()
    await this.#recorder?.collecting
    this.#isClosed = true
    await opened?.close()
  }

  async #opened(): Promise<OpenBrowser | undefined> {
    return this.#opening?.catch(() => undefined)
  }

  /** A workflow may close its context or browser itself, as Playwright's examples do: read the state before that. */
  #captureBeforeClose(opened: OpenBrowser): OpenBrowser {
    // The context's `close` comes before pending calls fail; the browser's `disconnected` comes after.
    opened.context.once('close', () => {
      this.crashed = !this.#isClosed
    })
    for (const closable of [opened.context, opened.context.browser()]) {
      if (!closable) continue
      const close = closable.close.bind(closable)
      closable.close = async (options) => {
        // Whether the attempt fails is not known yet.
        await this.collectEvidence()?.catch(() => {})
        if (!this.#closing && this.#captureState !== 'never') await this.#capture()
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

/** Playwright has no time limit here: a page in a loop or a cyclic IndexedDB value would block for ever. */
async function readState(opened: OpenBrowser, millisecondsMax: number): Promise<CapturedState> {
  let timer: NodeJS.Timeout | undefined
  const tooSlow = new Promise<never>((_, reject) => {
    const limit = `it was not read within ${millisecondsMax / 1000} s`
    const message = `${limit}: a page may be in a loop, or have stored a value that contains itself.`
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
