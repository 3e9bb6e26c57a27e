/** Connections to PostgreSQL: settings, the pool, prepared statements, type conversion, and Kysely. */
import { createConnection } from 'node:net'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, type ClientConfig, type PoolClient, types } from 'pg'
import { addressOf, endpointOf } from '../database-url.ts'
import { describeCauses } from '../error-causes.ts'
import type { ColumnTypes } from '../migrations/migrations.ts'
import { postgresRunStatements } from '../runs/postgres-run-statements.ts'
import { StoreUnavailable, type Transaction, type Value } from '../store.ts'
import type { Tables } from '../tables/tables.ts'
import { isConnectionUnusable, isStalePlan, toStoreError } from './postgres-errors.ts'
import { WatchedPool } from './watched-pool.ts'

/** The schema of the service's tables. Nothing else in the database is touched. */
export const schema = 'execution_service'

const applicationName = 'execution-service'
const connectMillisecondsMax = 5000
/** Ends transactions of paused processes, which would keep their row locks. */
const idleMillisecondsMax = 5000
const lockMillisecondsMax = 5000
/** Client-side limit, for a server that does not respond. */
const queryMillisecondsMax = 30_000

/** Reads `int8` and `numeric` as numbers: times, counts and sums stay far below 2^53. */
const numberTypes: readonly number[] = [types.builtins.INT8, types.builtins.NUMERIC]
const parsers = {
  getTypeParser: ((id: number, format?: 'text' | 'binary') =>
    numberTypes.includes(id) ? Number : types.getTypeParser(id, format as 'text')) as typeof types.getTypeParser,
}

async function clientConfig(url: string): Promise<ClientConfig> {
  return {
    ...(await addressOf(url, offersTls)),
    application_name: applicationName,
    connectionTimeoutMillis: connectMillisecondsMax,
    query_timeout: queryMillisecondsMax,
    keepAlive: true,
    types: parsers,
  }
}

/** SSLRequest (PostgreSQL, "Message Formats"), which a server answers with `S` or `N`. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Whether the server offers TLS. A failure to connect is that of the connection, which follows. */
function offersTls(url: URL): Promise<boolean> {
  const { host, port } = endpointOf(url)
  // On a Unix socket, there is none.
  if (host.startsWith('/')) return Promise.resolve(false)
  const socket = createConnection({ host, port, timeout: connectMillisecondsMax })
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => socket.write(tlsRequest))
    socket.once('data', (bytes) => resolve(bytes[0] === 'S'.charCodeAt(0)))
    for (const event of ['error', 'timeout', 'end']) socket.once(event, () => resolve(false))
  }).finally(() => socket.destroy())
}

/**
 * Settings that a role or a database may have, and that would change what transactions do. Statements are written for READ
 * COMMITTED: under SERIALIZABLE, most of those that claim at the same time would fail.
 */
const sessionSettings =
  "SET default_transaction_isolation TO 'read committed'; SET default_transaction_read_only TO off"

/**
 * Planner settings that leave nested loops of index scans, and prefer the index that has the order of the statement.
 * Every statement has an index, so these plans are right at any size, whatever the statistics said when a connection
 * planned the statement: it keeps the plan, and a queue that is empty now may have thousands of runs in a moment. An
 * index scan also remembers dead entries; a bitmap scan reads entries of finished runs again each time. Planning for
 * values (`plan_cache_mode`) would take longer than executing.
 */
const disabledPlans = [
  'jit',
  ...['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort', 'incremental_sort'].map((name) => `enable_${name}`),
]

/**
 * Runs on each new connection, since options in the URL would replace those of the client configuration. A write is
 * acknowledged once it is durable, even if the server defaults to asynchronous commits.
 */
