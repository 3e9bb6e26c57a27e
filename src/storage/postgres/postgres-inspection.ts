/** Reads what a database is like for the service, beside the processes that use it, and changes nothing in it. */
import type { Client } from 'pg'
import { schemaDifference } from '../migrations/migrations.ts'
import { newestMoment, readOnlyStore, type StoreInspection } from '../store-inspection.ts'
import { connect, createTransaction, schema } from './postgres-connections.ts'
import { errorCode } from './postgres-errors.ts'
import { describeDatabase, rejectTransactionPooler, toDatabaseError } from './postgres-schema.ts'

export interface DatabaseInspection extends StoreInspection {
  /** Whether the service's tables are there. */
  isInitialized: boolean
  facts: DatabaseFacts
  /** How long a commit takes that waits for the disk: the middle of some. */
  commitMicroseconds(): Promise<number>
}

export interface DatabaseFacts {
  /** Of PostgreSQL, such as 18. */
  version: number
  /** As a standby does. */
  isReadOnly: boolean
  /** Settings of the server's that make a commit durable. */
  fsync: boolean
  fullPageWrites: boolean
  role: string
  /** Whether the role may make schemas. */
  canCreateSchema: boolean
  /** Those of the service's schemas that exist. */
  schemas: string[]
  /** Schemas and tables of the service that belong to another role, which upgrades cannot change. */
  foreignOwned: string[]
  connectionsMax: number
  connectionsUsed: number
  /** Kept for superusers and the like. */
  connectionsReserved: number
  sizeBytes: number
}

const ours = `('${schema}', '${schema}_jobs')`

const factsSql = `SELECT current_setting('server_version_num')::int / 10000 AS version,
  pg_is_in_recovery() AS "readsOnly",
  current_setting('fsync')::bool AS fsync,
  current_setting('full_page_writes')::bool AS "fullPageWrites",
  current_user::text AS role,
  has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
  ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname IN ${ours} ORDER BY 1) AS schemas,
  ARRAY(
    SELECT nspname::text FROM pg_namespace WHERE nspname IN ${ours} AND NOT pg_has_role(nspowner, 'USAGE')
    UNION ALL
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ${ours} AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE')
    ORDER BY 1
  ) AS foreign,
  current_setting('max_connections')::int AS "connectionsMax",
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS "connectionsUsed",
  current_setting('superuser_reserved_connections')::int
    + coalesce(current_setting('reserved_connections', true)::int, 0) AS "connectionsReserved",
  pg_database_size(current_database()) AS "sizeBytes"`

/** Of a server, a database or a role (PostgreSQL, appendix A). */
const tooManyConnections = '53300'

/** @throws {DatabaseError} when it cannot be reached. */
export async function inspectDatabase(url: string): Promise<DatabaseInspection> {
  let client: Client | undefined
  try {
    client = await connect(url)
    // Where there is no room for a second connection, the count of those that are left says so.
    await rejectTransactionPooler(client, url).catch((error: unknown) => {
      if (errorCode(error) !== tooManyConnections) throw error
    })
    await client.query(`SET search_path TO ${schema}; SET default_transaction_read_only TO on`)
    const tx = createTransaction(client)
    const { rows } = await client.query<DatabaseFacts>(factsSql)
    const [facts] = rows as [DatabaseFacts]
    const isMade = facts.schemas.includes(schema)
    const opened = client
    const close = () => opened.end()
    return {
      path: describeDatabase(url),
      isInitialized: isMade,
      facts,
      store: readOnlyStore(tx, close),
      schema: isMade ? await schemaDifference(tx.query) : { pending: [], newer: [] },
      findLastWriteAt: () => newestMoment(tx),
      commitMicroseconds: () => commitMicroseconds(opened),
      close,
    }
  } catch (error) {
    await client?.end().catch(() => {})
    throw toDatabaseError(error, url)
  }
}

const commits = 7

/** A message to the write-ahead log makes a commit wait for the disk, and leaves nothing in the database. */
async function commitMicroseconds(client: Client): Promise<number> {
  const times: number[] = []
  for (let commit = 0; commit < commits; commit += 1) {
    const begun = performance.now()
    await client.query("SELECT pg_logical_emit_message(true, 'execution-service', '')")
    times.push((performance.now() - begun) * 1000)
  }
  return times.sort((a, b) => a - b)[Math.floor(commits / 2)] ?? 0
}
