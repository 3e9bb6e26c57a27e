/** PostgreSQL for the stores' tests: a location is the URL of a new database. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import type { Store } from '../../src/storage/store.ts'
import { dropDatabase, makeDatabase } from './postgres-databases.ts'
import type { LentStore, StoreKind } from './store-kinds.ts'

export const postgres: StoreKind = {
  name: 'postgres',
  prepare: makeDatabase,
  remove: dropDatabase,
  open: (location) => openPostgresStore(location, { fallbackNotifyMilliseconds: 3_600_000 }),
  lend,
  contents,
  async failOnCommit(tx) {
    await tx.all('CREATE TEMPORARY TABLE failing (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP', [])
    await tx.all('INSERT INTO failing VALUES (1), (1)', [])
  },
}

interface OpenStore {
  location: string
  store: Store
  definitions: string
  uses: number
}

/** Stores that tests have given back. A new database, connections and plans take twice as long as a test. */
const idle: OpenStore[] = []

/** How often a database is emptied for another test, since deleted rows stay: nothing vacuums. */
const usesMax = 20

async function openNew(): Promise<OpenStore> {
  const location = await makeDatabase()
  const store = await postgres.open(location)
  return { location, store, definitions: await readDefinitions(store), uses: 0 }
}

/** @returns a copy of the store, of which tests may replace members. */
async function lend(): Promise<LentStore> {
  const open = idle.pop() ?? (await openNew())
  const { location, store } = open
  let isClosed = false
  const stopListening: (() => void)[] = []
  return {
    location,
    store: {
      ...store,
      listen(topic, listener) {
        const stop = store.listen(topic, listener)
        stopListening.push(stop)
        return stop
      },
      async close() {
        isClosed = true
        await store.close()
      },
    },
    async giveBack() {
      for (const stop of stopListening) stop()
      store.observe(() => {})
      open.uses += 1
      const isReusable = !isClosed && open.uses < usesMax && (await readDefinitions(store)) === open.definitions
      if (isReusable) {
        await store.write((tx) => tx.all(emptyTables, []))
        idle.push(open)
      } else {
        if (!isClosed) await store.close()
        await dropDatabase(location)
      }
    },
  }
}

/**
 * What a test can change besides rows: definitions, settings of the database, statistics. `xmin` is the transaction that
 * wrote a definition.
 */
const definitions = `
  SELECT md5(concat(
    (SELECT string_agg(concat(oid, xmin), ',' ORDER BY oid) FROM pg_class WHERE oid >= 16384),
    (SELECT string_agg(concat(oid, xmin), ',' ORDER BY oid) FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(concat(oid, xmin), ',' ORDER BY oid) FROM pg_trigger),
    (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
    (SELECT count(*) FROM pg_db_role_setting),
    (SELECT string_agg(it::text, ',') FROM execution_service.schema_compatibility it)
  )) AS definitions`

async function readDefinitions(store: Store): Promise<string> {
  const [row] = await store.read.all<{ definitions: string }>(definitions, [])
  return row?.definitions ?? ''
}

/** Deletes the rows of all tables but those that a new database has filled, without triggers and foreign keys. */
const emptyTables = `
  DO $$ DECLARE name text; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT relname FROM pg_class
      WHERE relnamespace = 'execution_service'::regnamespace AND relkind = 'r' AND relname !~ '^(kysely_|schema_compatibility$)'
    LOOP EXECUTE format('DELETE FROM execution_service.%I', name); END LOOP;
  END $$`

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
