/** Diagnoses a PostgreSQL database while the service uses it, without changing it. */
import type { Client } from 'pg'
import { schemaDifference } from '../migrations/migrations.ts'
import type { StoreInspection } from '../store.ts'
import { connect, createTransaction, schema } from './postgres-connections.ts'
import { errorCode } from './postgres-errors.ts'
import { describeDatabase, rejectTransactionPooler, toDatabaseError } from './postgres-schema.ts'

export interface DatabaseInspection extends StoreInspection {
  /** Whether the service's tables exist. */
  isInitialized: boolean
  facts: DatabaseFacts
  /** Returns the median duration of a commit that waits for the disk. */
  commitMicroseconds(): Promise<number>
}

export interface DatabaseFacts {
  /** Major version of PostgreSQL, such as 18. */
  version: number
  encoding: string
  isReadOnly: boolean
  /** Server settings that make a commit durable. */
  fsync: boolean
  fullPageWrites: boolean
  role: string
  canCreateSchema: boolean
  hasSchema: boolean
  /** The service's schema and tables that another role owns, which upgrades cannot change. */
  foreignOwned: string[]
  connectionsMax: number
  connectionsUsed: number
  /** Connections reserved for superusers and privileged roles. */
  connectionsReserved: number
  sizeBytes: number
  /** What has kept a snapshot for the longest time; another role's transactions need `pg_read_all_stats` to be seen. */
  oldestSnapshot: { held: string; seconds: number } | null
}

const factsSql = `SELECT current_setting('server_version_num')::int / 10000 AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() AS "isReadOnly",
  current_setting('fsync')::bool AS fsync,
  current_setting('full_page_writes')::bool AS "fullPageWrites",
  current_user::text AS role,
  has_database_privilege(current_database(), 'CREATE') AS "canCreateSchema",
  to_regnamespace('${schema}') IS NOT NULL AS "hasSchema",
  ARRAY(
    SELECT nspname::text FROM pg_namespace WHERE nspname = '${schema}' AND NOT pg_has_role(nspowner, 'USAGE')
    UNION ALL
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '${schema}' AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE')
    ORDER BY 1
  ) AS "foreignOwned",
  current_setting('max_connections')::int AS "connectionsMax",
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS "connectionsUsed",
  current_setting('superuser_reserved_connections')::int
    + coalesce(current_setting('reserved_connections', true)::int, 0) AS "connectionsReserved",
  pg_database_size(current_database()) AS "sizeBytes",
  (
    SELECT json_build_object('held', held, 'seconds', extract(epoch FROM clock_timestamp() - since))
    FROM (
      SELECT format('process %s of PostgreSQL (%s, %s)', pid, coalesce(nullif(application_name, ''), usename), state) AS held,
        xact_start AS since
      FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
      UNION ALL
      SELECT format('the prepared transaction %s', gid), prepared FROM pg_prepared_xacts
      ORDER BY since LIMIT 1
    ) AS oldest
  ) AS "oldestSnapshot"`

/** SQLSTATE too_many_connections, for the server, a database or a role. */
const tooManyConnections = '53300'

/** @throws {DatabaseError} when the database cannot be reached. */
export async function inspectDatabase(url: string): Promise<DatabaseInspection> {
  let client: Client | undefined
  try {
    client = await connect(url)
    // If the server has no second connection, `facts` reports that.
    await rejectTransactionPooler(client, url).catch((error: unknown) => {
      if (errorCode(error) !== tooManyConnections) throw error
    })
    await client.query(`SET search_path TO ${schema}; SET default_transaction_read_only TO on`)
    const tx = createTransaction(client)
    const { rows } = await client.query<DatabaseFacts>(factsSql)
    const [facts] = rows as [DatabaseFacts]
    const isInitialized = facts.hasSchema
    const opened = client
    const close = () => opened.end()
    return {
      path: describeDatabase(url),
      isInitialized,
      facts,
      store: { read: tx },
      schema: isInitialized ? await schemaDifference(tx.query) : { pending: [], newer: [], isCompatible: true },
      commitMicroseconds: () => measureCommitMicroseconds(opened),
      close,
    }
  } catch (error) {
    await client?.end().catch(() => {})
    throw toDatabaseError(error, url)
  }
}

const commits = 7

/** A transactional message to the write-ahead log forces a durable commit, and stores nothing in the database. */
async function measureCommitMicroseconds(client: Client): Promise<number> {
  const times: number[] = []
  for (let commit = 0; commit < commits; commit += 1) {
    const startedAt = performance.now()
    await client.query("SELECT pg_logical_emit_message(true, 'execution-service', '')")
    times.push((performance.now() - startedAt) * 1000)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(commits / 2)] ?? 0
}
