/** Brings the database to this version's schema, one process at a time, and says in a sentence what is in the way. */
import type { Client } from 'pg'
import { migrate, StoreTooNew } from '../migrations/migrations.ts'
import { connect, createKysely, schema } from './postgres-connections.ts'
import { errorCode } from './postgres-errors.ts'

/** A database that cannot be used as it is; the message says what is wrong, and what to do. */
export class DatabaseError extends Error {}

export const minimumVersion = 15
/** Of no meaning but that every process of the service takes the same: whoever has it migrates. */
export const migrationLockId = 7_361_024_518
const waitMillisecondsMax = 60_000
/** An index of a large table takes its time. Whoever gives up sooner would begin again, and never be done. */
const migrationMillisecondsMax = 60 * 60 * 1000

/**
 * Makes or migrates what `act` and the service need. Processes that start together take turns.
 *
 * @param act what else has to be made, by the process whose turn it is.
 * @throws {DatabaseError}
 */
export async function prepareDatabase(url: string, act: () => Promise<void>): Promise<void> {
  const client = await connect(url, migrationMillisecondsMax).catch((error: unknown) => {
    throw toDatabaseError(error, url)
  })
  try {
    await refuseOldVersions(client)
    await rejectTransactionPooler(client, url)
    await client.query(`SET lock_timeout TO ${waitMillisecondsMax}`)
    await client.query('SELECT pg_advisory_lock($1)', [migrationLockId])
    // Where it exists, the right to make it is not asked for.
    const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
    if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`)
    await client.query(`SET search_path TO ${schema}`)
    await migrate(createKysely(client))
    await act()
  } catch (error) {
    throw toDatabaseError(error, url)
  } finally {
    // With the connection goes the lock.
    await client.end().catch(() => {})
  }
}

async function refuseOldVersions(client: Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>('SHOW server_version_num')
  const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000)
  if (version >= minimumVersion) return
  throw new DatabaseError(
    `The database of DATABASE_URL is PostgreSQL ${version}: set it to one of version ${minimumVersion} or later.`,
  )
}

const nameSql = "SELECT set_config('execution_service.connection', $1, false)"
const nameOfSql = "SELECT current_setting('execution_service.connection', true) AS name"
/** A pooler that others use, too, may happen to have given each its own. */
const looks = 3

/**
 * What is said on a connection has to hold there: locks, bells and prepared statements. A pooler that lends connections
 * for a transaction gives two clients the same one, and each finds what the other has said.
 */
export async function rejectTransactionPooler(client: Client, url: string): Promise<void> {
  const other = await connect(url)
  try {
    for (let look = 1; look <= looks; look += 1) {
      await client.query(nameSql, ['one'])
      await other.query(nameSql, ['other'])
      const { rows } = await client.query<{ name: string | null }>(nameOfSql)
      if (rows[0]?.name !== 'one') throw new DatabaseError(throughPooler(describeDatabase(url)))
    }
  } finally {
    await other.end().catch(() => {})
  }
}

const throughPooler = (where: string) =>
  `The pooler at ${where} gives each transaction another connection, as PgBouncer does in transaction mode: set DATABASE_URL to PostgreSQL itself, or to a pooler in session mode.`

const lacksRights = (where: string, message: string) =>
  `The user of DATABASE_URL lacks rights in the database at ${where}: ${message}. Grant it CREATE on the database, or make it the owner of the schemas ${schema} and ${schema}_jobs.`

const sentences: Readonly<Record<string, (where: string, message: string) => string>> = {
  '28P01': (where) => `PostgreSQL at ${where} refuses the password in DATABASE_URL: correct it.`,
  '28000': (where, message) => `PostgreSQL at ${where} does not let the user of DATABASE_URL in: ${message}.`,
  '3D000': (where, message) =>
    `PostgreSQL at ${where} has no such database: ${message}. Create it, or correct DATABASE_URL.`,
  '42501': lacksRights,
  // No schema to create in: the role may not even look into the one that is there.
  '3F000': lacksRights,
  '55P03': (where) =>
    `Another process has been migrating the database at ${where} for ${waitMillisecondsMax / 1000} seconds: wait until it is done, and start again.`,
  '25006': (where) => `The PostgreSQL at ${where} only reads, as a standby does: set DATABASE_URL to the primary.`,
}

/** Without the password, which the URL has and messages of the driver may repeat. */
export function toDatabaseError(error: unknown, url: string): unknown {
  if (error instanceof DatabaseError || !(error instanceof Error)) return error
  const where = describeDatabase(url)
  const code = errorCode(error)
  const sentence = sentences[code ?? '']
  const message = messageOf(error)
  if (sentence) return new DatabaseError(sentence(where, message), { cause: error })
  const isOfConnection = code === undefined || /^(08|57|53|E[A-Z])/.test(code)
  if (!isOfConnection || error instanceof StoreTooNew) return error
  if (/password must be a string/.test(message)) {
    return new DatabaseError(`PostgreSQL at ${where} asks for a password: put it into DATABASE_URL.`, {
      cause: error,
    })
  }
  if (/SSL|TLS|certificate/i.test(message)) {
    const remedy = 'set up TLS there, or correct sslmode in DATABASE_URL'
    return new DatabaseError(`PostgreSQL at ${where} and DATABASE_URL do not agree on TLS (${message}): ${remedy}.`, {
      cause: error,
    })
  }
  return new DatabaseError(
    `PostgreSQL at ${where} cannot be reached (${message}): start it, or correct DATABASE_URL.`,
    { cause: error },
  )
}

/** Of several addresses that were tried, each has failed in its way. */
function messageOf(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map((each: Error) => each.message).join('; ')
  return error.message
}

/** For people. */
export function describeDatabase(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || 5432}${pathname}`
}
