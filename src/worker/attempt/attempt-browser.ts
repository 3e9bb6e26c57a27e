/** The worker's part of an attempt's browser: restores and saves its browser context, and masks cookies in reports. */
import { type RunContexts, type SavedContext, stateProblem } from '../../domain/browser-contexts/run-contexts.ts'
import type { CapturedState } from '../../domain/browser-contexts/storage-state.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import { evidenceFilesMax, isEvidenceOf, type NewArtifact } from '../../domain/runs/artifact.ts'
import type { Outcome } from '../../domain/runs/run-state.ts'
import { describeCauses } from '../../storage/error-causes.ts'
import { type BrowserHost, BrowserMissing } from '../browser/browser-host.ts'
import type { AttemptChannel, Reply } from '../executors/executor-process.ts'
import type { AttemptMessage } from '../executors/messages.ts'
import { AttemptLiveView, type LiveViewMessage, type Shown } from '../live-view/attempt-live-view.ts'
import type { LiveViewSenders } from '../live-view/live-view-senders.ts'
import { type AttemptRedactor, type Reporter, retryUntilAvailable } from './reporter.ts'
import type { TimeLimit } from './time-limit.ts'

/** Where the browser contexts of runs are: in the store, or behind the service. */
interface AttemptContexts {
  read(claim: Claim): ReturnType<RunContexts['read']>
  save(claim: Claim, ...end: Tail<Parameters<RunContexts['save']>>): Promise<SavedContext>
}

type Tail<List extends unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never

export interface AttemptBrowserDependencies {
  host: Pick<BrowserHost, 'acquire' | 'release'>
  liveViews: Pick<LiveViewSenders, 'add' | 'remove'>
  contexts: AttemptContexts
}

/** The parts of an attempt that people act on when they watch its browser or take it over. */
interface WatchedParts {
  redactor: AttemptRedactor
  reporter: Pick<Reporter, 'add'>
  timeLimit: TimeLimit
}

export class AttemptBrowser {
  readonly #dependencies: AttemptBrowserDependencies
  readonly #claim: Claim
  readonly #redactor: AttemptRedactor
  readonly #attempt: WatchedParts
  #liveView: AttemptLiveView | undefined
  #captured: CapturedState
  /** The storage state that the browser was opened with. */
  #restored: string | undefined
  #requested = false
  #acquired = false
  #released = false

  constructor(dependencies: AttemptBrowserDependencies, claim: Claim, attempt: WatchedParts) {
    this.#dependencies = dependencies
    this.#claim = claim
    this.#redactor = attempt.redactor
    this.#attempt = attempt
  }

