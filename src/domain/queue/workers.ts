/** Workers and their heartbeats. */
import { type Store, statement, type Transaction } from '../../storage/store.ts'

export interface LiveWorker {
  id: string
  host: string
  /** How many attempts it executes at the same time. */
  slots: number
  startedAt: number
}

const upsertWorker = statement<
  object,
  [id: string, host: string, slots: number, startedAt: number, aliveUntil: number, seenAt: number]
>(`INSERT INTO workers (id, host, slots, started_at, alive_until, seen_at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, seen_at = excluded.seen_at`)
const deleteWorker = statement<object, [id: string]>('DELETE FROM workers WHERE id = ?')
const findLiveWorkers = statement<
  { id: string; host: string; slots: number; started_at: number },
  [now: number, accountId: string]
>(
  `SELECT id, host, slots, started_at FROM workers WHERE alive_until > ? AND (account_id IS NULL OR account_id = ?)
    ORDER BY started_at, id`,
)
const deleteDeadWorkers = statement<object, [deadSince: number]>('DELETE FROM workers WHERE alive_until <= ?')

/** A dead worker is kept for a day, so that an operator who finds its id in the log can look up its host. */
export const deadWorkerMilliseconds = 24 * 60 * 60 * 1000

export class Workers {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Registers the worker or renews its heartbeat, which expires after `aliveSeconds`. */
  async announce({ id, host, slots, startedAt }: LiveWorker, aliveSeconds: number): Promise<void> {
    const at = this.#now()
    const aliveUntil = at + aliveSeconds * 1000
    const announce = (tx: Transaction) => tx.all(upsertWorker, [id, host, slots, startedAt, aliveUntil, at])
    await this.#store.write(announce, { concurrent: true, oneStatement: true })
  }

  async leave(id: string): Promise<void> {
    await this.#store.write((tx) => tx.all(deleteWorker, [id]))
  }

  /** Those of the service, and the account's own. */
  async alive(accountId?: string): Promise<LiveWorker[]> {
    return listLiveWorkers(this.#store.read, this.#now(), accountId)
  }
}

/** Live workers of the service, and of one account, in the order in which they started. */
export async function listLiveWorkers(tx: Transaction, now: number, accountId = ''): Promise<LiveWorker[]> {
  const rows = await tx.all(findLiveWorkers, [now, accountId])
  return rows.map(({ started_at, ...worker }) => ({ ...worker, startedAt: started_at }))
}

export async function removeDeadWorkers(tx: Transaction, now: number): Promise<void> {
  await tx.all(deleteDeadWorkers, [now - deadWorkerMilliseconds])
}
