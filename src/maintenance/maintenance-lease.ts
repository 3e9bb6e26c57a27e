/**
 * The lease on a store's maintenance, which one process has at a time. It saves work, and is not what makes maintenance
 * safe: while a process that was paused does not know that it has lost the lease, two of them may work.
 */
import { hostname } from 'node:os'
import { type Store, statement } from '../storage/store.ts'
import type { LeasesTable } from '../storage/tables/tables.ts'

/** A process that dies with the lease is replaced within this time, and a second for timers. */
export const leaseMilliseconds = 10_000
/** Lets one of the processes that wait for the expiry take the lease before the others try to. */
const spreadMilliseconds = 500
/** Less than half of the lease, so that one failure does not lose it. */
const renewalMilliseconds = 4000

const name = 'maintenance'

type State = Pick<LeasesTable, 'precedence' | 'fence' | 'expires_at'>

const findLease = statement<State, [name: string]>('SELECT precedence, fence, expires_at FROM leases WHERE name = ?')

/** Changes nothing if another process has taken or extended the lease since it was read. */
const takeLease = statement<
  { fence: number },
  [name: string, owner: string, precedence: number, expiresAt: number, fence: number, knownExpiry: number]
>(`INSERT INTO leases (name, owner, precedence, fence, expires_at) VALUES (?, ?, ?, 1, ?)
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, precedence = excluded.precedence, fence = leases.fence + 1,
    expires_at = excluded.expires_at WHERE leases.fence = ? AND leases.expires_at = ? RETURNING fence`)

const extendLease = statement<{ fence: number }, [expiresAt: number, name: string, fence: number]>(
  'UPDATE leases SET expires_at = ? WHERE name = ? AND fence = ? RETURNING fence',
)

/** A loss of the latest extension in a power cut ends every process that relied on it. */
const options = { concurrent: true, oneStatement: true, durableLater: true } as const

export class MaintenanceLease {
  readonly #store: Store
  readonly #precedence: number
  readonly #now: () => number
  readonly #monotonicNow: () => number
  #fence: number | undefined
  #renewedAt = 0
  /** The lease of another process as it was read, and when it was first read so. */
  #other: (State & { since: number }) | undefined

  /**
   * @param precedence takes the lease from a process of a lower one at once.
   * @param monotonicNow a clock that cannot be set. It decides on the expiry too, since `now` may be set back.
   */
  constructor(store: Store, precedence: number, now: () => number, monotonicNow = () => performance.now()) {
    this.#store = store
    this.#precedence = precedence
    this.#now = now
    this.#monotonicNow = monotonicNow
  }

  /** The fence of this process's lease; `undefined` if another process has the lease. */
  get fence(): number | undefined {
    return this.#fence
  }

  /** Extends the lease, or takes it if it is free; returns the milliseconds until the next call is useful. */
  async check(): Promise<number> {
    if (this.#fence !== undefined) await this.#extend(this.#fence)
    if (this.#fence === undefined) {
      const left = await this.#take()
      if (left > 0) return left + Math.random() * spreadMilliseconds
    }
    return renewalMilliseconds
  }

  /** Lets another process take the lease at once. */
  async release(): Promise<void> {
    const fence = this.#fence
    this.#fence = undefined
    if (fence === undefined) return
    await this.#store.write((tx) => tx.all(extendLease, [0, name, fence]), options)
    this.#store.notify('maintenance')
  }

  async #extend(fence: number): Promise<void> {
    const at = this.#monotonicNow()
    if (at - this.#renewedAt < renewalMilliseconds) return
    const values = [this.#now() + leaseMilliseconds, name, fence] as const
    const rows = await this.#store.write((tx) => tx.all(extendLease, [...values]), options)
    if (rows.length > 0) this.#renewedAt = at
    else this.#fence = undefined
  }

  /** Returns 0 if this process has the lease now, and otherwise the time until it may be free. */
  async #take(): Promise<number> {
    const [row] = await this.#store.read.all(findLease, [name])
    const at = this.#monotonicNow()
    const other = this.#other
    const isSame = other && row && other.fence === row.fence && other.expires_at === row.expires_at
    const state = { ...(row ?? { precedence: 0, fence: 0, expires_at: 0 }), since: isSame ? other.since : at }
    this.#other = state
    const left = Math.min(state.expires_at - this.#now(), state.since + leaseMilliseconds - at)
    if (left > 0 && state.precedence >= this.#precedence) return left
    const owner = `${hostname()} ${process.pid}`
    const values = [name, owner, this.#precedence, this.#now() + leaseMilliseconds] as const
    const known = [state.fence, state.expires_at] as const
    const [taken] = await this.#store.write((tx) => tx.all(takeLease, [...values, ...known]), options)
    if (!taken) return leaseMilliseconds
    this.#fence = taken.fence
    this.#renewedAt = at
    return 0
  }
}
