/** Reads all tables of an SQLite store while nothing can write to it, in an order that satisfies foreign keys. */
import { DatabaseSync } from 'node:sqlite'
import type { Value } from '../store.ts'
import { isBusy, retryWhileLocked, StoreLocked } from './sqlite-connection.ts'

export interface SourceTable {
  name: string
  columns: string[]
  /** Columns of the primary key, in its order. */
  key: string[]
}

export type Row = Value[]

/** A store that is locked against writes. */
export type Source = DatabaseSync

/** Bounds the memory that a batch takes, whichever limit is reached first. */
const batchMax = { rows: 1000, characters: 4_000_000 }
const lockWaitMillisecondsMax = 30_000

/** The store is used by another process; the message says what to do. */
export class SourceInUse extends Error {}

/**
 * Locks the store against writes until the connection is closed. The lock is the operating system's, so it ends with
 * this process, however that ends.
 *
 * @param serving lets other processes keep the store open: they read, and their writes fail as StoreUnavailable.
 * @param waitMilliseconds how long to wait, with `serving`, for a transaction of another process.
 * @throws {SourceInUse} when another process has the store open and `serving` is not set, or is writing for too long.
 */
export async function lockSource(
  path: string,
  serving: boolean,
  waitMilliseconds = lockWaitMillisecondsMax,
): Promise<Source> {
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    if (serving) {
      await retryWhileLocked(path, waitMilliseconds, async () => database.exec('BEGIN IMMEDIATE'))
    } else {
      // Leaving WAL mode requires that no other connection is open. The next start returns to it.
      database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
    }
    return database
  } catch (error) {
    database.close()
    if (error instanceof StoreLocked) {
      throw new SourceInUse(`${path} is locked by a command that writes to it: wait until it has ended, and try again.`)
    }
    if (!isBusy(error)) throw error
    throw new SourceInUse(`${path} is in use: stop the service, its workers and commands, or pass --serving.`)
  }
}

/** Lists the tables that the file has, apart from those of SQLite and of migrations, each after those it refers to. */
export function sourceTables(database: Source): SourceTable[] {
  const names = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => String(name))
    .filter((name) => !/^(sqlite|kysely|schema)_/.test(name))
  const parents = new Map(names.map((name) => [name, referencedTables(database, name)]))
  const ordered: string[] = []
  while (ordered.length < names.length) {
    const next = names.filter((name) => !ordered.includes(name) && parents.get(name)?.every((p) => ordered.includes(p)))
    if (next.length === 0) throw new Error('Foreign keys of the store form a cycle.')
    ordered.push(...next)
  }
  return ordered.map((name) => describeTable(database, name))
}

function referencedTables(database: Source, name: string): string[] {
  const rows = database.prepare('SELECT DISTINCT "table" AS name FROM pragma_foreign_key_list(?)').all(name)
  return rows.map((row) => String(row.name)).filter((parent) => parent !== name)
}

function describeTable(database: Source, name: string): SourceTable {
  const rows = database.prepare('SELECT name, pk FROM pragma_table_info(?) ORDER BY cid').all(name)
  const key = rows.filter(({ pk }) => Number(pk) > 0).toSorted((a, b) => Number(a.pk) - Number(b.pk))
  if (key.length === 0) throw new Error(`The table ${name} has no primary key.`)
  return { name, columns: rows.map((row) => String(row.name)), key: key.map((row) => String(row.name)) }
}

/** Reads the rows of a table in the order of its primary key, after the row with the key `after`. */
export function* readBatches(database: Source, table: SourceTable, after?: Row): Generator<Row[]> {
  const key = table.key.map(quote).join(', ')
  const where = after ? `WHERE (${key}) > (${after.map(() => '?').join(', ')})` : ''
  const columns = table.columns.map(quote).join(', ')
  const statement = database.prepare(`SELECT ${columns} FROM ${quote(table.name)} ${where} ORDER BY ${key}`)
  statement.setReturnArrays(true)
  let batch: Row[] = []
  let characters = 0
  for (const row of statement.iterate(...(after ?? [])) as Iterable<unknown>) {
    batch.push(row as Row)
    for (const value of row as Row) if (value !== null && typeof value !== 'number') characters += value.length
    if (batch.length < batchMax.rows && characters < batchMax.characters) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}

/** The highest value that each AUTOINCREMENT column has ever had. Deleted rows keep their ids from being used again. */
export function lastIds(database: Source): { table: string; id: number }[] {
  const rows = database.prepare('SELECT name, seq FROM sqlite_sequence').all()
  return rows.map(({ name, seq }) => ({ table: String(name), id: Number(seq) }))
}

export function countRows(database: Source, { name }: SourceTable): number {
  return Number(database.prepare(`SELECT count(*) AS count FROM ${quote(name)}`).get()?.count)
}

export function quote(name: string): string {
  return `"${name}"`
}
