/** The worker's part of a watched attempt: the latest frame and tabs of its browser, for those who are sent them. */
import type { LiveCommand } from '../../domain/runs/live-control.ts'
import type { WatchedAttempt } from '../../domain/runs/live-views.ts'
import { messageLengthMax, truncate } from '../../domain/runs/reported-values.ts'
import type { AttemptMessage, ToExecutor } from '../messages.ts'
import { AttemptControl, type ControlEvent, type ControlledAttempt, type ControlMessage } from './attempt-control.ts'

export type ScreencastAction = Extract<ToExecutor, { type: 'screencast' }>['action']
export type Shown = Extract<AttemptMessage, { type: 'frame' | 'tabs' }> | ControlEvent
const shownTypes: readonly string[] = [
  'frame',
  'tabs',
  'takeOverAwaited',
  'paused',
  'resumed',
] satisfies Shown['type'][]

export function isLiveViewEvent(event: { type: string }): event is Shown {
  return shownTypes.includes(event.type)
}

/** Messages to the executor. */
export type LiveViewMessage = { type: 'screencast'; action: ScreencastAction } | ControlMessage
export type Frame = Omit<Extract<AttemptMessage, { type: 'frame' }>, 'type'>
export type Tabs = Extract<AttemptMessage, { type: 'tabs' }>['tabs']

/** Characters in base64. Frames of ordinary pages have a tenth. */
const frameLengthMax = 1_500_000

export interface LiveViewListener {
  /** There is another frame, other tabs, or someone else in control. */
  changed(): void
  /** The attempt has ended. */
  ended(): void
}

export class AttemptLiveView {
  readonly watched: WatchedAttempt
  frame: Frame | undefined
  tabs: Tabs = []
  readonly control: AttemptControl
  readonly #send: (message: LiveViewMessage) => void
  readonly #redact: <Value>(value: Value) => Value
  readonly #listeners = new Set<LiveViewListener>()
  #hasEnded = false

  /**
   * @param attempt the run's log, its time limit, and `send`, which sends to the executor.
   * @param redact masks secrets in addresses of pages, and in what the workflow asks for.
   */
  constructor(
    watched: WatchedAttempt,
    attempt: Omit<ControlledAttempt, 'changed' | 'send'> & { send(message: LiveViewMessage): void },
    redact: <Value>(value: Value) => Value,
  ) {
    this.watched = watched
    this.#send = (message) => attempt.send(message)
    this.control = new AttemptControl({ ...attempt, changed: () => this.#changed() })
    this.#redact = redact
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /** Starts the screencast with the first listener; the last one to leave stops it. Returns a function that leaves. */
  listen(listener: LiveViewListener): () => void {
    if (this.#listeners.size === 0 && !this.#hasEnded) this.#send({ type: 'screencast', action: 'start' })
    this.#listeners.add(listener)
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0 || this.#hasEnded) return
      this.#send({ type: 'screencast', action: 'stop' })
      // The next listener gets the frames of a new screencast.
      this.frame = undefined
    }
  }

  /** A listener has delivered the latest frame: the browser may send another. */
  delivered(): void {
    if (!this.#hasEnded) this.#send({ type: 'screencast', action: 'next' })
  }

  onMessage(message: Shown): void {
    if (this.#hasEnded) return
    if (message.type === 'takeOverAwaited') {
      const text = truncate(this.#redact(message.message), messageLengthMax)
      return this.control.onMessage({ ...message, message: text })
    }
    if (message.type !== 'frame' && message.type !== 'tabs') return this.control.onMessage(message)
    if (this.#listeners.size === 0) return
    if (message.type === 'tabs') this.tabs = this.#redact(message.tabs)
    else {
      const { data, width, height } = message
      if (data.length > frameLengthMax) return this.delivered()
      this.frame = { data, width, height }
    }
    this.#changed()
  }

  onCommand(command: LiveCommand): void {
    if (!this.#hasEnded) this.control.onCommand(command)
  }

  end(): void {
    this.#hasEnded = true
    this.frame = undefined
    this.control.close()
    for (const listener of this.#listeners) listener.ended()
  }

  #changed(): void {
    for (const listener of this.#listeners) listener.changed()
  }
}
