/** Answers the requests of dashboards to watch this worker's attempts, each with a connection. */
import type { Logger } from 'pino'
import type { LiveView, LiveViews } from '../../domain/runs/live-views.ts'
import type { AttemptLiveView } from './attempt-live-view.ts'
import { LiveViewSender } from './live-view-sender.ts'

/** Dashboard processes that are sent the frames of one attempt. */
const sendersPerAttemptMax = 8

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
      // An unreachable dashboard is tried again at the next notification.
      if (how === 'refused') this.#refused.add(view.id)
    })
  }
}
