/** A store in the memory of one process, for simulators: what it has can be saved as bytes, and it writes no file. */
import { EventEmitter } from 'node:events'
import { type DatabaseConnection, type Driver, SqliteDialect, type SqliteDialectConfig } from 'kysely'
import { canServe, migrate } from '../migrations/migrations.ts'
import type { Count, Counters, Store, Topic, Transaction } from '../store.ts'
import { type Connection, connect, createKysely, sqliteColumnTypes } from './sqlite-connection.ts'

export interface MemoryStore extends Store {
  /** The number of transactions since it was opened. */
  readonly commits: number
  /** The topics that were notified since the last call. */
  takeNotified(): Set<Topic>
  /** Its content, for `openMemoryStore`. */
  serialize(): Promise<Uint8Array>
}

/** Nothing must be overwritten or synced: what was deleted is nowhere else. */
const settings = 'PRAGMA secure_delete = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON'

/** @param content what another store has serialized; by default, the store is new. */
export async function openMemoryStore(content?: Uint8Array): Promise<MemoryStore> {
  const connection = connect(':memory:', { readOnly: false })
  const { database, tx } = connection
  if (content) database.deserialize(content)
  database.exec(settings)
  if (!(await canServe(tx.query))) {
    database.exec('BEGIN')
    await migrate(tx.query, sqliteColumnTypes)
    database.exec('COMMIT')
  }
  const writes = new Writes(connection)
  const notifications = new Notifications()
  return {
    isRemote: false,
    read: readBetween(connection, () => writes.current),
    counters: new MemoryCounters(),
    get commits() {
      return writes.count
    },
    write: (work) => writes.run(work),
    notify: (topic) => notifications.notify(topic),
    takeNotified: () => notifications.take(),
    listen: (topic, listener) => notifications.listen(topic, listener),
    scrub: async () => {},
    check: async () => {},
    observe: () => {},
    async serialize() {
      while (writes.current) await writes.current
      return database.serialize()
    },
    async close() {
      while (writes.current) await writes.current
      database.close()
    },
  }
}

/** Executes one transaction after the other. */
class Writes {
  readonly #connection: Connection
  #last: Promise<unknown> = Promise.resolve()
  /** The transaction that is open; it never rejects. */
  current: Promise<void> | undefined
  count = 0

  constructor(connection: Connection) {
    this.#connection = connection
  }

  run<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const result = this.#last.then(() => this.#transact(work))
    this.#last = result.catch(() => {})
    return result
  }

  async #transact<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const { database, tx } = this.#connection
    const ended = Promise.withResolvers<void>()
    database.exec('BEGIN')
    this.current = ended.promise
    try {
      const result = await work(tx)
      database.exec('COMMIT')
      this.count += 1
      return result
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    } finally {
      this.current = undefined
      ended.resolve()
    }
  }
}

/** There is one connection, so that reads wait for the end of a transaction: what it has written is not committed. */
function readBetween({ tx, database }: Connection, current: () => Promise<void> | undefined): Transaction {
  // In the same function as the read: another transaction may begin before an awaited function has returned.
  const all: Transaction['all'] = async (statement, values) => {
    while (current()) await current()
    return tx.all(statement, values)
  }
  const query = createKysely(database, (options) => new WaitingDialect(options, current))
  return { all, query, statements: tx.statements }
}

class WaitingDialect extends SqliteDialect {
  readonly #current: () => Promise<void> | undefined

  constructor(options: SqliteDialectConfig, current: () => Promise<void> | undefined) {
    super(options)
    this.#current = current
  }

  override createDriver(): Driver {
    const driver = super.createDriver()
    const acquire = driver.acquireConnection.bind(driver)
    driver.acquireConnection = async () => {
      const connection = await acquire()
      const executeQuery: DatabaseConnection['executeQuery'] = async (query) => {
        while (this.#current()) await this.#current()
        return connection.executeQuery(query)
      }
      return { executeQuery, streamQuery: connection.streamQuery.bind(connection) }
    }
    return driver
  }
}

class MemoryCounters implements Counters {
  readonly #counters = new Map<string, { count: number; endsAt: number }>()

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    const now = Date.now()
    const known = this.#counters.get(name)
    const counter = known && known.endsAt > now ? known : { count: 0, endsAt: now + windowMilliseconds }
    counter.count = Math.max(0, counter.count + amount)
    this.#counters.set(name, counter)
    if (this.#counters.size > countersMax) this.#deleteExpired(now)
    return { count: counter.count, millisecondsLeft: counter.endsAt - now }
  }

  #deleteExpired(now: number): void {
    for (const [name, { endsAt }] of this.#counters) if (endsAt <= now) this.#counters.delete(name)
  }
}

const countersMax = 10_000

class Notifications {
  readonly #listeners = new EventEmitter<Record<Topic, []>>().setMaxListeners(0)
  readonly #pending = new Set<Topic>()
  #notified = new Set<Topic>()

  /** Coalesces all calls in one iteration of the event loop. */
  notify(topic: Topic): void {
    this.#notified.add(topic)
    if (this.#pending.size === 0) setImmediate(() => this.#emit())
    this.#pending.add(topic)
  }

  listen(topic: Topic, listener: () => void): () => void {
    this.#listeners.on(topic, listener)
    return () => void this.#listeners.off(topic, listener)
  }

  take(): Set<Topic> {
    const taken = this.#notified
    this.#notified = new Set()
    return taken
  }

  #emit(): void {
    const topics = [...this.#pending]
    this.#pending.clear()
    for (const topic of topics) this.#listeners.emit(topic)
  }
}
