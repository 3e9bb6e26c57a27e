/** The worker's part of a watched attempt: the latest frame and tabs of its browser, for those who are sent them. */
import type { WatchedAttempt } from '../../domain/runs/live-views.ts'
import type { AttemptMessage, ToExecutor } from '../messages.ts'

export type ScreencastAction = Extract<ToExecutor, { type: 'screencast' }>['action']
export type Shown = Extract<AttemptMessage, { type: 'frame' | 'tabs' }>
export type Frame = Omit<Extract<AttemptMessage, { type: 'frame' }>, 'type'>
export type Tabs = Extract<AttemptMessage, { type: 'tabs' }>['tabs']

/** Characters in base64. Frames of ordinary pages have a tenth. */
const frameLengthMax = 1_500_000

export interface LiveViewListener {
  /** There is another frame, or other tabs. */
  changed(): void
  /** The attempt has ended. */
  ended(): void
}

export class AttemptLiveView {
  readonly watched: WatchedAttempt
  frame: Frame | undefined
  tabs: Tabs = []
  readonly #control: (action: ScreencastAction) => void
  readonly #redact: <Value>(value: Value) => Value
  readonly #listeners = new Set<LiveViewListener>()
  #hasEnded = false

  /**
   * @param control sends to the executor.
   * @param redact masks secrets in addresses of pages.
   */
  constructor(
    watched: WatchedAttempt,
    control: (action: ScreencastAction) => void,
    redact: <Value>(value: Value) => Value,
  ) {
    this.watched = watched
    this.#control = control
    this.#redact = redact
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /** Starts the screencast with the first listener; the last one to leave stops it. Returns a function that leaves. */
  listen(listener: LiveViewListener): () => void {
    if (this.#listeners.size === 0 && !this.#hasEnded) this.#control('start')
    this.#listeners.add(listener)
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0 || this.#hasEnded) return
      this.#control('stop')
      // The next listener gets the frames of a new screencast.
      this.frame = undefined
    }
  }

  /** A listener has delivered the latest frame: the browser may send another. */
  delivered(): void {
    if (!this.#hasEnded) this.#control('next')
  }

  onMessage(message: Shown): void {
    if (this.#listeners.size === 0) return
    if (message.type === 'tabs') this.tabs = this.#redact(message.tabs)
    else {
      const { data, width, height } = message
      if (data.length > frameLengthMax) return this.delivered()
      this.frame = { data, width, height }
    }
    for (const listener of this.#listeners) listener.changed()
  }

  end(): void {
    this.#hasEnded = true
    this.frame = undefined
    for (const listener of this.#listeners) listener.ended()
  }
}