const settings = `${sessionSettings}; SET search_path TO ${schema}; SET plan_cache_mode TO force_generic_plan; SET lock_timeout TO ${lockMillisecondsMax};
  SET idle_in_transaction_session_timeout TO ${idleMillisecondsMax};
  ${disabledPlans.map((name) => `SET ${name} TO off;`).join(' ')}
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

export async function openPool(url: string, connectionsMax: number): Promise<WatchedPool> {
  return new WatchedPool(await clientConfig(url), connectionsMax, settings)
}

/** Opens a connection outside the pool, for migrations and LISTEN. */
export async function connect(url: string, queryMilliseconds = queryMillisecondsMax): Promise<Client> {
  const client = new Client({ ...(await clientConfig(url)), query_timeout: queryMilliseconds })
  client.on('error', () => {})
  await client.connect()
  await client.query(sessionSettings)
  return client
}

/** Runs statements on one connection, or on any of a pool. */
export type Runner = Pick<PoolClient, 'query'>

/** Runs each statement on any free connection. Repeats statements whose prepared plan is stale. */
export function runnerOnPool(pool: WatchedPool): Runner {
  const query = async (...statement: unknown[]) => {
    const run = (client: PoolClient) => (client.query as (...statement: unknown[]) => Promise<unknown>)(...statement)
    // Each connection of the pool may be stale, and is discarded then.
    for (let stale = 0; ; stale += 1) {
      try {
        return await withConnection(pool, run)
      } catch (error) {
        if (!isStalePlan(error) || stale === pool.options.max) throw error
      }
    }
  }
  return { query: query as Runner['query'] }
}

/**
 * Calls `act` with a connection of the pool. Discards the connection afterwards if it was lost or is unusable.
 *
 * @param undo runs on the connection after `act` has failed; if it fails too, the connection is discarded.
 * @throws {StoreUnavailable} when there is no connection.
 */
export async function withConnection<Result>(
  pool: WatchedPool,
  act: (client: PoolClient) => Promise<Result>,
  undo: (client: PoolClient) => Promise<unknown> = async () => {},
): Promise<Result> {
  const client = await pool.connectUsable().catch((error: Error) => {
    throw new StoreUnavailable(describeCauses(error), { cause: error })
  })
  let isBroken = false
  // The pool does not observe a connection that is checked out.
  const onError = () => {
    isBroken = true
  }
  client.on('error', onError)
  try {
    return await act(client)
  } catch (error) {
    isBroken ||= isConnectionUnusable(error)
    isBroken ||= await undo(client).then(
      () => false,
      () => true,
    )
    throw error
  } finally {
    client.off('error', onError)
    client.release(isBroken)
  }
}

export function createTransaction(runner: Runner): Transaction {
  return {
    query: createKysely(runner),
    statements: postgresRunStatements,
    all: async <Row extends object>(statement: { sql: string } | string, values: readonly Value[]): Promise<Row[]> => {
      const text = typeof statement === 'string' ? statement : statement.sql
      try {
        return (await runner.query<Row>({ ...prepared(numberPlaceholders(text)), values: [...values] })).rows
      } catch (error) {
        throw toStoreError(error)
      }
    },
  }
}

/** Maximum number of prepared statements per connection; the service has far fewer. */
const preparedMax = 500
const preparedNames = new Map<string, string>()

/** Names a statement, so that each connection prepares it once: planning takes longer than executing most of them. */
export function prepared(text: string): { name?: string; text: string } {
  let name = preparedNames.get(text)
  if (name === undefined) {
    if (preparedNames.size >= preparedMax) return { text }
    name = `s${preparedNames.size}`
    preparedNames.set(text, name)
  }
  return { name, text }
}

const numberedTexts = new Map<string, string>()

/** Replaces `?` with `$1`, `$2`, … */
function numberPlaceholders(text: string): string {
  let numbered = numberedTexts.get(text)
  if (numbered === undefined) {
    let count = 0
    numbered = text.replaceAll('?', () => `$${++count}`)
    numberedTexts.set(text, numbered)
  }
  return numbered
}

export const postgresColumnTypes: ColumnTypes = {
  autoIncrementKey: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  blob: 'BYTEA',
  text: 'TEXT COLLATE "C"',
  inPostgres: (statement) => `;\n${statement}`,
  inSqlite: () => '',
  // An interrupted statement leaves an invalid index. While it waits for transactions, it blocks no writes.
  createIndex: (name, definition) => [
    'SET lock_timeout TO 0',
    `DROP INDEX CONCURRENTLY IF EXISTS ${name}`,
    `CREATE INDEX CONCURRENTLY ${name} ${definition}`,
  ],
}

export function createKysely(runner: Runner): Kysely<Tables> {
  const query = async (text: string, values?: readonly unknown[]) => {
    try {
      // Statements without values may not be preparable, such as DDL, or may be several.
      if (!values || values.length === 0) return await runner.query(text)
      return await runner.query({ ...prepared(text), values: [...values] })
    } catch (error) {
      throw toStoreError(error)
    }
  }
  const connection = { query, release: () => {} }
  const pool = { connect: async () => connection, end: async () => {} }
  // Kysely's type requires cursors, which it uses for streaming only.
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: pool as never }) })
}
