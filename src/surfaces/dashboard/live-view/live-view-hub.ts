/**
 * What the browsers of watched runs show, in this process: workers send it here, and each viewer gets the latest. Nothing
 * is queued or stored: a run has one frame in memory, and viewers that are slow miss frames.
 */
import type { Logger } from 'pino'
import type { Actor } from '../../../domain/audit-log/audit-log.ts'
import {
  type Control,
  extensionMilliseconds,
  type LiveCommand,
  type LiveView,
  type LiveViews,
} from '../../../domain/run-api/live-views.ts'
import type { Run } from '../../../domain/runs/run.ts'

/** Watched runs of an account in this process, each with a frame of at most 1.5 MB in memory. */
export const watchedRunsMax = 20
export const viewersPerRunMax = 20
/** Commands of a run that wait for its worker. */
const commandsMax = 100
/** A page that reconnects within this time makes no other entry in the audit log. */
const sameWatchMilliseconds = 10 * 60_000

/** What a worker sends. */
export interface Received {
  frame?: { data: string; width: number; height: number } | undefined
  tabs?: readonly { url: string; isShown: boolean }[] | undefined
  control?: Control | undefined
}

/** For a worker: what to do, and the users whose pages are open. */
export interface ForWorker {
  commands: LiveCommand[]
  present: string[]
}

interface WatchedRun {
  view: LiveView
  /** Open pages, with their users. */
  viewers: Map<Viewer, string>
  timer: NodeJS.Timeout
  /** The attempt that a worker has connected for last, and its token. */
  attempt: number
  token: string
  /** Commands that no worker has been sent. */
  commands: LiveCommand[]
  /** Ends the request by which a worker waits. */
  release: (() => void) | undefined
  isConnected: boolean
  latest: Received
}

export class LiveViewHub {
  readonly #liveViews: LiveViews
  readonly #address: () => string
  readonly #log: Logger
  readonly #byRun = new Map<string, { accountId: string; opening: Promise<WatchedRun> }>()
  readonly #byView = new Map<string, WatchedRun>()
  /** When the audit log has got a user's entry for a run. */
  readonly #recorded = new Map<string, number>()

  /** @param address the URL by which workers reach this process. */
  constructor(liveViews: LiveViews, address: () => string, log: Logger) {
    this.#liveViews = liveViews
    this.#address = address
    this.#log = log
  }

  /**
   * Adds a viewer until `leave`. Returns `undefined` if the account has too many.
   *
   * @param run has an attempt with a browser.
   */
  async watch(run: Run, by: Actor): Promise<Viewer | undefined> {
    const ofAccount = [...this.#byRun.values()].filter(({ accountId }) => accountId === run.accountId)
    if (!this.#byRun.has(run.id) && ofAccount.length >= watchedRunsMax) return undefined
    const watched = await this.#watched(run)
    // The last of its viewers has left meanwhile.
    if (!this.#byView.has(watched.view.id)) return this.watch(run, by)
    if (watched.viewers.size >= viewersPerRunMax) return undefined
    const viewer = new Viewer()
    // Before anything is awaited: the last viewer that leaves closes the view.
    watched.viewers.set(viewer, by.id ?? '')
    await this.#record(run, by).catch((error) => {
      this.leave(run.id, viewer)
      throw error
    })
    viewer.show({ ...(watched.isConnected && watched.latest), isConnected: watched.isConnected })
    return viewer
  }

  /** Ends the view when its last viewer leaves: the browser then takes no more pictures. */
  leave(runId: string, viewer: Viewer): void {
    const watched = [...this.#byView.values()].find(({ view }) => view.runId === runId)
    if (!watched?.viewers.delete(viewer) || watched.viewers.size > 0) return
    clearInterval(watched.timer)
    this.#byRun.delete(runId)
    this.#byView.delete(watched.view.id)
    watched.release?.()
    this.#liveViews.close(watched.view.id).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'deleting a live view failed; it expires')
    })
  }

