/** Connections to PostgreSQL: their settings, prepared statements, values as the embedded store gives them, and Kysely. */
import { Kysely, PostgresAdapter, PostgresDialect, PostgresQueryCompiler } from 'kysely'
import { Client, type ClientConfig, Pool, type PoolClient, types } from 'pg'
import { type Session, StoreUnavailable, type Value } from '../store.ts'
import type { Tables } from '../tables.ts'
import { asUnavailable } from './failures.ts'

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

/** Said on each connection, since a URL may have options of its own, which would replace those of the configuration. */
const settings = `SET search_path TO ${schema}; SET lock_timeout TO ${lockMillisecondsMax};
  SET idle_in_transaction_session_timeout TO ${idleMillisecondsMax};
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

/** A connection of its own, for what holds it: migrating and listening. */
export async function connect(url: string): Promise<Client> {
  const client = new Client(configOf(url))
  client.on('error', () => {})
  await client.connect()
  return client
}

type Runner = Pick<PoolClient, 'query'>

/** Whatever the reason for which there is no connection, the next one may be had. @throws {StoreUnavailable} */
export async function connectionOf(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw new StoreUnavailable((error as Error).message, { cause: error })
  }
}

/** Each statement on whichever connection is free. */
export function anyOf(pool: Pool): Runner {
  const query = async (...statement: unknown[]) => {
    const client = await connectionOf(pool)
    let lost = false
    const onError = () => {
      lost = true
    }
    client.on('error', onError)
    try {
      return await (client.query as (...statement: unknown[]) => Promise<unknown>)(...statement)
    } finally {
      client.off('error', onError)
      client.release(lost)
    }
  }
  return { query: query as Runner['query'] }
}

/** Statements on one connection, or on whichever of the pool is free. */
export function sessionOn(runner: Runner): Session {
  return {
    query: kyselyOn(runner),
    forUpdate: 'FOR UPDATE',
    all: async <Row extends object>(sql: string, values: readonly Value[]): Promise<Row[]> => {
      try {
        return (await runner.query<Row>({ ...prepared(sql), values: [...values] })).rows
      } catch (error) {
        throw asUnavailable(error)
      }
    },
  }
}

interface Statement {
  name: string
  text: string
}

const statements = new Map<string, Statement>()

/** By a name under which each connection prepares it once; `?` becomes PostgreSQL's `$1`. */
function prepared(sql: string): Statement {
  let statement = statements.get(sql)
  if (!statement) {
    let count = 0
    statement = { name: `s${statements.size}`, text: sql.replaceAll('?', () => `$${++count}`) }
    statements.set(sql, statement)
  }
  return statement
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

export function kyselyOn(runner: Runner): Kysely<Tables> {
  const query = async (sql: string, values: readonly unknown[]) => {
    try {
      return await runner.query(sql, values as unknown[])
    } catch (error) {
      throw asUnavailable(error)
    }
  }
  const connection = { query, release: () => {} }
  const pool = { connect: async () => connection, end: async () => {} }
  // Kysely asks for more of a connection than it uses of one that streams nothing.
  return new Kysely<Tables>({ dialect: new Dialect({ pool: pool as never }) })
}
