/** Checks the database of DATABASE_URL: access, durability, speed and connections. */
import type { Config } from '../../config/config.ts'
import type { DatabaseFacts, DatabaseInspection } from '../../storage/postgres/postgres-inspection.ts'
import { minimumVersion, otherEncoding, requiredEncoding } from '../../storage/postgres/postgres-schema.ts'
import {
  type Finding,
  fail,
  failWithMessage,
  formatBytes,
  notChecked,
  type Opened,
  ok,
  pluralize,
  warn,
} from './finding.ts'

/** The newest version that the tests run on. */
const newestVersion = 18

export type OpenedDatabase = Opened<DatabaseInspection>

export function checkDatabase(opened: OpenedDatabase): Finding {
  if ('error' in opened) return failWithMessage(opened.error)
  const { path, facts } = opened.inspection as DatabaseInspection
  const found = `PostgreSQL ${facts.version} at ${path}`
  if (facts.version < minimumVersion) {
    return fail(`${found} is too old`, `Set DATABASE_URL to a server of version ${minimumVersion} or later.`)
  }
  if (facts.encoding !== requiredEncoding) return failWithMessage(`${found} ${otherEncoding(facts.encoding)}.`)
  if (facts.isReadOnly) return fail(`${found} is a read-only standby`, 'Set DATABASE_URL to the primary.')
  if (facts.version <= newestVersion) return ok(found)
  return warn(`${found} is newer than any tested version`, `Use version ${minimumVersion} to ${newestVersion}.`)
}

const databaseNotChecked = notChecked('the database cannot be queried', 'the database')

function factCheck(find: (facts: DatabaseFacts, config: Config) => Finding) {
  return (opened: OpenedDatabase, config: Config): Finding =>
    'error' in opened || !opened.inspection ? databaseNotChecked : find(opened.inspection.facts, config)
}

export const checkDatabasePrivileges = factCheck(({ role, canCreateSchema, hasSchema, foreignOwned }) => {
  const [first] = foreignOwned
  if (first) {
    const more = foreignOwned.length > 1 ? ` (and ${foreignOwned.length - 1} more)` : ''
    return fail(
      `${first}${more} is not owned by "${role}", so upgrades cannot change it`,
      `Run \`ALTER … OWNER TO ${role}\` for each, or connect as their owner.`,
    )
  }
  if (hasSchema) return ok(`"${role}" owns the schema`)
  if (canCreateSchema) return ok(`"${role}" may create the schema, which the first start does`)
  return fail(
    `"${role}" may not create the schema that the service needs`,
    `Run \`GRANT CREATE ON DATABASE … TO ${role}\`, or make ${role} the owner of the database.`,
  )
})

export const checkDatabaseDurability = factCheck(({ fsync, fullPageWrites }) => {
  const off = [!fsync && 'fsync', !fullPageWrites && 'full_page_writes'].filter(Boolean)
  if (off.length === 0) return ok('fsync and full_page_writes are on; the service itself turns synchronous_commit on')
  const [verb, object] = off.length > 1 ? ['are', 'them'] : ['is', 'it']
  return warn(
    `${off.join(' and ')} ${verb} off: a crash or power cut may lose acknowledged runs`,
    `Turn ${object} on in postgresql.conf, and restart PostgreSQL.`,
  )
})

export const checkConnections = factCheck((facts, { DATABASE_CONNECTIONS }) => {
  const { connectionsMax, connectionsUsed, connectionsReserved } = facts
  const left = Math.max(0, connectionsMax - connectionsReserved - connectionsUsed)
  // One more listens for notifications, and one more migrates at the start.
  const needed = DATABASE_CONNECTIONS + 2
  const found = `${connectionsUsed} of ${connectionsMax} in use; each process needs up to ${needed}`
  if (left >= needed) return ok(found)
  return warn(
    `${found}, and ${left} are left`,
    'Raise max_connections in postgresql.conf, or lower DATABASE_CONNECTIONS on all processes.',
  )
})

/** Longer than any transaction of the service; `pg_dump` takes longer. */
const snapshotSecondsMax = 300

export const checkSnapshots = factCheck(({ oldestSnapshot }) => {
  if (!oldestSnapshot || oldestSnapshot.seconds < snapshotSecondsMax) return ok('no transaction has kept one for long')
  const { seconds, held } = oldestSnapshot
  return warn(
    `${held} has kept a snapshot for ${pluralize(Math.round(seconds / 60), 'minute')}: dead rows stay, and claims get slower`,
    'End its transaction.',
  )
})

export const checkDatabaseSize = factCheck(({ sizeBytes }) => ok(`${formatBytes(sizeBytes)} in the whole database`))

export async function checkDatabaseStore(opened: OpenedDatabase): Promise<Finding> {
  if ('error' in opened || !opened.inspection) return databaseNotChecked
  const { isInitialized, path, schema } = opened.inspection
  if (!isInitialized) return ok('none yet; the first start creates it')
  const newer = `${path} was migrated by a newer version of this service (it has ${schema.newer.join(', ')})`
  if (!schema.isCompatible) return fail(newer, 'Start that version, or restore a backup.')
  if (schema.newer.length > 0) return ok(`${newer}, on whose schema this version runs`)
  if (schema.pending.length === 0) return ok(`${path} has this version's schema`)
  return ok(`${path} has an earlier schema; the next start migrates it (${schema.pending.join(', ')})`)
}

const slowMicroseconds = 50_000

export async function checkCommit(opened: OpenedDatabase): Promise<Finding> {
  if ('error' in opened || !opened.inspection) return databaseNotChecked
  if (opened.inspection.facts.isReadOnly) return notChecked('the database is read-only', 'the database')
  return evaluateCommit(await opened.inspection.commitMicroseconds())
}

export function evaluateCommit(microseconds: number): Finding {
  const found = `a commit takes ${(microseconds / 1000).toFixed(1)} ms from here`
  if (microseconds <= slowMicroseconds) return ok(found)
  return warn(
    `${found}: each request that queues a run waits that long`,
    "Check the database's disk and the network, or move the service closer to the database.",
  )
}
