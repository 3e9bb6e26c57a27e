/** Connections to the SQLite file: durability settings, prepared statements, Kysely, and error classification. */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, SqliteDialect, type SqliteDialectConfig } from 'kysely'
import { createPrivateFile } from '../directories.ts'
import type { ColumnTypes } from '../migrations/migrations.ts'
import { sqliteRunStatements } from '../runs/sqlite-run-statements.ts'
import { StoreUnavailable, type Transaction, type Value } from '../store.ts'
import type { Tables } from '../tables/tables.ts'

export interface Connection {
  tx: Transaction
  database: DatabaseSync
}

/**
 * Checkpoints at 16 MB, four times SQLite's default, so that frequently changed pages are copied less often: with 2
 * million runs in the store, a run took 10 % less CPU and 16 % less time to write. Larger values, a larger page cache and
 * `mmap_size` gained nothing more.
 */
const checkpointPages = 4000

/**
 * With `synchronous = NORMAL` instead of FULL, a simulated power cut lost acknowledged rows. `secure_delete` overwrites
 * deleted data. On macOS, fsync leaves data in the cache of the disk; `fullfsync` does not, and is ignored elsewhere.
 *
 * With `temp_store = MEMORY`, pages that a savepoint may restore stay in memory. SQLite would write them to a file in
 * `TMPDIR`, outside the data directory, as soon as they are more than 64 KiB, which made a write take 40 % more CPU time.
 */
