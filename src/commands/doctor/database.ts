/** Whether the database of DATABASE_URL can be used, keeps what it acknowledges, and has room for the service. */
import type { Config } from '../../config.ts'
import type { DatabaseFacts, DatabaseInspection } from '../../storage/postgres/postgres-inspection.ts'
import { minimumVersion } from '../../storage/postgres/postgres-schema.ts'
import { type Finding, fail, failAsSaid, formatBytes, ok, unchecked, warn } from './finding.ts'
import type { Read } from './store.ts'

/** The latest that the service is tried on. */
const newestVersion = 18

export type ReadDatabase = Read<DatabaseInspection>

export function checkDatabase(read: ReadDatabase): Finding {
  if ('refused' in read) return failAsSaid(read.refused)
  const { path, facts } = read.inspection as DatabaseInspection
  const found = `PostgreSQL ${facts.version} at ${path}`
  if (facts.version < minimumVersion) {
    return fail(`${found}: too old`, `Set DATABASE_URL to one of version ${minimumVersion} or later.`)
  }
  if (facts.isReadOnly) return fail(`${found} only reads, as a standby does`, 'Set DATABASE_URL to the primary.')
  if (facts.version <= newestVersion) return ok(found)
  return warn(`${found}: newer than any that was tried`, `Use one of version ${minimumVersion} to ${newestVersion}.`)
}

/** Makes a check of what a database that answers says of itself. */
function ofFacts(find: (facts: DatabaseFacts, config: Config) => Finding) {
  return (read: ReadDatabase, config: Config): Finding => {
    if ('refused' in read || !read.inspection) return unchecked('the database cannot be asked', 'the database')
    return find(read.inspection.facts, config)
  }
}

export const checkRights = ofFacts(({ role, canCreateSchema: mayCreate, schemas, foreignOwned: foreign }) => {
  const [first] = foreign
  if (first) {
    const more = foreign.length > 1 ? ` and ${foreign.length - 1} more` : ''
    return fail(
      `${first}${more} belongs to another role than "${role}", so that upgrades cannot change it`,
      `Run \`ALTER … OWNER TO ${role}\` for each, or connect as their owner.`,
    )
  }
  if (schemas.length === 2) return ok(`"${role}" owns the schemas ${schemas.join(' and ')}`)
  if (mayCreate) return ok(`"${role}" may make the schemas, which the first start does`)
  return fail(
    `"${role}" may not make the schemas that the service needs`,
    `Run \`GRANT CREATE ON DATABASE … TO ${role}\`, or let ${role} own the database.`,
  )
})

export const checkDatabaseDurability = ofFacts(({ fsync, fullPageWrites }) => {
  const off = [!fsync && 'fsync', !fullPageWrites && 'full_page_writes'].filter(Boolean)
  if (off.length === 0)
    return ok('fsync and full_page_writes are on; the service turns synchronous_commit on for itself')
  return warn(
    `${off.join(' and ')} ${off.length > 1 ? 'are' : 'is'} off: a crash or a power cut may lose runs that were acknowledged`,
    `Turn ${off.length > 1 ? 'them' : 'it'} on in postgresql.conf, and restart PostgreSQL.`,
  )
})

export const checkConnections = ofFacts((facts, { DATABASE_CONNECTIONS }) => {
  const { connectionsMax, connectionsUsed, connectionsReserved } = facts
  const left = Math.max(0, connectionsMax - connectionsReserved - connectionsUsed)
  // One more listens, and one more migrates at the start.
  const needed = DATABASE_CONNECTIONS + 2
  const found = `${connectionsUsed} of ${connectionsMax} are used; a process needs up to ${needed}`
  if (left >= needed) return ok(found)
  return warn(
    `${found}, and ${left} are left`,
    'Raise max_connections in postgresql.conf, or lower DATABASE_CONNECTIONS on all processes.',
  )
})

export const checkDatabaseSize = ofFacts(({ sizeBytes }) => ok(`${formatBytes(sizeBytes)} in the whole database`))

export async function checkDatabaseStore(read: ReadDatabase): Promise<Finding> {
  if ('refused' in read || !read.inspection) return unchecked('the database cannot be asked', 'the database')
  const { isInitialized: isMade, path, schema } = read.inspection
  if (!isMade) return ok('there is none yet; the first start makes it')
  if (schema.newer.length > 0) {
    return fail(
      `${path} was migrated by a newer version of this service (it has ${schema.newer.join(', ')})`,
      'Start that version, or restore a backup.',
    )
  }
  if (schema.pending.length === 0) return ok(`${path} is of this version's schema`)
  return ok(`${path} is of an earlier version; the next start migrates it (${schema.pending.join(', ')})`)
}

const slowMicroseconds = 50_000

export async function checkCommit(read: ReadDatabase): Promise<Finding> {
  if ('refused' in read || !read.inspection) return unchecked('the database cannot be asked', 'the database')
  if (read.inspection.facts.isReadOnly) return unchecked('the database only reads', 'the database')
  return commitSpeed(await read.inspection.commitMicroseconds())
}

export function commitSpeed(microseconds: number): Finding {
  const found = `a commit takes ${(microseconds / 1000).toFixed(1)} ms from here`
  if (microseconds <= slowMicroseconds) return ok(found)
  return warn(
    `${found}, and each request to queue a run waits for that`,
    "Look at the database's disk and at the network between, or move them closer together.",
  )
}
