/** Sends one attempt's frames to one dashboard process by HTTP: one request in flight, the latest frame wins. */

import type { Control, LiveCommand } from '../../domain/runs/live-control.ts'
import type { LiveView } from '../../domain/runs/live-views.ts'
import type { AttemptLiveView, Frame, Tabs } from './attempt-live-view.ts'

/** A dashboard that does not respond for this long gets no more. */
const requestMillisecondsMax = 10_000
/** Longer than dashboards hold a request for commands. */
const pollMillisecondsMax = 30_000

/** `refused`: the last viewer has left. `unreachable`: the dashboard does not respond. `closed`: the attempt has ended. */
export type SenderEnd = 'refused' | 'unreachable' | 'closed'

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
