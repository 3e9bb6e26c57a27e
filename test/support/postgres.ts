/** The store in PostgreSQL, for tests: each place is a database of its own, and its URL. */
import pg from 'pg'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { dropDatabase, makeDatabase } from './postgres-databases.ts'
import type { StoreKind } from './stores.ts'

export const postgres: StoreKind = {
  name: 'postgres',
  prepare: makeDatabase,
  remove: dropDatabase,
  // Few connections each: hundreds of stores share a server.
  open: (place) => openPostgresStore(place, { fallbackRingMilliseconds: 3_600_000, connectionsMax: 5 }),
  contents,
}

/** Every value of every row. The files of PostgreSQL hold what was deleted, too, until its vacuum comes by. */
async function contents(place: string): Promise<Buffer> {
  const client = new pg.Client(place)
  await client.connect()
  try {
    const tables = await client.query(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    )
    const values: Buffer[] = []
    for (const { name } of tables.rows) {
      const { rows } = await client.query({ text: `SELECT * FROM ${name}`, rowMode: 'array', types: asKept })
      for (const value of rows.flat()) values.push(Buffer.isBuffer(value) ? value : Buffer.from(String(value)))
    }
    return Buffer.concat(values)
  } finally {
    await client.end()
  }
}

const asKept: pg.CustomTypesConfig = {
  getTypeParser: (id: number) => (id === pg.types.builtins.BYTEA ? pg.types.getTypeParser(id) : (text: string) => text),
}
