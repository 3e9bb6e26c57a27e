/** Finds the runs with new events, whichever process has written them. */
import { inList } from '../../storage/statement-values.ts'
import { type Store, statement } from '../../storage/store.ts'

type EventId = { id: number; run_id: string }

const findLatestEvent = statement<{ latest: number }, []>('SELECT COALESCE(MAX(id), 0) AS latest FROM run_events')
const findNewEvents = statement<EventId, [afterId: number, limit: number]>(
  'SELECT id, run_id FROM run_events WHERE id > ? ORDER BY id LIMIT ?',
)

const eventsPerRead = 1000

/** No transaction of the service takes this long, so an event id still missing then was rolled back. */
const missingMillisecondsMax = 30_000
/** Bounds the query for missing ids. */
const missingMax = 1000

export class ChangedRuns {
  readonly #store: Pick<Store, 'read'>
  /** The id of the last event found. */
  #lastId = 0
  /** Lower event ids that have not been seen, and since when. */
  readonly #missing = new Map<number, number>()

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store
  }

  async latestId(): Promise<number> {
    const [row] = await this.#store.read.all(findLatestEvent, [])
    return row?.latest ?? 0
  }

  /** Skips past events, except ids whose transactions may not have committed yet. */
  async skipTo(latestId: number): Promise<void> {
    this.#missing.clear()
    this.#lastId = Math.max(0, latestId - eventsPerRead)
    await this.find()
  }

  /**
   * Runs with new events. PostgreSQL assigns ids before the commit, so a missing id may still appear: it is queried
   * until its transaction must have been rolled back.
   */
  async find(): Promise<Set<string>> {
    const runs = new Set<string>()
    const { read } = this.#store
    const now = performance.now()
    for (const [id, since] of this.#missing) if (now - since > missingMillisecondsMax) this.#missing.delete(id)
    if (this.#missing.size > 0) {
      const { marks, values } = inList([...this.#missing.keys()])
      for (const row of await read.all<EventId>(`SELECT id, run_id FROM run_events WHERE id IN (${marks})`, values)) {
        this.#missing.delete(row.id)
        runs.add(row.run_id)
      }
    }
    for (let count = eventsPerRead; count === eventsPerRead; ) {
      const events = await read.all(findNewEvents, [this.#lastId, eventsPerRead])
      count = events.length
      for (const { id, run_id } of events) {
        for (let skipped = this.#lastId + 1; skipped < id && this.#missing.size < missingMax; skipped += 1) {
          this.#missing.set(skipped, now)
        }
        this.#lastId = id
        runs.add(run_id)
      }
    }
    return runs
  }
}
