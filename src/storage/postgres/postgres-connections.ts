/** Connections to PostgreSQL: their settings, prepared statements, values as the embedded store gives them, and Kysely. */
import { Kysely, PostgresAdapter, PostgresDialect, PostgresQueryCompiler } from 'kysely'
import { Client, type ClientConfig, Pool, type PoolClient, types } from 'pg'
import { StoreUnavailable, type Transaction, type Value } from '../store.ts'
import type { Tables } from '../tables.ts'
import { isConnectionUnusable, isStalePlan, toStoreError } from './postgres-errors.ts'

/** Where the tables are; what else is in the database is not touched. */
export const schema = 'execution_service'

const applicationName = 'execution-service'
const connectMillisecondsMax = 5000
/** Whoever has stopped in the middle of a transaction does not keep others from their rows for longer. */
const idleMillisecondsMax = 5000
const lockMillisecondsMax = 5000
/** Beyond what the server is told: for one that does not answer at all. */
const queryMillisecondsMax = 30_000

/** `int8` and `numeric` are read as numbers: moments, counts and sums are far below 2^53. */
const numbers: readonly number[] = [types.builtins.INT8, types.builtins.NUMERIC]
const parsers = {
  getTypeParser: ((id: number, format?: 'text' | 'binary') =>
    numbers.includes(id) ? Number : types.getTypeParser(id, format as 'text')) as typeof types.getTypeParser,
}

function configOf(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: connectMillisecondsMax,
    query_timeout: queryMillisecondsMax,
    keepAlive: true,
    types: parsers,
  }
}

/**
 * Every statement has an index that it is written for, however few rows the server takes a table to have. A bitmap of
 * them would be read past what was finished long ago at each use; an index scan leaves out what it has found dead once.
 */
const planner = ['jit', 'enable_seqscan', 'enable_bitmapscan']

