/** The workers that live now, as they say it themselves. */
import type { Store, Transaction } from '../../storage/store.ts'

export interface LiveWorker {
  id: string
  /** The machine's name. */
  host: string
  /** How many attempts it executes at the same time. */
  slots: number
  startedAt: number
}

const announceSql = `INSERT INTO workers (id, host, slots, started_at, alive_until) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`

const leaveSql = 'DELETE FROM workers WHERE id = ?'

const aliveSql = 'SELECT id, host, slots, started_at FROM workers WHERE alive_until > ? ORDER BY started_at, id'

const anyLongDeadSql = 'SELECT 1 AS one FROM workers WHERE alive_until <= ? LIMIT 1'
const forgetSql = 'DELETE FROM workers WHERE alive_until <= ?'

/** How long a dead one is kept: whoever reads its id in the log may want to know its machine. */
const rememberedMilliseconds = 24 * 60 * 60 * 1000

export class Workers {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Says that the worker lives; it is taken for dead when it has not said so again within `aliveSeconds`. */
  async announce({ id, host, slots, startedAt }: LiveWorker, aliveSeconds: number): Promise<void> {
    const until = this.#now() + aliveSeconds * 1000
    await this.#store.write((tx) => tx.all(announceSql, [id, host, slots, startedAt, until]), {
      concurrent: true,
    })
  }

  /** Says that the worker has stopped. */
  async leave(id: string): Promise<void> {
    await this.#store.write((tx) => tx.all(leaveSql, [id]))
  }

  /** Those that live now, in the order in which they started. */
  async alive(): Promise<LiveWorker[]> {
    type Row = { id: string; host: string; slots: number; started_at: number }
    const rows = await this.#store.read.all<Row>(aliveSql, [this.#now()])
    return rows.map(({ started_at, ...same }) => ({ ...same, startedAt: started_at }))
  }
}

export async function anyLongDeadWorkers(tx: Transaction, now: number): Promise<boolean> {
  return (await tx.all(anyLongDeadSql, [now - rememberedMilliseconds])).length > 0
}

export async function forgetLongDeadWorkers(tx: Transaction, now: number): Promise<void> {
  await tx.all(forgetSql, [now - rememberedMilliseconds])
}
