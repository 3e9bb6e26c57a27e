/** Answers the requests of dashboards to watch this worker's attempts, each with a connection. */
import type { Logger } from 'pino'
import type { Control, LiveCommand, LiveView, LiveViews } from '../../domain/run-api/live-views.ts'
import type { AttemptLiveView, Frame, Tabs } from './attempt-live-view.ts'

/** Dashboard processes that are sent the frames of one attempt. */
const sendersPerAttemptMax = 8
/** Until a dashboard that is unreachable is tried again. */
const retryMilliseconds = 1000

export class LiveViewSenders {
  readonly #liveViews: LiveViews
  readonly #log: Logger
  /** Attempts whose browser was requested, by run. */
  readonly #attempts = new Map<string, AttemptLiveView>()
  /** By view. */
  readonly #senders = new Map<string, LiveViewSender>()
  /** Views that have refused this worker: their rows are about to be deleted. */
  readonly #refused = new Set<string>()
  #unsubscribe: (() => void) | undefined

  constructor(liveViews: LiveViews, log: Logger) {
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

  #connect(view: LiveView): void {
    const attempt = this.#attempts.get(view.runId)
    if (!attempt || this.#senders.has(view.id) || this.#refused.has(view.id)) return
    if (attempt.listeners >= sendersPerAttemptMax) return
    const sender = new LiveViewSender(view, attempt, this.#liveViews.token(view.id, attempt.watched))
    this.#senders.set(view.id, sender)
    void sender.ended.then((how) => {
      this.#senders.delete(view.id)
      if (how === 'refused') this.#refused.add(view.id)
      if (how === 'unreachable') setTimeout(() => void this.#refresh(), retryMilliseconds).unref()
    })
  }
}

// Sends one attempt's frames to one dashboard process by HTTP: one request in flight, the latest frame wins.

/** A dashboard that does not respond for this long gets no more. */
const requestMillisecondsMax = 10_000
/** Longer than dashboards hold a request for commands. */
const pollMillisecondsMax = 30_000

/** `refused`: the last viewer has left. `unreachable`: the dashboard does not respond. `closed`: the attempt has ended. */
type SenderEnd = 'refused' | 'unreachable' | 'closed'

export class LiveViewSender {
  /** Never rejects. */
  readonly ended: Promise<SenderEnd>
  readonly #view: LiveView
  readonly #attempt: AttemptLiveView
  readonly #headers: Record<string, string>
  readonly #closing = new AbortController()
  #sentFrame: Frame | undefined
  #sentTabs: Tabs | undefined
  #sentControl: Control | undefined
  #isSending = false
  #end: (how: SenderEnd) => void = () => {}

  /** @param token of the view and the attempt. */
  constructor(view: LiveView, attempt: AttemptLiveView, token: string) {
    this.#view = view
    this.#attempt = attempt
    this.#headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const leave = attempt.listen({ changed: () => void this.#send(), ended: () => this.close() })
    this.ended = new Promise<SenderEnd>((resolve) => {
      this.#end = resolve
    }).finally(() => {
      leave()
      this.#closing.abort()
    })
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
      const text = await this.#request('GET', pollMillisecondsMax)
      if (text === undefined) return
      const response = parse(text)
      if (!response) return this.#end('unreachable')
      for (const userId of response.present) this.#attempt.control.present(userId)
      for (const command of response.commands) this.#attempt.onCommand(command)
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
      const body = JSON.stringify({ frame: newFrame, tabs: newTabs, control: newControl })
      await this.#request('POST', requestMillisecondsMax, body)
      if (newFrame) this.#attempt.delivered()
    }
    this.#isSending = false
  }

  async #request(method: string, millisecondsMax: number, body?: string): Promise<string | undefined> {
    const { address, id } = this.#view
    const { attempt } = this.#attempt.watched
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(millisecondsMax)])
    try {
      const response = await fetch(`${address}/live-views/${id}/attempts/${attempt}`, {
        method,
        headers: this.#headers,
        signal,
        redirect: 'error',
        ...(body !== undefined && { body }),
      })
      // Read to the end, so that the connection is used again.
      const text = await response.text()
      if (response.ok) return text
      this.#end([401, 404, 410].includes(response.status) ? 'refused' : 'unreachable')
    } catch {
      this.#end('unreachable')
    }
    this.#closing.abort()
    return undefined
  }
}

/** Commands, and the users whose pages are open; `undefined` if another server has responded. */
function parse(text: string): { commands: LiveCommand[]; present: string[] } | undefined {
  try {
    const { commands, present } = Object(JSON.parse(text))
    return Array.isArray(commands) && Array.isArray(present) ? { commands, present } : undefined
  } catch {
    return undefined
  }
}
