/** PostgreSQL for the stores' tests: a location is the URL of a new database. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { dropDatabase, makeDatabase } from './postgres-databases.ts'
import type { StoreKind } from './store-kinds.ts'

export const postgres: StoreKind = {
  name: 'postgres',
  prepare: makeDatabase,
  remove: dropDatabase,
  open: (location) => openPostgresStore(location, { fallbackNotifyMilliseconds: 3_600_000 }),
  contents,
  async failOnCommit(tx) {
    await tx.all('CREATE TEMPORARY TABLE failing (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP', [])
    await tx.all('INSERT INTO failing VALUES (1), (1)', [])
  },
}

/** Calls `act` while the database accepts no connections; existing ones are terminated. */
export async function whileConnectionsRefused<Result>(location: string, act: () => Promise<Result>): Promise<Result> {
  const name = new URL(location).pathname.slice(1)
  const administration = new URL(location)
  administration.pathname = 'postgres'
  const allow = (client: pg.Client, allowed: boolean) =>
    client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS ${allowed}`)
  return withClient(administration.href, async (client) => {
    await allow(client, false)
    // A backend that is starting has already been admitted, and is listed only later.
    const terminate = () =>
      client.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1', [name])
    do await setTimeout(20)
    while ((await terminate()).rows.length > 0)
    return act().finally(() => allow(client, true))
  })
}

/** Calls `act` while another transaction has the table of runs locked. */
export async function whileLocked<Result>(location: string, act: () => Promise<Result>): Promise<Result> {
  return withClient(location, async (client) => {
    await client.query('BEGIN; LOCK TABLE execution_service.runs IN EXCLUSIVE MODE')
    return act()
  })
}

/** Returns all values of all rows. PostgreSQL's files also contain deleted rows until vacuum. */
function contents(location: string): Promise<Buffer> {
  return withClient(location, async (client) => {
    const tables = await client.query(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    )
    const values: Buffer[] = []
    for (const { name } of tables.rows) {
      const { rows } = await client.query({ text: `SELECT * FROM ${name}`, rowMode: 'array', types: rawTypes })
      for (const value of rows.flat()) values.push(Buffer.isBuffer(value) ? value : Buffer.from(String(value)))
    }
    return Buffer.concat(values)
  })
}

async function withClient<Result>(url: string, act: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(url)
  await client.connect()
  return act(client).finally(() => client.end())
}

const rawTypes: pg.CustomTypesConfig = {
  getTypeParser: (id: number) => (id === pg.types.builtins.BYTEA ? pg.types.getTypeParser(id) : (text: string) => text),
}