const settings = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON;
  PRAGMA checkpoint_fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
  PRAGMA wal_autocheckpoint = ${checkpointPages}`

/** In WAL mode, readers wait only while another process recovers or removes the log. */
const readTimeoutMilliseconds = 1000

export const sqliteColumnTypes: ColumnTypes = {
  autoIncrementKey: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  blob: 'BLOB',
  text: 'TEXT',
  inPostgres: () => '',
  inSqlite: (text) => text,
  createIndex: (name, definition) => [`CREATE INDEX ${name} ${definition}`],
}

/**
 * Opens the file. A connection for writing has no busy timeout, because SQLite would block the whole process; its users
 * retry with timers.
 */
export function connect(path: string, { readOnly }: { readOnly: boolean }): Connection {
  if (!readOnly && path !== ':memory:') createPrivateFile(path)
  const database = new DatabaseSync(path, { readOnly, timeout: readOnly ? readTimeoutMilliseconds : 0 })
  try {
    if (!readOnly) database.exec(settings)
  } catch (error) {
    database.close()
    throw error
  }
  const statements = new Map<string, PreparedStatement>()
  const prepare = (text: string): PreparedStatement => {
    let statement = statements.get(text)
    if (!statement) {
      statement = new PreparedStatement(database.prepare(withGeneralLimit(text)))
      statements.set(text, statement)
    }
    return statement
  }
  const all: Transaction['all'] = async <Row>(statement: { sql: string } | string, values: readonly Value[]) =>
    wrapStoreErrors(() => prepare(typeof statement === 'string' ? statement : statement.sql).all<Row>(values))
  return { tx: { query: createKysely(database), all, statements: sqliteRunStatements }, database }
}

type ColumnValue = ReturnType<StatementSync['get']>

/** Reads rows as objects of one shape: reading and using a run takes half of the time of node:sqlite's own objects. */
class PreparedStatement {
  readonly #statement: StatementSync
  #names: string[] = []
  #emptyRow: Record<string, ColumnValue> = {}

  constructor(statement: StatementSync) {
    this.#statement = statement
    statement.setReturnArrays(true)
  }

  all<Row>(values: readonly Value[]): Row[] {
    const rows = this.#statement.all(...values) as unknown as ColumnValue[][]
    // Another process may have added a column since the last call, which `SELECT *` then reads.
    if (rows[0] && rows[0].length !== this.#names.length) this.#readNames()
    return rows.map((row) => this.#toObject(row)) as Row[]
  }

  #readNames(): void {
    this.#names = this.#statement.columns().map(({ name }) => name)
    this.#emptyRow = Object.fromEntries(this.#names.map((name) => [name, undefined]))
  }

  #toObject(row: ColumnValue[]): Record<string, ColumnValue> {
    const object = { ...this.#emptyRow }
    const names = this.#names
    for (let index = 0; index < names.length; index += 1) object[names[index] as string] = row[index]
    return object
  }
}

/**
 * SQLite 3.53 plans a statement again at each execution when its LIMIT is a parameter, because the value
 * may change the plan: 250 instead of 6 µs for a claim that finds nothing. In an expression, the value is not considered.
 */
function withGeneralLimit(sql: string): string {
  return sql.replaceAll(/\bLIMIT \?/gi, 'LIMIT ? + 0')
}

/** Queries of Kysely that stay compiled, which takes SQLite longer than most of them. */
const compiledMax = 500

/** Adapts node:sqlite to the interface of better-sqlite3, which Kysely's SQLite dialect expects. */
export function createKysely(
  database: DatabaseSync,
  dialect = (options: SqliteDialectConfig) => new SqliteDialect(options),
): Kysely<Tables> {
  const compile = (text: string) => {
    const statement = wrapStoreErrors(() => database.prepare(withGeneralLimit(text)))
    return {
      reader: statement.columns().length > 0,
      all: (values: readonly unknown[]) => wrapStoreErrors(() => statement.all(...(values as Value[]))),
      run: (values: readonly unknown[]) => wrapStoreErrors(() => statement.run(...(values as Value[]))),
      // Not with the shared statement, which another query would reset.
      iterate: (values: readonly unknown[]) =>
        database.prepare(text).iterate(...(values as Value[])) as IterableIterator<unknown>,
    }
  }
  const compiled = new Map<string, ReturnType<typeof compile>>()
  const prepare = (text: string) => {
    const known = compiled.get(text)
    if (known) return known
    const statement = compile(text)
    // Lists of values make many texts.
    if (compiled.size >= compiledMax) compiled.clear()
    compiled.set(text, statement)
    return statement
  }
  return new Kysely<Tables>({ dialect: dialect({ database: { prepare, close: () => {} } }) })
}

/**
 * Result codes (sqlite.org/rescode.html) of failures that may pass: busy, locked, no memory, read-only, I/O error,
 * corrupt, full, cannot open, protocol, not a database.
 */
const unavailableCodes = new Set([5, 6, 7, 8, 10, 11, 13, 14, 15, 26])

/** Runs a statement. Failures of the store, as opposed to the statement, become StoreUnavailable. */
export function wrapStoreErrors<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string }
    const isClosed = code === 'ERR_INVALID_STATE'
    const isUnavailable = code === 'ERR_SQLITE_ERROR' && unavailableCodes.has(resultCode(error))
    throw isClosed || isUnavailable ? new StoreUnavailable(message, { cause: error }) : error
  }
}

/** The primary result code of an SQLite error; 0 for other errors. */
export function resultCode(error: unknown): number {
  return ((error as { errcode?: number } | undefined)?.errcode ?? 0) & 0xff
}

/** Whether another connection holds the required lock: SQLITE_BUSY. */
export function isBusy(error: unknown): boolean {
  return resultCode(error instanceof StoreUnavailable ? error.cause : error) === 5
}

/** Another program has had the file locked for too long. */
export class StoreLocked extends Error {}

/**
 * Retries while another process that opens, migrates or closes the file has it locked. SQLite's busy timeout does not
 * cover some of these locks.
 *
 * @throws {StoreLocked} when the file is still locked after `milliseconds`.
 */
export async function retryWhileLocked<Result>(
  path: string,
  milliseconds: number,
  open: () => Promise<Result>,
): Promise<Result> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() > deadline) throw new StoreLocked(`${path} is locked by another program.`, { cause: error })
      await delay(5)
    }
  }
}
