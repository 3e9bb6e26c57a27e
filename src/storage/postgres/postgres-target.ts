/**
 * Receives a copy of another store. The tables are in a separate schema until the copy is complete, so that no
 * service starts with half of it; the name of that schema also says that an interrupted copy can be resumed.
 */
import { type Client, DatabaseError as PostgresError } from 'pg'
import { schemaDifference } from '../migrations/migrations.ts'
import type { Value } from '../store.ts'
import { connect, createKysely, schema } from './postgres-connections.ts'
import { DatabaseError, describeDatabase, prepareDatabase, toDatabaseError } from './postgres-schema.ts'

export const copySchema = `${schema}_copy`

const queryMillisecondsMax = 60 * 60 * 1000
const fetchRows = 1000
/** Id of the advisory lock that admits one copy at a time. */
const copyLockId = 7_361_024_522

interface Table {
  name: string
  columns: string[]
  key: string[]
}

export interface Target {
  /** Whether an earlier copy was interrupted. */
  resumed: boolean
  /** Inserts the rows, or changes those that exist, and commits them. No change of the copy fires triggers. */
  put(table: Table, rows: Value[][]): Promise<void>
  /** Reads the rows whose keys are after one and up to another. */
  readRange(table: Table, after: Value[] | undefined, last: Value[]): Promise<Value[][]>
  delete(table: Table, keys: Value[][]): Promise<void>
  /** Deletes the rows whose keys are after one; without it, all. */
  deleteAfter(table: Table, after: Value[] | undefined): Promise<void>
  /** Reads all rows in batches, in any order. */
  read(table: Table): AsyncGenerator<Value[][]>
  /** Deletes all rows of all tables. */
  clear(tables: readonly Table[]): Promise<void>
  /** Sets the last id that an identity column has generated. */
  setLastId(table: string, id: number): Promise<void>
  /** Gives the tables the name that services use. */
  publish(): Promise<void>
  close(): Promise<void>
}

/**
 * Creates the tables, or opens those of an interrupted copy.
 *
 * @throws {DatabaseError} when the database cannot be used or contains an installation.
 */
export async function openTarget(url: string, tables: readonly Table[]): Promise<Target> {
  const client = await connect(url, queryMillisecondsMax).catch((error: unknown) => {
    throw toDatabaseError(error, url)
  })
  try {
    const resumed = await prepare(client, url, tables)
    await client.query(`SET search_path TO ${copySchema}`)
    const { pending, newer } = await schemaDifference(createKysely(client))
    if (pending.length + newer.length > 0) {
      throw new DatabaseError(
        `The interrupted copy in ${describeDatabase(url)} was made by another version of this service: drop its schema ${copySchema}, and start again.`,
      )
    }
    const columns = await columnTypes(client)
    for (const table of tables) rejectOtherColumns(table, columns)
    return createTarget(client, resumed, columns)
  } catch (error) {
    await client.end().catch(() => {})
    throw toDatabaseError(error, url)
  }
}

async function prepare(client: Client, url: string, tables: readonly Table[]): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [copyLockId])
  if (!rows[0]?.locked) {
    throw new DatabaseError(`Another process is copying into ${describeDatabase(url)}: wait until it has finished.`)
  }
  const [hasCopy, hasSchema] = [await schemaExists(client, copySchema), await schemaExists(client, schema)]
  const isUsed = hasSchema && (hasCopy || !(await isEmpty(client, tables)))
  if (isUsed) {
    throw new DatabaseError(
      `${describeDatabase(url)} already contains an installation: use an empty database, or drop its schema ${schema}.`,
    )
  }
  if (hasCopy) return true
  // Creates the tables, or brings those of an installation that was never used up to date.
  await prepareDatabase(url, async () => {})
  await client.query(`ALTER SCHEMA ${schema} RENAME TO ${copySchema}`)
  return false
}

async function schemaExists(client: Client, name: string): Promise<boolean> {
  const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [name])
  return rows.length > 0
}

async function isEmpty(client: Client, tables: readonly Table[]): Promise<boolean> {
  for (const { name } of tables) {
    const { rows } = await client.query('SELECT to_regclass($1) IS NOT NULL AS exists', [`${schema}.${name}`])
    if (!rows[0]?.exists) continue
    const found = await client.query(`SELECT 1 FROM ${schema}."${name}" LIMIT 1`)
    if (found.rows.length > 0) return false
  }
  return true
}

/** Types by table and column. */
type ColumnTypeNames = Map<string, Map<string, string>>

