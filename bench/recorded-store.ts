/** Wraps a store to record its statements with their durations, and explains their plans. */
import { CompiledQuery, type Kysely } from 'kysely'
import type { Store, Transaction, Value } from '../src/storage/store.ts'
import type { Tables } from '../src/storage/tables/tables.ts'
import type { StoreKind } from './filled-store.ts'

export interface Recorded {
  sql: string
  values: readonly unknown[]
  milliseconds: number[]
}

export class RecordedStore {
  readonly store: Store
  readonly #kind: StoreKind
  readonly #plain: Pick<Transaction, 'all' | 'query'>
  readonly #recorded = new WeakSet<Transaction>()
  #statements = new Map<string, Recorded>()

  constructor(inner: Store, kind: StoreKind) {
    this.#kind = kind
    this.#plain = { ...inner.read }
    this.store = {
      ...inner,
      read: this.#record(inner.read),
      write: (work, options) => inner.write((tx) => work(this.#record(tx)), options),
    }
  }

  /** Returns the statements since the last call. */
  take(): Recorded[] {
    const recorded = [...this.#statements.values()]
    this.#statements = new Map()
    return recorded
  }

  /** Returns the statement's plan, one line per step. */
  async plan({ sql, values }: Recorded): Promise<string[]> {
    const text = `${this.#kind === 'postgres' ? 'EXPLAIN' : 'EXPLAIN QUERY PLAN'} ${sql}`
    const { rows } = /\$1\b/.test(sql)
      ? await this.#plain.query.executeQuery<object>(CompiledQuery.raw(text, [...values]))
      : { rows: await this.#plain.all<object>(text, values as readonly Value[]) }
    return rows.map((row) => String('detail' in row ? row.detail : Object.values(row)[0]))
  }

  /** Changes the transaction in place, since the store identifies its transactions by reference. */
  #record(tx: Transaction): Transaction {
    if (this.#recorded.has(tx)) return tx
    this.#recorded.add(tx)
    const record = (sql: string, values: readonly unknown[], startedAt: number) => {
      const statement = this.#statements.get(sql) ?? { sql, values, milliseconds: [] }
      statement.milliseconds.push(performance.now() - startedAt)
      this.#statements.set(sql, statement)
    }
    const { all } = tx
    tx.query = recordQueries(tx.query, record)
    tx.all = async <Row extends object>(statement: { sql: string } | string, values: readonly Value[]) => {
      const startedAt = performance.now()
      const rows = await all<Row>(statement, values)
      record(typeof statement === 'string' ? statement : statement.sql, values, startedAt)
      return rows
    }
    return tx
  }
}

type Record = (sql: string, values: readonly unknown[], startedAt: number) => void

/** Kysely calls its plugins with the query's tree before it runs, and with the result afterwards. */
function recordQueries(query: Kysely<Tables>, record: Record): Kysely<Tables> {
  const running = new WeakMap<object, { compiled: CompiledQuery; startedAt: number }>()
  return query.withPlugin({
    transformQuery: ({ node, queryId }) => {
      running.set(queryId, { compiled: query.getExecutor().compileQuery(node, queryId), startedAt: performance.now() })
      return node
    },
    transformResult: async ({ queryId, result }) => {
      const { compiled, startedAt } = running.get(queryId) ?? {}
      if (compiled && startedAt !== undefined) record(compiled.sql, compiled.parameters, startedAt)
      return result
    },
  })
}