/** Said on each connection, since a URL may have options of its own, which would replace those of the configuration. */
const settings = `SET search_path TO ${schema}; SET lock_timeout TO ${lockMillisecondsMax};
  SET idle_in_transaction_session_timeout TO ${idleMillisecondsMax};
  ${planner.map((name) => `SET ${name} TO off;`).join(' ')}
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

export function openPool(url: string, connectionsMax: number): Pool {
  const pool = new Pool({
    ...configOf(url),
    max: connectionsMax,
    // Acknowledged means durable, whatever the server's default is.
    onConnect: async (client) => void (await client.query(settings)),
  })
  // Connections are lost while nobody uses them, too; the pool opens others.
  pool.on('error', () => {})
  return pool
}

/** A connection of its own, for what holds it: migrating, which may take long, and listening. */
export async function connect(url: string, queryMilliseconds = queryMillisecondsMax): Promise<Client> {
  const client = new Client({ ...configOf(url), query_timeout: queryMilliseconds })
  client.on('error', () => {})
  await client.connect()
  return client
}

type Runner = Pick<PoolClient, 'query'>

/** Whatever the reason for which there is no connection, the next one may be had. @throws {StoreUnavailable} */
async function connectionOf(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw new StoreUnavailable((error as Error).message, { cause: error })
  }
}

/** Each statement on whichever connection is free. */
export function runnerOnPool(pool: Pool): Runner {
  const query = async (...statement: unknown[]) => {
    // Each connection may be outdated, and is given up then.
    for (let outdated = 0; ; outdated += 1) {
      try {
        return await onAnyOf(pool, statement)
      } catch (error) {
        if (!isStalePlan(error) || outdated === pool.options.max) throw error
      }
    }
  }
  return { query: query as Runner['query'] }
}

function onAnyOf(pool: Pool, statement: unknown[]): Promise<unknown> {
  return withConnection(pool, (client) => (client.query as (...statement: unknown[]) => Promise<unknown>)(...statement))
}

/**
 * Lends `act` a connection of the pool, which gives it up afterwards where it was lost or is of no use any more.
 *
 * @param undo what is done on the connection when `act` has failed; where that fails too, it is given up.
 */
export async function withConnection<Result>(
  pool: Pool,
  act: (client: PoolClient) => Promise<Result>,
  undo: (client: PoolClient) => Promise<unknown> = async () => {},
): Promise<Result> {
  const client = await connectionOf(pool)
  let broken = false
  // While it is lent out, nobody else hears that it was lost.
  const onError = () => {
    broken = true
  }
  client.on('error', onError)
  try {
    await forgetOldPlans(client)
    return await act(client)
  } catch (error) {
    broken ||= isConnectionUnusable(error)
    broken ||= await undo(client).then(
      () => false,
      () => true,
    )
    throw error
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

const plansMillisecondsMax = 1000
const plannedAt = new WeakMap<PoolClient, number>()

/**
 * A statement is planned by how large its tables are at that moment. A plan that was made while they were nearly empty
 * reads all of them at each use, and would be kept until the server counts their rows anew: a minute, in which thousands
 * of runs may come.
 */
async function forgetOldPlans(client: PoolClient): Promise<void> {
  const now = performance.now()
  const before = plannedAt.get(client)
  if (before !== undefined && now - before < plansMillisecondsMax) return
  plannedAt.set(client, now)
  if (before !== undefined) await client.query('DISCARD PLANS')
}

/** Statements on one connection, or on whichever of the pool is free. */
export function createTransaction(runner: Runner): Transaction {
  return {
    query: createKysely(runner),
    forUpdate: 'FOR UPDATE',
    all: async <Row extends object>(sql: string, values: readonly Value[]): Promise<Row[]> => {
      try {
        return (await runner.query<Row>({ ...prepared(withNumbers(sql)), values: [...values] })).rows
      } catch (error) {
        throw toStoreError(error)
      }
    },
  }
}

/** So many different statements a connection keeps prepared; those of all callers are fewer by far. */
const preparedMax = 500
const names = new Map<string, string>()

/** A statement under a name by which each connection prepares it once: planning took longer than most statements. */
export function prepared(text: string): { name?: string; text: string } {
  let name = names.get(text)
  if (name === undefined) {
    if (names.size >= preparedMax) return { text }
    name = `s${names.size}`
    names.set(text, name)
  }
  return { name, text }
}

const numbered = new Map<string, string>()

/** `?` becomes PostgreSQL's `$1`. */
function withNumbers(sql: string): string {
  let text = numbered.get(sql)
  if (text === undefined) {
    let count = 0
    text = sql.replaceAll('?', () => `$${++count}`)
    numbered.set(sql, text)
  }
  return text
}

/** Text is compared byte by byte, as in the embedded store, and what that calls `blob` is `bytea`. */
class QueryCompiler extends PostgresQueryCompiler {
  protected override visitDataType(node: Parameters<PostgresQueryCompiler['visitDataType']>[0]): void {
    if (node.dataType === 'text') this.append('text collate "C"')
    else if (node.dataType === 'blob') this.append('bytea')
    else super.visitDataType(node)
  }
}

class Dialect extends PostgresDialect {
  override createQueryCompiler(): QueryCompiler {
    return new QueryCompiler()
  }

  override createAdapter(): PostgresAdapter {
    return new PostgresAdapter()
  }
}

export function createKysely(runner: Runner): Kysely<Tables> {
  const query = async (sql: string, values?: readonly unknown[]) => {
    try {
      // A statement without values may be one that cannot be prepared, or several.
      if (!values || values.length === 0) return await runner.query(sql)
      return await runner.query({ ...prepared(sql), values: [...values] })
    } catch (error) {
      throw toStoreError(error)
    }
  }
  const connection = { query, release: () => {} }
  const pool = { connect: async () => connection, end: async () => {} }
  // Kysely asks for more of a connection than it uses of one that streams nothing.
  return new Kysely<Tables>({ dialect: new Dialect({ pool: pool as never }) })
}