  /** The reply to an executor whose workflow asks for the browser, which it does once. */
  async provide(channel: Pick<AttemptChannel, 'reply'>): Promise<Reply> {
    if (this.#released) return unavailable('The run has ended.')
    if (this.#requested) return unavailable('The browser was requested before.')
    this.#requested = true
    let storageState: string | undefined
    try {
      storageState = await this.#storedState()
    } catch (error) {
      return unavailable(describeCauses(error))
    }
    try {
      const endpoint = await this.#dependencies.host.acquire()
      if (this.#released) this.#dependencies.host.release()
      this.#acquired = !this.#released
      this.#restored = storageState
      this.#beWatchable(channel)
      return { type: 'browser', endpoint, storageState }
    } catch (error) {
      const { message } = error as Error
      return unavailable(error instanceof BrowserMissing ? message : `The browser could not be started: ${message}`)
    }
  }

  /** @returns undefined when the run has no browser context. */
  async #storedState(): Promise<string | undefined> {
    if (this.#claim.browserContextId === null) return undefined
    const read = () => this.#dependencies.contexts.read(this.#claim)
    const state = await retryUntilAvailable(read).catch((cause: unknown) => {
      throw new Error("The run's browser context cannot be decrypted: replace or restore it.", { cause })
    })
    if (state === undefined) throw new Error('The browser context of this run was deleted.')
    this.#redactor.addCookies(state)
    return state
  }

  /** Keeps the state that the browser had when the workflow ended. */
  capture(state: CapturedState): void {
    this.#captured = state
    if (!state || !('json' in state)) return
    try {
      this.#redactor.addCookies(state.json)
      const problem = stateProblem(state.json)
      if (problem !== undefined) this.#captured = { unreadable: problem }
    } catch {
      // A workflow can change anything in its process, including Playwright's functions.
      this.#captured = { unreadable: 'it is not a storage state as Playwright writes it.' }
    }
  }

  #beWatchable(channel: Pick<AttemptChannel, 'reply'>): void {
    if (this.#released) return
    const { redactor, reporter, timeLimit } = this.#attempt
    const attempt = {
      send: (message: LiveViewMessage) => channel.reply(message),
      log: (message: string) => reporter.add('log', { level: 'info', message }),
      pause: (isPaused: boolean) => (isPaused ? timeLimit.pause() : timeLimit.resume()),
    }
    this.#liveView = new AttemptLiveView(this.#claim, attempt, (value) => redactor.redact(value))
    this.#dependencies.liveViews.add(this.#liveView)
  }

  /** Passes on what the browser shows, if someone watches, and who has control of it. */
  show(message: Shown): void {
    this.#liveView?.onMessage(message)
  }

  /** Releases the browser: the attempt no longer uses it. */
  release(): void {
    if (this.#acquired && !this.#released) this.#dependencies.host.release()
    this.#released = true
    if (this.#liveView) this.#dependencies.liveViews.remove(this.#liveView)
  }

  /** Stores the state that the browser had at the end of the attempt. */
  save(outcome: Outcome): Promise<SavedContext> {
    const redact = (text: string) => this.#redactor.redact(text)
    return this.#dependencies.contexts.save(this.#claim, outcome, {
      ...{ captured: this.#captured, restored: this.#restored, redact },
    })
  }
}

function unavailable(message: string): Reply {
  return { type: 'browserUnavailable', message }
}

// The worker's part of an attempt's evidence: stores it, and bounds how long the end of the attempt waits for it.

type EvidenceMessage = Extract<AttemptMessage, { type: 'evidenceStarted' | 'evidence' | 'evidenceEnded' }>

const evidenceMillisecondsMax = 10_000

export class AttemptEvidence {
  /** Resolves when the evidence is stored, or will not be. */
  readonly finished: Promise<void>
  readonly #attempt: number
  readonly #save: (artifact: NewArtifact) => Promise<void>
  readonly #resolve: () => void
  #state: 'none' | 'pending' | 'finished' = 'none'
  #timer: NodeJS.Timeout | undefined
  #files = 0
  #saving: Promise<void> = Promise.resolve()
  /** Whether the executor has sent all of it. */
  hasEnded = false

  /** @param save stores a file; it must not reject. */
  constructor(attempt: number, save: (artifact: NewArtifact) => Promise<void>) {
    this.#attempt = attempt
    this.#save = save
    const { promise, resolve } = Promise.withResolvers<void>()
    this.finished = promise
    this.#resolve = resolve
  }

  get isPending(): boolean {
    return this.#state === 'pending'
  }

  /** @throws {Error} for a message that only a workflow that writes to the channel sends. */
  onMessage(message: EvidenceMessage): void {
    switch (message.type) {
      case 'evidenceStarted':
        if (this.#state !== 'none') throw new Error('The executor sends evidence once.')
        this.#state = 'pending'
        this.#timer = setTimeout(() => this.finish(), evidenceMillisecondsMax)
        return
      case 'evidence':
        return this.#onFile(message)
      case 'evidenceEnded':
        this.hasEnded = true
        void this.#saving.then(() => this.finish())
    }
  }

  /** Stops waiting for evidence. */
  finish(): void {
    clearTimeout(this.#timer)
    this.#state = 'finished'
    this.#resolve()
  }

  #onFile({ name, mediaType, content }: Extract<EvidenceMessage, { type: 'evidence' }>): void {
    // The attempt no longer waits for it.
    if (this.#state === 'finished') return
    this.#files += 1
    if (this.#files > evidenceFilesMax || !isEvidenceOf(this.#attempt, name)) {
      throw new Error('The executor sent a file that is not evidence of its attempt.')
    }
    const artifact = { name, mediaType: mediaType as NewArtifact['mediaType'], content: Buffer.from(content, 'base64') }
    this.#saving = this.#saving.then(() => (this.isPending ? this.#save({ ...artifact, kind: 'evidence' }) : undefined))
  }
}
