/** Checks, creates and migrates the database, one process at a time, and explains why a database cannot be used. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import { DatabaseUrlError, endpointOf } from '../database-url.ts'
import { describeCauses } from '../error-causes.ts'
import { canServe, migrate, StoreTooNew } from '../migrations/migrations.ts'
import { StoreUnavailable } from '../store.ts'
import { connect, createKysely, postgresColumnTypes, schema } from './postgres-connections.ts'
import { errorCode, isSqlState } from './postgres-errors.ts'

/** The database cannot be used; the message says why, and what to do. */
export class DatabaseError extends Error {}

/** The database accepts no connection at this moment; the message says why, and what to do if that lasts. */
export class DatabaseBusy extends StoreUnavailable {}

export const minimumVersion = 15
/** Id of the advisory lock that serializes migrations. */
export const migrationLockId = 7_361_024_518
/** How long a process waits for another one that migrates, and for transactions that lock the tables to migrate. */
const waitMillisecondsMax = 60_000
const retryMilliseconds = 100
/**
 * While a migration waits for a table, everything that uses the table waits behind it. It gives up well before those
 * statements do, lets them go on, and tries again.
 */
const tableLockMillisecondsMax = 1000
/** Creating an index on a large table takes long; a migration that times out would start over each time. */
const migrationMillisecondsMax = 60 * 60 * 1000

/**
 * Creates or migrates the service's tables. Processes that start together do so one after another. A process takes no lock
 * when there is nothing to do, so that one of an earlier version can start while another creates an index.
 *
 * @param prepareMore creates the store's other objects under the same lock.
 * @throws {DatabaseError}
 */