  /** Whether a worker with this token may send for the view; `undefined` if the last viewer has left. */
  admits(viewId: string, attempt: number, token: string): boolean | undefined {
    const watched = this.#byView.get(viewId)
    if (!watched) return undefined
    if (watched.attempt === attempt) return watched.token === token
    const { runId } = watched.view
    // A worker that has lost its lease must not replace a later attempt.
    if (attempt < watched.attempt || !this.#liveViews.isToken(token, viewId, { runId, attempt })) return false
    Object.assign(watched, { attempt, token, latest: {} })
    return true
  }

  receive(viewId: string, { frame, tabs, control }: Received): void {
    const watched = this.#byView.get(viewId)
    if (!watched) return
    Object.assign(watched.latest, frame && { frame }, tabs && { tabs }, control && { control })
    this.#show(watched, { frame, tabs, control })
  }

  /**
   * Resolves with commands for the worker, with none when the signal is aborted, or with `undefined` when the last viewer
   * has left. Call it while the worker is connected.
   */
  async nextCommands(viewId: string, signal: AbortSignal): Promise<ForWorker | undefined> {
    const watched = this.#byView.get(viewId)
    if (!watched) return undefined
    this.#connect(watched, true)
    if (watched.commands.length === 0) {
      await new Promise<void>((resolve) => {
        watched.release = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
        if (signal.aborted) resolve()
      })
    }
    if (!this.#byView.has(viewId)) return undefined
    // Kept for the worker's next connection.
    const commands = signal.aborted ? [] : watched.commands.splice(0)
    return { commands, present: [...new Set(watched.viewers.values())] }
  }

  /** Who controls the browser of the run, if a worker is connected to this process. */
  async control(runId: string): Promise<Control | undefined> {
    const watched = await this.#byRun.get(runId)?.opening
    return watched?.isConnected ? watched.latest.control : undefined
  }

  /** Sends a command to the worker of a run that this process watches. Input is dropped if the worker takes none. */
  async command(runId: string, command: LiveCommand): Promise<void> {
    const watched = await this.#byRun.get(runId)?.opening
    if (!watched || (command.type === 'input' && watched.commands.length >= commandsMax)) return
    watched.commands.push(command)
    watched.release?.()
  }

  /** The connection to the worker has ended. */
  disconnect(viewId: string, attempt: number): void {
    const watched = this.#byView.get(viewId)
    if (watched?.attempt === attempt) this.#connect(watched, false)
  }

  #connect(watched: WatchedRun, isConnected: boolean): void {
    if (watched.isConnected === isConnected) return
    watched.isConnected = isConnected
    if (!isConnected) watched.commands = []
    // A worker that was only slow sends nothing twice.
    this.#show(watched, { ...(isConnected && watched.latest), isConnected })
  }

  #show({ viewers }: WatchedRun, shown: Parameters<Viewer['show']>[0]): void {
    for (const viewer of viewers.keys()) viewer.show(shown)
  }

  #watched({ id, accountId }: Run): Promise<WatchedRun> {
    const existing = this.#byRun.get(id)
    if (existing) return existing.opening
    const opening = this.#open(id)
    this.#byRun.set(id, { accountId, opening })
    opening.catch(() => this.#byRun.delete(id))
    return opening
  }

  async #open(runId: string): Promise<WatchedRun> {
    const view = await this.#liveViews.open(runId, this.#address())
    const extend = () => {
      this.#liveViews.extend(view).catch((error: unknown) => {
        this.#log.warn({ err: error }, 'extending a live view failed; retrying')
      })
    }
    const timer = setInterval(extend, extensionMilliseconds).unref()
    const viewers = new Map<Viewer, string>()
    const state = { attempt: 0, token: '', commands: [], release: undefined, isConnected: false, latest: {} }
    const watched: WatchedRun = { view, viewers, timer, ...state }
    this.#byView.set(view.id, watched)
    return watched
  }

  async #record({ id, accountId, workflowId }: Run, by: Actor): Promise<void> {
    const key = `${by.id}/${id}`
    const now = Date.now()
    const last = this.#recorded.get(key)
    this.#recorded.delete(key)
    this.#recorded.set(key, now)
    for (const [each, at] of this.#recorded) if (now - at > sameWatchMilliseconds) this.#recorded.delete(each)
    if (last !== undefined && now - last < sameWatchMilliseconds) return
    await this.#liveViews.record('run.watched', accountId, by, { id, workflowId })
  }
}

// One open page that watches a run. It keeps the latest of what it has not been sent, so that a slow page misses frames.

export interface Shown extends Received {
  /** Whether a worker is connected that runs the browser. */
  isConnected?: boolean
}

export class Viewer {
  #pending: Shown = {}
  #wake: () => void = () => {}

  show({ frame, tabs, control, isConnected }: Shown): void {
    Object.assign(this.#pending, frame && { frame }, tabs && { tabs }, control && { control })
    Object.assign(this.#pending, isConnected !== undefined && { isConnected })
    this.#wake()
  }

  /** Resolves with what is new, or with nothing after `milliseconds` or when the signal is aborted. */
  async next(milliseconds: number, signal: AbortSignal): Promise<Shown> {
    if (Object.keys(this.#pending).length === 0 && !signal.aborted) await this.#untilNew(milliseconds, signal)
    const pending = this.#pending
    this.#pending = {}
    return pending
  }

  async #untilNew(milliseconds: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, milliseconds)
      function done(): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#wake = done
      signal.addEventListener('abort', done, { once: true })
    })
    this.#wake = () => {}
  }
}
