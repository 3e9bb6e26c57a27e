/**
 * Requests of dashboard processes for pictures of a run's browser. Workers read the requests and connect to the dashboard
 * process, with a token that both derive from the installation's key. Frames are never stored.
 */
import { timingSafeEqual } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import type { Encryption } from '../../storage/encryption.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import { type Action, type Actor, recordAudit } from '../audit-log/audit-log.ts'

export interface LiveView {
  id: string
  runId: string
  /** The URL by which workers reach the dashboard process. */
  address: string
}

export interface WatchedAttempt {
  runId: string
  attempt: number
}

/** Another process may have deleted a row that expired while the store was unavailable. */
const keepView = statement<object, [id: string, runId: string, address: string, expiresAt: number]>(
  `INSERT INTO live_views (id, run_id, address, expires_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`,
)
const deleteView = statement<object, [id: string, now: number]>(
  'DELETE FROM live_views WHERE id = ? OR expires_at <= ?',
)
const selectViews = statement<{ id: string; run_id: string; address: string }, [now: number]>(
  'SELECT id, run_id, address FROM live_views WHERE expires_at > ?',
)

const selectView = statement<{ address: string }, [id: string, runId: string, now: number]>(
  'SELECT address FROM live_views WHERE id = ? AND run_id = ? AND expires_at > ?',
)

/** How long workers answer a request that its process does not extend, because it was killed. */
const lifetimeMilliseconds = 60_000
export const extensionMilliseconds = 20_000

const purpose = 'live view'

export class LiveViews {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #now: () => number

  constructor(store: Store, encryption: Encryption, now: () => number = Date.now) {
    this.#store = store
    this.#encryption = encryption
    this.#now = now
  }

  /** Asks the worker that runs the run, now or later, to connect to `address`. */
  async open(runId: string, address: string): Promise<LiveView> {
    const view = { id: uuid(), runId, address }
    await this.extend(view)
    this.#store.notify('liveViews')
    return view
  }

  /** Call it every `extensionMilliseconds` while someone watches. */
  async extend({ id, runId, address }: LiveView): Promise<void> {
    await this.#store.write((tx) => tx.all(keepView, [id, runId, address, this.#now() + lifetimeMilliseconds]))
  }

  /** Also deletes requests of processes that were killed. */
  async close(id: string): Promise<void> {
    await this.#store.write((tx) => tx.all(deleteView, [id, this.#now()]))
  }

  /** All requests of the installation. */
  async list(): Promise<LiveView[]> {
    const rows = await this.#store.read.all(selectViews, [this.#now()])
    return rows.map(({ id, run_id: runId, address }) => ({ id, runId, address }))
  }

  async find(id: string, runId: string): Promise<LiveView | undefined> {
    const [row] = await this.#store.read.all(selectView, [id, runId, this.#now()])
    return row && { id, runId, address: row.address }
  }

  /** Calls `listener` when there may be new requests. Returns a function that removes the listener. */
  listen(listener: () => void): () => void {
    return this.#store.listen('liveViews', listener)
  }

  /** Proves to the process of the view that the sender is a worker of the installation with this attempt. */
  token(viewId: string, attempt: WatchedAttempt): string {
    return this.#encryption.sign(purpose, bind(viewId, attempt)).toString('base64url')
  }

  isToken(token: string, viewId: string, attempt: WatchedAttempt): boolean {
    const given = Buffer.from(token, 'base64url')
    const valid = this.#encryption.signatures(purpose, bind(viewId, attempt))
    return valid.some((each) => each.length === given.length && timingSafeEqual(each, given))
  }

  /** Records what a user does with the browser of a run. */
  async record(action: Action, accountId: string, by: Actor, run: { id: string; workflowId: string }): Promise<void> {
    const subject = { id: run.id, name: run.workflowId }
    await this.#store.write((tx: Transaction) => recordAudit(tx, accountId, { action, by, subject }))
  }
}

function bind(viewId: string, { runId, attempt }: WatchedAttempt): string {
  return `${viewId}/${runId}/${attempt}`
}

// Taking over the browser of a run: who has control, what they send, and its limits.

/** A user of the dashboard. */
export interface Controller {
  id: string
  name: string
}

/**
 * `awaited`: the workflow waits for someone to take over. `pausing`: someone has asked, and the workflow has not reached a
 * step yet. `paused`: it waits until `by` returns control, and gets their input.
 */
export interface Control {
  phase: 'free' | 'awaited' | 'pausing' | 'paused'
  by: Controller | null
  /** What the workflow asks for. */
  message: string | null
}

/** Keys of the keyboard that are held: Alt 1, Ctrl 2, Meta 4, Shift 8, added. */
type Modifiers = number

/** Input for the shown page. Coordinates are in its CSS pixels. */
export type PageInput =
  | {
      type: 'mouse'
      event: 'mouseMoved' | 'mousePressed' | 'mouseReleased'
      x: number
      y: number
      button: 'none' | 'left' | 'middle' | 'right'
      clickCount: number
      modifiers: Modifiers
    }
  | { type: 'wheel'; x: number; y: number; deltaX: number; deltaY: number; modifiers: Modifiers }
  /** `text` is what the key writes, if anything. */
  | {
      type: 'key'
      event: 'keyDown' | 'keyUp'
      key: string
      code: string
      keyCode: number
      text: string
      modifiers: Modifiers
    }
  | { type: 'text'; text: string }
  /** Shows another tab, by its place in the list. */
  | { type: 'tab'; index: number }

export type LiveCommand =
  | { type: 'takeOver'; by: Controller }
  | { type: 'returnControl'; by: Controller }
  | { type: 'input'; by: Controller; inputs: readonly PageInput[] }

/** Time without the page of the user who has taken over, after which the workflow has control again. */
export const absenceMillisecondsMax = 2 * 60_000
/** Time of an attempt that does not count towards its time limit because it is paused. */
export const pausedMillisecondsMax = 30 * 60_000

const textLengthMax = 10_000
const coordinateMax = 100_000

const isNumber = (value: unknown): value is number => Number.isFinite(value) && Math.abs(Number(value)) <= coordinateMax
const isText = (value: unknown, lengthMax = 50) => typeof value === 'string' && value.length <= lengthMax
const isOneOf = (value: unknown, ...values: unknown[]) => values.includes(value)

/** Returns the input with its known members only; `undefined` if it is none. */
export function parseInput(value: unknown): PageInput | undefined {
  const { type, event, x, y, button, clickCount, deltaX, deltaY, key, code, keyCode, text, index, modifiers } =
    Object(value)
  const isAt = isNumber(x) && isNumber(y) && isNumber(modifiers)
  switch (type) {
    case 'mouse':
      return isAt &&
        isNumber(clickCount) &&
        isOneOf(event, 'mouseMoved', 'mousePressed', 'mouseReleased') &&
        isOneOf(button, 'none', 'left', 'middle', 'right')
        ? { type, event, x, y, button, clickCount, modifiers }
        : undefined
    case 'wheel':
      return isAt && isNumber(deltaX) && isNumber(deltaY) ? { type, x, y, deltaX, deltaY, modifiers } : undefined
    case 'key':
      return isNumber(modifiers) &&
        isNumber(keyCode) &&
        isOneOf(event, 'keyDown', 'keyUp') &&
        [key, code, text].every((each) => isText(each))
        ? { type, event, key, code, keyCode, text, modifiers }
        : undefined
    case 'text':
      return isText(text, textLengthMax) ? { type, text } : undefined
    case 'tab':
      return Number.isInteger(index) && index >= 0 ? { type, index } : undefined
    default:
      return undefined
  }
}