export async function prepareDatabase(url: string, prepareMore: () => Promise<void>): Promise<void> {
  const client = await connect(url, migrationMillisecondsMax).catch((error: unknown) => {
    throw toDatabaseError(error, url)
  })
  try {
    await rejectUnusable(client, url)
    await rejectTransactionPooler(client, url)
    await client.query(`SET search_path TO ${schema}`)
    if (await isPrepared(client)) return
    await lockMigrations(client, url)
    // CREATE SCHEMA IF NOT EXISTS would require the privilege even where the schema exists.
    const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
    if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`)
    await migrateBetweenWrites(client, url)
    await prepareMore()
  } catch (error) {
    throw toDatabaseError(error, url)
  } finally {
    // Releases the lock.
    await client.end().catch(() => {})
  }
}

async function isPrepared(client: Client): Promise<boolean> {
  if (!(await canServe(createKysely(client)))) return false
  const { rows } = await client.query<{ exists: boolean }>("SELECT to_regclass('counters') IS NOT NULL AS exists")
  return rows[0]?.exists === true
}

/** A statement that waited for the lock would keep its snapshot, for whose end the creation of an index waits. */
async function lockMigrations(client: Client, url: string): Promise<void> {
  const deadline = performance.now() + waitMillisecondsMax
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [
      migrationLockId,
    ])
    if (rows[0]?.locked) return
    if (performance.now() > deadline) {
      throw new DatabaseError(
        `Another process has been migrating the database at ${describeDatabase(url)} for ${waitMillisecondsMax / 1000} seconds: wait until it has finished, and start again.`,
      )
    }
    await delay(retryMilliseconds)
  }
}

/** lock_not_available, and deadlock_detected: the statements of other processes lock tables in another order. */
const lockStates = ['55P03', '40P01']

async function migrateBetweenWrites(client: Client, url: string): Promise<void> {
  const deadline = performance.now() + waitMillisecondsMax
  for (;;) {
    try {
      await client.query(`SET lock_timeout TO ${tableLockMillisecondsMax}`)
      return await migrate(createKysely(client), postgresColumnTypes)
    } catch (error) {
      if (!lockStates.includes(errorCode(error) ?? '')) throw error
      if (performance.now() > deadline) {
        throw new DatabaseError(
          `Other transactions have locked tables of the database at ${describeDatabase(url)} for ${waitMillisecondsMax / 1000} seconds, so that they cannot be migrated: end those that pg_stat_activity shows, and start again.`,
          { cause: error },
        )
      }
      await delay(retryMilliseconds)
    }
  }
}

async function rejectUnusable(client: Client, url: string): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string }>(
    "SELECT current_setting('server_version_num')::int / 10000 AS version, current_setting('server_encoding') AS encoding",
  )
  const [{ version, encoding }] = rows as [{ version: number; encoding: string }]
  if (version < minimumVersion) {
    throw new DatabaseError(
      `DATABASE_URL points to PostgreSQL ${version}: version ${minimumVersion} or later is required.`,
    )
  }
  if (encoding !== requiredEncoding)
    throw new DatabaseError(`The database at ${describeDatabase(url)} ${otherEncoding(encoding)}.`)
}

export const requiredEncoding = 'UTF8'

/** What is wrong with a database of another encoding, and what to do, after the last colon. */
export function otherEncoding(encoding: string): string {
  return `has the encoding ${encoding}, which cannot store every text: create it again by \`CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0\``
}

const setNameSql = "SELECT set_config('execution_service.connection', $1, false)"
const getNameSql = "SELECT current_setting('execution_service.connection', true) AS name"
/** A pooler with other clients may lend two different connections by chance. */
const poolerChecks = 3

/**
 * Locks, LISTEN and prepared statements need a session. A pooler in transaction mode lends two clients the same server
 * connection, so each sees the settings of the other.
 */
export async function rejectTransactionPooler(client: Client, url: string): Promise<void> {
  const other = await connect(url)
  try {
    for (let check = 1; check <= poolerChecks; check += 1) {
      await client.query(setNameSql, ['one'])
      await other.query(setNameSql, ['other'])
      const { rows } = await client.query<{ name: string | null }>(getNameSql)
      if (rows[0]?.name !== 'one') throw new DatabaseError(transactionPooler(describeDatabase(url)))
    }
  } finally {
    await other.end().catch(() => {})
  }
}

const transactionPooler = (where: string) =>
  `The pooler at ${where} assigns a connection per transaction, like PgBouncer in transaction mode: set DATABASE_URL to PostgreSQL itself, or to a pooler in session mode.`

const insufficientPrivilege = (where: string, message: string) =>
  `The user of DATABASE_URL lacks privileges in the database at ${where}: ${message}. Grant it CREATE on the database, or make it the owner of the schema ${schema}.`

/** Messages by SQLSTATE, for conditions that pass: too_many_connections, cannot_connect_now. */
const busyMessages: Readonly<Record<string, (where: string, message: string) => string>> = {
  '53300': (where, message) =>
    `PostgreSQL at ${where} has no free connection (${message}): raise its max_connections, or lower DATABASE_CONNECTIONS.`,
  '57P03': (where, message) => `PostgreSQL at ${where} accepts no connections (${message}): wait until it does.`,
}

/** Messages by SQLSTATE. */
const messages: Readonly<Record<string, (where: string, message: string) => string>> = {
  '28P01': (where) => `PostgreSQL at ${where} rejected the password in DATABASE_URL: correct it.`,
  '28000': (where, message) => `PostgreSQL at ${where} rejected the user of DATABASE_URL: ${message}.`,
  '3D000': (where, message) =>
    `PostgreSQL at ${where} has no such database: ${message}. Create it, or correct DATABASE_URL.`,
  '42501': insufficientPrivilege,
  // invalid_schema_name: the role has no USAGE privilege on the existing schema.
  '3F000': insufficientPrivilege,
  '25006': (where) => `PostgreSQL at ${where} is read-only, like a standby: set DATABASE_URL to the primary.`,
}

/** Explains why the database cannot be used, without the password, which messages of the driver may repeat. */
export function toDatabaseError(error: unknown, url: string): unknown {
  if (error instanceof DatabaseError || error instanceof DatabaseBusy || !(error instanceof Error)) return error
  if (error instanceof DatabaseUrlError) return new DatabaseError(error.message)
  const where = describeDatabase(url)
  const code = errorCode(error)
  const reason = describeCauses(error)
  const busyMessage = busyMessages[code ?? '']
  if (busyMessage) return new DatabaseBusy(busyMessage(where, reason), { cause: error })
  const explain = (message: string) => new DatabaseError(message, { cause: error })
  const message = messages[code ?? '']
  if (message) return explain(message(where, reason))
  const isConnectionError = code === undefined || !isSqlState(code) || /^(08|57|53)/.test(code)
  if (!isConnectionError || error instanceof StoreTooNew) return error
  if (/password must be a string/.test(reason)) {
    return explain(`PostgreSQL at ${where} requires a password: add it to DATABASE_URL.`)
  }
  if (/SSL|TLS|certificate/i.test(reason)) {
    const advice = 'set up TLS on the server, or correct sslmode and sslrootcert in DATABASE_URL'
    return explain(`The TLS settings of PostgreSQL at ${where} and DATABASE_URL do not match (${reason}): ${advice}.`)
  }
  return explain(`PostgreSQL at ${where} cannot be reached (${reason}): start it, or correct DATABASE_URL.`)
}

/** Formats host, port and database for messages. */
export function describeDatabase(text: string): string {
  const url = new URL(text)
  const { host, port } = endpointOf(url)
  return `${host}:${port}${url.pathname}`
}
