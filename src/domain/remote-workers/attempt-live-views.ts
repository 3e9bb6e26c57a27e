/**
 * The live view of browsers at workers that have no database: they learn here that people watch, and their frames go to the
 * dashboard process of each view, which returns what its viewers do.
 */
import type { Store } from '../../storage/store.ts'
import type { Users } from '../accounts/users.ts'
import { DashboardConnection, type ShownBrowser, type ViewerCommands } from '../run-api/live-view-connection.ts'
import type { Controller, LiveViews } from '../run-api/live-views.ts'
import type { LeasedAttempts, NotLeased } from './leased-attempts.ts'
import { type LeaseName, WakeUp, type WorkerKey } from './remote-workers.ts'

interface Dependencies {
  store: Store
  liveViews: LiveViews
  users: Users
  leasedAttempts: LeasedAttempts
}

export interface LiveViewUpdate extends ShownBrowser {
  waitForCommands?: boolean | undefined
}

/** `ended`: the last viewer has left. `unreachable`: the dashboard does not respond to this process. */
export interface LiveViewState extends ViewerCommands {
  kind: 'liveView'
  state: 'open' | 'ended' | 'unreachable'
}

/** Dashboard processes that show the same attempt. */
const viewsMax = 8

export class AttemptLiveViews {
  readonly #dependencies: Dependencies
  readonly #stopping = new AbortController()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** The open views of the attempt, except those that the worker knows. Waits for the first of them. */
  async wait(
    key: WorkerKey,
    name: LeaseName,
    { except, waitSeconds }: { except: readonly string[]; waitSeconds: number },
    signal: AbortSignal,
  ): Promise<NotLeased | { kind: 'liveViews'; ids: string[] }> {
    const known = new Set(except.map((id) => id.toLowerCase()))
    const ending = AbortSignal.any([signal, this.#stopping.signal])
    const { store, liveViews, leasedAttempts } = this.#dependencies
    const wakeUp = new WakeUp(store, ['liveViews'], ending)
    const end = performance.now() + waitSeconds * 1000
    try {
      for (;;) {
        wakeUp.reset()
        const found = await leasedAttempts.findLease(key, name)
        if ('kind' in found) return found
        const open = (await liveViews.list()).filter(({ id, runId }) => runId === found.row.id && !known.has(id))
        const ids = open.slice(0, viewsMax).map(({ id }) => id)
        if (ids.length > 0 || ending.aborted || !(await wakeUp.within(end - performance.now())))
          return { kind: 'liveViews', ids }
      }
    } finally {
      wakeUp.close()
    }
  }

  /** Passes on what the browser shows, and waits for commands if the worker asks for them. */
  async update(
    key: WorkerKey,
    name: LeaseName,
    viewId: string,
    { waitForCommands = false, ...shown }: LiveViewUpdate,
    signal: AbortSignal,
  ): Promise<NotLeased | LiveViewState> {
    const { liveViews, leasedAttempts } = this.#dependencies
    const found = await leasedAttempts.findLease(key, name)
    if ('kind' in found) return found
    const view = await liveViews.find(viewId.toLowerCase(), found.row.id)
    if (!view) return stateOf('refused')
    const masked = await this.#mask(key, name, await this.#withStoredName(found.row.account_id, shown))
    if ('kind' in masked) return masked
    const ending = AbortSignal.any([signal, this.#stopping.signal])
    const connection = new DashboardConnection(liveViews, view, { runId: found.row.id, attempt: name.attempt })
    const hasShown = Object.values(masked.shown).some((each) => each !== undefined)
    if (hasShown) {
      const sent = await connection.send(masked.shown, ending)
      if (sent !== 'sent') return stateOf(sent)
    }
    return waitForCommands ? stateOf(await connection.receive(ending)) : stateOf({ commands: [], present: [] })
  }

  /** Shows the user in control by the stored name, since the page believes it. A user of another account has no control. */
  async #withStoredName(accountId: string, shown: ShownBrowser): Promise<ShownBrowser> {
    const { control } = shown
    if (!control?.by) return shown
    const user = await this.#dependencies.users.get(control.by.id)
    const by: Controller | null = user?.accountId === accountId ? { id: user.id, name: user.name } : null
    return { ...shown, control: { ...control, by } }
  }

  /** Masks secrets in addresses of tabs, and in what the workflow asks for. Frames show what the pages show. */
  async #mask(key: WorkerKey, name: LeaseName, shown: ShownBrowser): Promise<NotLeased | { shown: ShownBrowser }> {
    const { tabs, control } = shown
    if (!tabs && !control?.message) return { shown }
    const found = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in found) return found
    const { redact } = found
    return {
      shown: {
        ...shown,
        ...(tabs && { tabs: redact(tabs) }),
        ...(control && { control: { ...control, message: redact(control.message) } }),
      },
    }
  }

  /** Ends requests that wait, since the process stops. */
  stopWaiting(): void {
    this.#stopping.abort()
  }
}

function stateOf(result: ViewerCommands | 'refused' | 'unreachable'): LiveViewState {
  if (typeof result !== 'string') return { kind: 'liveView', state: 'open', ...result }
  return { kind: 'liveView', state: result === 'refused' ? 'ended' : 'unreachable', commands: [], present: [] }
}
