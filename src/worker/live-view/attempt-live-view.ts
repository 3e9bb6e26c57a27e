/** The worker's part of a watched attempt: the latest frame and tabs of its browser, for those who are sent them. */
import {
  absenceMillisecondsMax,
  type Control,
  type Controller,
  type LiveCommand,
  type WatchedAttempt,
} from '../../domain/run-api/live-views.ts'
import { messageLengthMax, truncate } from '../../domain/runs/reported-values.ts'
import { type AttemptMessage, awaitedMinutes, type ToExecutor } from '../executors/messages.ts'

type ScreencastAction = Extract<ToExecutor, { type: 'screencast' }>['action']
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

interface LiveViewListener {
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

// Who controls the browser of an attempt, in the worker, which decides between dashboards that ask at the same time.

type WithoutAttempt<Message> = Message extends unknown ? Omit<Message, 'attempt'> : never
type ControlMessage = WithoutAttempt<Extract<ToExecutor, { type: 'takeOver' | 'input' }>>
type ControlEvent = Extract<AttemptMessage, { type: 'paused' | 'resumed' | 'takeOverAwaited' }>

interface ControlledAttempt {
  send(message: ControlMessage): void
  /** Writes to the run's log. */
  log(message: string): void
  /** The workflow waits, or no longer. */
  pause(isPaused: boolean): void
  changed(): void
}

const free: Control = { phase: 'free', by: null, message: null }

class AttemptControl {
  control: Control = free
  readonly #attempt: ControlledAttempt
  #absence: NodeJS.Timeout | undefined
  #unanswered: NodeJS.Timeout | undefined

  constructor(attempt: ControlledAttempt) {
    this.#attempt = attempt
  }

  onCommand(command: LiveCommand): void {
    const { by } = this.control
    if (command.type === 'takeOver' && by === null) return this.#begin(command.by)
    if (by?.id !== command.by.id) return
    if (command.type === 'returnControl') this.#end(`${by.name} returned control of the browser.`)
    if (command.type !== 'input') return
    this.present(by.id)
    // Until then the workflow still uses the page.
    if (this.control.phase !== 'paused') return
    for (const input of command.inputs) this.#attempt.send({ type: 'input', input })
  }

  onMessage(message: ControlEvent): void {
    if (message.type === 'takeOverAwaited') return this.#await(message.message, message.waitMinutes)
    const isPaused = message.type === 'paused'
    this.#attempt.pause(isPaused)
    // `paused` may still be about a person who has returned control: `resumed` then follows.
    if (this.control.by !== null) this.#set({ ...this.control, phase: isPaused ? 'paused' : 'pausing' })
  }

  /** The page of this user is open. */
  present(userId: string): void {
    if (this.control.by?.id !== userId) return
    clearTimeout(this.#absence)
    const { name } = this.control.by
    const end = () => this.#end(`The workflow controls the browser again: ${name} was away.`)
    this.#absence = setTimeout(end, absenceMillisecondsMax)
  }

  /** The attempt has ended. */
  close(): void {
    clearTimeout(this.#absence)
    clearTimeout(this.#unanswered)
  }

  #await(message: string, waitMinutes: number): void {
    const minutes = Math.min(Math.max(0, waitMinutes), awaitedMinutes.max)
    this.#attempt.log(`Waiting for someone to take over the browser: ${message}`)
    if (this.control.by !== null) return this.#set({ ...this.control, phase: 'paused', message })
    this.#set({ phase: 'awaited', by: null, message })
    clearTimeout(this.#unanswered)
    this.#unanswered = setTimeout(() => {
      this.#attempt.log('No user took over the browser in time.')
      this.#set(free)
      this.#attempt.send({ type: 'takeOver', action: 'unanswered' })
    }, minutes * 60_000)
  }

  #begin(by: Controller): void {
    clearTimeout(this.#unanswered)
    const isAwaited = this.control.phase === 'awaited'
    this.#attempt.log(`${by.name} took over the browser.`)
    this.#set({ ...this.control, phase: isAwaited ? 'paused' : 'pausing', by })
    this.#attempt.send({ type: 'takeOver', action: 'begin' })
    this.present(by.id)
  }

  #end(message: string): void {
    clearTimeout(this.#absence)
    this.#attempt.log(message)
    this.#set(free)
    this.#attempt.send({ type: 'takeOver', action: 'end' })
  }

  #set(control: Control): void {
    this.control = control
    this.#attempt.changed()
  }
}
