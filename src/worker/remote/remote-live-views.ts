/**
 * The live view of a worker that reaches the service over HTTP: it asks the service who watches while a browser is open, and
 * sends frames to the service, which passes them on.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { components } from '../../../generated/execution.v1/types.ts'
import type {
  ConnectionEnd,
  LiveViewConnection,
  ShownBrowser,
  ViewerCommands,
} from '../../domain/run-api/live-view-connection.ts'
import { type LiveCommand, parseInput, type WatchedAttempt } from '../../domain/run-api/live-views.ts'
import type { AttemptLiveView } from '../live-view/attempt-live-view.ts'
import { LiveViewSenders, type LiveViewSource, type WatchingView } from '../live-view/live-view-senders.ts'
import type { WorkerCalls } from './worker-calls.ts'

type Schemas = components['schemas']

type Client = Pick<WorkerCalls, 'getLiveViews' | 'updateLiveView'>

/** For how long the service holds a request for views open. */
const pollSeconds = 30
/** After a request for views that failed. */
const pauseMilliseconds = 1000
/** As many as a request may name. */
const exceptMax = 20
/** From one frame to the next for each connection, so that all frames are a quarter of the usual rate limit of a key. */
const frameMillisecondsMin = 40
/** From one request for commands to the next. */
const commandMillisecondsMin = 50

export class RemoteLiveViews implements LiveViewSource {
  readonly #client: Client
  readonly #senders: LiveViewSenders
  readonly #polls = new Map<AttemptLiveView, AbortController>()
  /** By attempt, those that the service has listed. */
  readonly #views = new Map<AttemptLiveView, WatchingView[]>()
  readonly #listeners = new Set<() => void>()

  constructor(client: Client, log: Logger) {
    this.#client = client
    this.#senders = new LiveViewSenders(this, log)
  }

  start(): void {
    this.#senders.start()
  }

  stop(): void {
    for (const poll of this.#polls.values()) poll.abort()
    this.#senders.stop()
  }

  /** The attempt can be watched until `remove`. */
  add(attempt: AttemptLiveView): void {
    const poll = new AbortController()
    this.#polls.set(attempt, poll)
    this.#views.set(attempt, [])
    this.#senders.add(attempt)
    void this.#poll(attempt, poll.signal)
  }

  remove(attempt: AttemptLiveView): void {
    this.#polls.get(attempt)?.abort()
    this.#polls.delete(attempt)
    this.#views.delete(attempt)
    this.#senders.remove(attempt)
  }

  async list(): Promise<WatchingView[]> {
    return [...this.#views.values()].flat()
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async #poll(attempt: AttemptLiveView, signal: AbortSignal): Promise<void> {
    const { runId, attempt: number } = attempt.watched
    const views = this.#views.get(attempt) ?? []
    while (!signal.aborted) {
      const known = views.slice(-exceptMax).map(({ id }) => id)
      const query = { waitSeconds: pollSeconds, ...(known.length > 0 && { except: known }) }
      const params = { path: { runId, attempt: number }, query }
      const options = { signal, timeoutSeconds: 2 * pollSeconds, retries: 0 }
      const sentAt = performance.now()
      const { data, error } = await this.#client.getLiveViews({ params, ...options })
      if (signal.aborted) return
      if (error) {
        if (isFinal(error.status)) return
        await pause((error.retryAfterSeconds ?? 0) * 1000 + pauseMilliseconds, signal)
        continue
      }
      for (const { id } of data.liveViews) views.push({ id, runId, connect: (watched) => this.#connect(id, watched) })
      if (data.liveViews.length > 0) for (const listener of this.#listeners) listener()
      // A process that stops answers at once.
      else await pause(sentAt + pauseMilliseconds - performance.now(), signal)
    }
  }

  #connect(viewId: string, { runId, attempt }: WatchedAttempt): LiveViewConnection {
    const frameMilliseconds = () => frameMillisecondsMin * this.#senders.size
    return new ServiceConnection(this.#client, { runId, attempt, viewId }, frameMilliseconds)
  }
}

/** The attempt, its run or the key is gone, or the service does not know the operation. */
function isFinal(status: number): boolean {
  return [401, 403, 404, 409].includes(status)
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await delay(milliseconds, undefined, { signal }).catch(() => {})
}

// Shows one attempt to one dashboard process, by way of the service.

interface ViewPath extends WatchedAttempt {
  viewId: string
}

class ServiceConnection implements LiveViewConnection {
  readonly #client: Client
  readonly #path: ViewPath
  readonly #frameMilliseconds: () => number
  #receivedAt = Number.NEGATIVE_INFINITY

  constructor(client: Client, path: ViewPath, frameMilliseconds: () => number) {
    this.#client = client
    this.#path = path
    this.#frameMilliseconds = frameMilliseconds
  }

  async receive(signal: AbortSignal): Promise<ViewerCommands | ConnectionEnd> {
    await pause(this.#receivedAt + commandMillisecondsMin - performance.now(), signal)
    const response = await this.#update({ waitForCommands: true }, signal)
    this.#receivedAt = performance.now()
    if (typeof response === 'string') return response
    return { commands: response.commands.flatMap(toCommand), present: response.present }
  }

  async send({ frame, tabs, control }: ShownBrowser, signal: AbortSignal): Promise<'sent' | ConnectionEnd> {
    const startedAt = performance.now()
    const body = { ...(frame && { frame }), ...(tabs && { tabs: [...tabs] }), ...(control && { control }) }
    const response = await this.#update(body, signal)
    if (typeof response === 'string') return response
    if (frame) await pause(startedAt + this.#frameMilliseconds() - performance.now(), signal)
    return 'sent'
  }

  async #update(
    body: Schemas['LiveViewUpdate'],
    signal: AbortSignal,
  ): Promise<Schemas['LiveViewState'] | ConnectionEnd> {
    const params = { path: { ...this.#path } }
    const { data, error } = await this.#client.updateLiveView({ params, body, signal, retries: 0 })
    if (error) return isFinal(error.status) ? 'refused' : 'unreachable'
    if (data.state === 'open') return data
    return data.state === 'ended' ? 'refused' : 'unreachable'
  }
}

function toCommand({ type, by, inputs = [] }: Schemas['LiveViewCommand']): LiveCommand[] {
  if (type !== 'input') return [{ type, by }]
  return [{ type, by, inputs: inputs.map(parseInput).filter((input) => input !== undefined) }]
}
