/** A connection to the dashboard process of a live view, by HTTP: of a worker, or of the service for one that has no database. */
import type { Control, LiveCommand, LiveView, LiveViews, WatchedAttempt } from './live-views.ts'

/** What the browser of an attempt shows. A member that is left out has not changed. */
export interface ShownBrowser {
  frame?: { data: string; width: number; height: number } | undefined
  tabs?: readonly { url: string; isShown: boolean }[] | undefined
  control?: Control | undefined
}

/** Commands of viewers, and the users whose pages are open. */
export interface ViewerCommands {
  commands: LiveCommand[]
  present: string[]
}

/** `refused`: the last viewer has left. `unreachable`: the dashboard does not respond. */
export type ConnectionEnd = 'refused' | 'unreachable'

export interface LiveViewConnection {
  /** Waits for commands. Resolves without any after some time. */
  receive(signal: AbortSignal): Promise<ViewerCommands | ConnectionEnd>
  send(shown: ShownBrowser, signal: AbortSignal): Promise<'sent' | ConnectionEnd>
}

/** A dashboard that does not respond for this long gets no more. */
const requestMillisecondsMax = 10_000
/** Longer than dashboards keep a request for commands waiting. */
const pollMillisecondsMax = 30_000

export class DashboardConnection implements LiveViewConnection {
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor(liveViews: Pick<LiveViews, 'token'>, { address, id }: LiveView, attempt: WatchedAttempt) {
    this.#url = `${address}/live-views/${id}/attempts/${attempt.attempt}`
    const token = liveViews.token(id, attempt)
    this.#headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  }

  async receive(signal: AbortSignal): Promise<ViewerCommands | ConnectionEnd> {
    const response = await this.#request('GET', pollMillisecondsMax, signal)
    return response.kind === 'ended' ? response.end : (parse(response.text) ?? 'unreachable')
  }

  async send(shown: ShownBrowser, signal: AbortSignal): Promise<'sent' | ConnectionEnd> {
    const response = await this.#request('POST', requestMillisecondsMax, signal, JSON.stringify(shown))
    return response.kind === 'ended' ? response.end : 'sent'
  }

  async #request(method: string, millisecondsMax: number, closing: AbortSignal, body?: string) {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(millisecondsMax)])
    try {
      const init = { method, headers: this.#headers, signal, redirect: 'error', ...(body !== undefined && { body }) }
      const response = await fetch(this.#url, init as RequestInit)
      // Read to the end, so that the connection is used again.
      const text = await response.text()
      if (response.ok) return { kind: 'response', text } as const
      return ended([401, 404, 410].includes(response.status) ? 'refused' : 'unreachable')
    } catch {
      return ended('unreachable')
    }
  }
}

function ended(end: ConnectionEnd) {
  return { kind: 'ended', end } as const
}

/** `undefined` if another server has responded. */
function parse(text: string): ViewerCommands | undefined {
  try {
    const { commands, present } = Object(JSON.parse(text))
    return Array.isArray(commands) && Array.isArray(present) ? { commands, present } : undefined
  } catch {
    return undefined
  }
}
