/** A store that notes which statements pass through it and how long each took, and says how they are answered. */
import { CompiledQuery, type Kysely } from 'kysely'
import type { Store, Transaction, Value } from '../src/storage/store.ts'
import type { Tables } from '../src/storage/tables.ts'

export interface Recorded {
  sql: string
  values: readonly unknown[]
  milliseconds: number[]
}

export class RecordedStore {
  readonly store: Store
  readonly #inner: Store
  readonly #plain: Pick<Transaction, 'all' | 'query'>
  readonly #sessions = new WeakSet<Transaction>()
  #statements = new Map<string, Recorded>()

  constructor(inner: Store) {
    this.#inner = inner
    this.#plain = { ...inner.read }
    this.store = {
      ...inner,
      read: this.#recording(inner.read),
      write: (work, options) => inner.write((tx) => work(this.#recording(tx)), options),
    }
  }

  /** What has passed through since the last call. */
  take(): Recorded[] {
    const taken = [...this.#statements.values()]
    this.#statements = new Map()
    return taken
  }

  /** A line for each step. */
  async plan({ sql, values }: Recorded): Promise<string[]> {
    const text = `${this.#inner.jobs ? 'EXPLAIN' : 'EXPLAIN QUERY PLAN'} ${sql}`
    const { rows } = /\$1\b/.test(sql)
      ? await this.#plain.query.executeQuery<object>(CompiledQuery.raw(text, [...values]))
      : { rows: await this.#plain.all<object>(text, values as readonly Value[]) }
    return rows.map((row) => String('detail' in row ? row.detail : Object.values(row)[0]))
  }

  /** In place: the store knows its sessions again. */
  #recording(tx: Transaction): Transaction {
    if (this.#sessions.has(tx)) return tx
    this.#sessions.add(tx)
    const note = (sql: string, values: readonly unknown[], begun: number) => {
      const statement = this.#statements.get(sql) ?? { sql, values, milliseconds: [] }
      statement.milliseconds.push(performance.now() - begun)
      this.#statements.set(sql, statement)
    }
    const { all } = tx
    tx.query = recordedQuery(tx.query, note)
    tx.all = async <Row extends object>(sql: string, values: readonly Value[]) => {
      const begun = performance.now()
      const found = await all<Row>(sql, values)
      note(sql, values, begun)
      return found
    }
    return tx
  }
}

type Note = (sql: string, values: readonly unknown[], begun: number) => void

/** Kysely tells its plugins the tree of a query when it begins, and its result when it has ended. */
function recordedQuery(query: Kysely<Tables>, note: Note): Kysely<Tables> {
  const running = new WeakMap<object, { compiled: CompiledQuery; begun: number }>()
  return query.withPlugin({
    transformQuery: ({ node, queryId }) => {
      running.set(queryId, { compiled: query.getExecutor().compileQuery(node, queryId), begun: performance.now() })
      return node
    },
    transformResult: async ({ queryId, result }) => {
      const { compiled, begun } = running.get(queryId) ?? {}
      if (compiled && begun !== undefined) note(compiled.sql, compiled.parameters, begun)
      return result
    },
  })
}
