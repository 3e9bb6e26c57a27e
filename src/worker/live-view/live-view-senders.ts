/** Answers the requests of dashboards to watch this worker's attempts, each with a connection. */
import type { Logger } from 'pino'
import {
  type ConnectionEnd,
  DashboardConnection,
  type LiveViewConnection,
} from '../../domain/run-api/live-view-connection.ts'
import type { Control, LiveView, LiveViews, WatchedAttempt } from '../../domain/run-api/live-views.ts'
import type { AttemptLiveView, Frame, Tabs } from './attempt-live-view.ts'

/** Dashboard processes that are sent the frames of one attempt. */
const sendersPerAttemptMax = 8
/** Until a dashboard that is unreachable is tried again. */
const retryMilliseconds = 1000

/** An open live view, and how to connect to its dashboard. */
export interface WatchingView extends Pick<LiveView, 'id' | 'runId'> {
  connect(attempt: WatchedAttempt): LiveViewConnection
}

/** Where a worker finds the live views: in the store, or behind the service. */
export interface LiveViewSource {
  list(): Promise<WatchingView[]>
  /** Calls `listener` when there may be others. Returns a function that removes the listener. */
  listen(listener: () => void): () => void
}

/** The live views in the store. */
export function storedLiveViews(liveViews: LiveViews): LiveViewSource {
  return {
    listen: (listener) => liveViews.listen(listener),
    list: async () =>
      (await liveViews.list()).map((view) => ({
        ...{ id: view.id, runId: view.runId },
        connect: (attempt) => new DashboardConnection(liveViews, view, attempt),
      })),
  }
}

export class LiveViewSenders {
  readonly #liveViews: LiveViewSource
  readonly #log: Logger
  /** Attempts whose browser was requested, by run. */
  readonly #attempts = new Map<string, AttemptLiveView>()
  /** By view. */
  readonly #senders = new Map<string, LiveViewSender>()
  /** Views that have refused this worker: their rows are about to be deleted. */
  readonly #refused = new Set<string>()
  #unsubscribe: (() => void) | undefined

  constructor(liveViews: LiveViewSource, log: Logger) {
    this.#liveViews = liveViews
    this.#log = log
  }

  start(): void {
    this.#unsubscribe = this.#liveViews.listen(() => void this.#refresh())
  }

  stop(): void {
    this.#unsubscribe?.()
    for (const sender of this.#senders.values()) sender.close()
  }

  /** Connections now. */
  get size(): number {
    return this.#senders.size
  }

  /** The attempt can be watched until `remove`. */
  add(attempt: AttemptLiveView): void {
    this.#attempts.set(attempt.watched.runId, attempt)
    void this.#refresh()
  }

  remove(attempt: AttemptLiveView): void {
    const { runId } = attempt.watched
    if (this.#attempts.get(runId) === attempt) this.#attempts.delete(runId)
    attempt.end()
  }

  async #refresh(): Promise<void> {
    if (this.#attempts.size === 0) return
    try {
      const views = await this.#liveViews.list()
      for (const view of views) this.#connect(view)
      const ids = new Set(views.map(({ id }) => id))
      for (const id of this.#refused) if (!ids.has(id)) this.#refused.delete(id)
    } catch (error) {
      this.#log.warn({ err: error }, 'reading live views failed; retrying')
    }
  }

  #connect(view: WatchingView): void {
    const attempt = this.#attempts.get(view.runId)
    if (!attempt || this.#senders.has(view.id) || this.#refused.has(view.id)) return
    if (attempt.listeners >= sendersPerAttemptMax) return
    const sender = new LiveViewSender(view.connect(attempt.watched), attempt)
    this.#senders.set(view.id, sender)
    void sender.ended.then((how) => {
      this.#senders.delete(view.id)
      if (how === 'refused') this.#refused.add(view.id)
      if (how === 'unreachable') setTimeout(() => void this.#refresh(), retryMilliseconds).unref()
    })
  }
}

// Sends one attempt's frames to one dashboard process: one request in flight, the latest frame wins.

/** `closed`: the attempt has ended. */
type SenderEnd = ConnectionEnd | 'closed'

export class LiveViewSender {
  /** Never rejects. */
  readonly ended: Promise<SenderEnd>
  readonly #connection: LiveViewConnection
  readonly #attempt: AttemptLiveView
  readonly #closing = new AbortController()
  #sentFrame: Frame | undefined
  #sentTabs: Tabs | undefined
  #sentControl: Control | undefined
  #isSending = false
  #end: (how: SenderEnd) => void = () => {}

  constructor(connection: LiveViewConnection, attempt: AttemptLiveView) {
    this.#connection = connection
    this.#attempt = attempt
    const leave = attempt.listen({ changed: () => void this.#send(), ended: () => this.close() })
    this.ended = new Promise<SenderEnd>((resolve) => {
      this.#end = (how) => {
        resolve(how)
        this.#closing.abort()
      }
    }).finally(leave)
    void this.#poll()
    // What earlier connections have received, if there were any.
    void this.#send()
  }

  close(): void {
    this.#end('closed')
  }

  /** Keeps a request open, by which the dashboard says at once that the last viewer has left, and sees a lost worker. */
  async #poll(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const received = await this.#connection.receive(this.#closing.signal)
      if (typeof received === 'string') return this.#end(received)
      for (const userId of received.present) this.#attempt.control.present(userId)
      for (const command of received.commands) this.#attempt.onCommand(command)
    }
  }

  async #send(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    while (!this.#closing.signal.aborted) {
      const { frame, tabs } = this.#attempt
      const { control } = this.#attempt.control
      const newFrame = frame !== this.#sentFrame ? frame : undefined
      const newTabs = tabs !== this.#sentTabs ? tabs : undefined
      const newControl = control !== this.#sentControl ? control : undefined
      if (!newFrame && !newTabs && !newControl) break
      this.#sentFrame = frame
      this.#sentTabs = tabs
      this.#sentControl = control
      const shown = { frame: newFrame, tabs: newTabs, control: newControl }
      const result = await this.#connection.send(shown, this.#closing.signal)
      if (result !== 'sent') this.#end(result)
      if (newFrame) this.#attempt.delivered()
    }
    this.#isSending = false
  }
}