async function columnTypes(client: Client): Promise<ColumnTypeNames> {
  const { rows } = await client.query<{ table: string; column: string; type: string }>(
    `SELECT table_name AS table, column_name AS column, udt_name AS type FROM information_schema.columns
     WHERE table_schema = $1`,
    [copySchema],
  )
  const types: ColumnTypeNames = new Map()
  for (const { table, column, type } of rows) {
    const columns = types.get(table) ?? new Map<string, string>()
    types.set(table, columns.set(column, type))
  }
  return types
}

function rejectOtherColumns(table: Table, types: ColumnTypeNames): void {
  const columns = [...(types.get(table.name)?.keys() ?? [])]
  if (columns.toSorted().join() === table.columns.toSorted().join()) return
  throw new DatabaseError(`The table ${table.name} has other columns in PostgreSQL than in the data directory.`)
}

function createTarget(client: Client, resumed: boolean, types: ColumnTypeNames): Target {
  const list = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ')
  const mark = (table: string, column: string, index: number) => `$${index + 1}::${types.get(table)?.get(column)}`
  // The triggers of the copy must not act on what has happened at the source.
  const withoutTriggers = (table: string, query: { text: string; values: unknown[] }) =>
    inTransaction(client, async () => {
      await client.query(`ALTER TABLE "${table}" DISABLE TRIGGER USER`)
      await client.query(query)
      await client.query(`ALTER TABLE "${table}" ENABLE TRIGGER USER`)
    })
  return {
    resumed,
    async put({ name, columns, key }, rows) {
      const others = columns.filter((column) => !key.includes(column))
      const change = others.map((column) => `"${column}" = excluded."${column}"`).join(', ')
      const text = `INSERT INTO "${name}" (${list(columns)}) OVERRIDING SYSTEM VALUE
        SELECT * FROM unnest(${columns.map((column, index) => `${mark(name, column, index)}[]`).join(', ')})
        ON CONFLICT (${list(key)}) DO ${change ? `UPDATE SET ${change}` : 'NOTHING'}`
      const values = columns.map((_, index) => rows.map((row) => toParameter(row[index] ?? null)))
      await withoutTriggers(name, { text, values })
    },
    async readRange({ name, columns, key }, after, last) {
      const bound = (from: number) => key.map((column, index) => mark(name, column, from + index)).join(', ')
      const isAfter = after ? `(${list(key)}) > (${bound(key.length)}) AND` : ''
      const text = `SELECT ${list(columns)} FROM "${name}" WHERE ${isAfter} (${list(key)}) <= (${bound(0)})`
      const values = [...last, ...(after ?? [])].map(toParameter)
      return (await client.query<Value[]>({ text, values, rowMode: 'array' })).rows
    },
    async delete({ name, key }, keys) {
      if (keys.length === 0) return
      const arrays = key.map((column, index) => `${mark(name, column, index)}[]`).join(', ')
      const values = key.map((_, index) => keys.map((each) => toParameter(each[index] ?? null)))
      const text = `DELETE FROM "${name}" WHERE (${list(key)}) IN (SELECT * FROM unnest(${arrays}))`
      await withoutTriggers(name, { text, values })
    },
    async deleteAfter({ name, key }, after) {
      const bound = key.map((column, index) => mark(name, column, index)).join(', ')
      const isAfter = after ? `WHERE (${list(key)}) > (${bound})` : ''
      await withoutTriggers(name, { text: `DELETE FROM "${name}" ${isAfter}`, values: (after ?? []).map(toParameter) })
    },
    async *read({ name, columns }) {
      await client.query(`BEGIN; DECLARE rows NO SCROLL CURSOR FOR SELECT ${list(columns)} FROM "${name}"`)
      for (;;) {
        const { rows } = await client.query<Value[]>({ text: `FETCH ${fetchRows} FROM rows`, rowMode: 'array' })
        if (rows.length === 0) break
        yield rows
      }
      await client.query('COMMIT')
    },
    async clear(tables) {
      await client.query(`TRUNCATE ${list(tables.map(({ name }) => name))}`)
    },
    async setLastId(table, id) {
      await client.query(`SELECT setval(pg_get_serial_sequence($1, 'id'), $2)`, [`${copySchema}.${table}`, id])
    },
    async publish() {
      await client.query('ANALYZE')
      await client.query(`ALTER SCHEMA ${copySchema} RENAME TO ${schema}`)
    },
    close: () => client.end(),
  }
}

/** Whether a row could not be written because of a unique value of another row. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof PostgresError && error.code === '23505'
}

function toParameter(value: Value): string | number | null | Buffer {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value
}

async function inTransaction(client: Client, act: () => Promise<void>): Promise<void> {
  await client.query('BEGIN')
  try {
    await act()
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}
