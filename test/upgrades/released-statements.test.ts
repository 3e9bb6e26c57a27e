/** The code of each release that may serve beside this version finds its tables and columns in this version's schema. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { compatibleVersions, isAtLeast, type SchemaMigration } from '../../src/storage/migrations/migrations.ts'
import { SqliteCounters } from '../../src/storage/sqlite/sqlite-store.ts'
import { newStoreLocation, openStore, type Test } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'
import { asNewerVersion } from './newer-version.ts'
import { describeMigrations, readRecord, releases, type StoreName } from './releases.ts'

const compatibleFrom = [...compatibleVersions().values()].at(-1) ?? ''
const serving = releases.filter((release) => isAtLeast(release, compatibleFrom))

const advice = (release: string) =>
  `Released migrations never change: append a new one. Before ${release} is released, run \`npm run record:release\` instead.`

test('a release is recorded that may serve beside this version', () => {
  expect(serving).not.toEqual([])
})

describe.each(stores)('in $name', (kind) => {
  const name = kind.name as StoreName

  test.for(releases)('this version has the migrations of %s, and may have more', (release) => {
    const recorded = readRecord(release, name, 'migrations')
    expect(describeMigrations(name).slice(0, recorded.length), advice(release)).toEqual(recorded)
  })

  test.for(serving)('each statement of %s can be prepared', async (release, test) => {
    const location = await newStoreLocation(test, kind)
    expect(await findFailures(test, name, location, readRecord(release, name, 'statements'))).toEqual([])
  })

  test.for(serving)('each statement of %s can be prepared after later migrations', async (release, test) => {
    const location = await newStoreLocation(test, kind)
    await asNewerVersion(async () => void (await openStore(test, location, kind)))
    expect(await findFailures(test, name, location, readRecord(release, name, 'statements'))).toEqual([])
  })

  test.for(serving)('a column that statements of %s use cannot be removed unnoticed', async (release, test) => {
    const location = await newStoreLocation(test, kind)
    const removal: SchemaMigration = {
      ...{ name: '9001-removal', kind: 'expand' },
      script: () => 'ALTER TABLE schedules RENAME COLUMN missed TO skipped',
    }
    await asNewerVersion(async () => void (await openStore(test, location, kind)), [removal])
    const failures = await findFailures(test, name, location, readRecord(release, name, 'statements'))
    expect(failures.join('\n')).toMatch(/missed/)
  })
})

/** Returns the statements that cannot be prepared, with the errors. */
async function findFailures(
  test: Test,
  store: StoreName,
  location: string,
  statements: readonly string[],
): Promise<string[]> {
  const failures: string[] = []
  const prepare = store === 'sqlite' ? await openSqlite(test, location) : await openPostgres(test, location)
  for (const statement of statements) {
    try {
      await prepare(statement)
    } catch (error) {
      failures.push(`${(error as Error).message}: ${statement}`)
    }
  }
  return failures
}

async function openSqlite({ onTestFinished }: Test, location: string) {
  // The table of counters is in its own file, which the first count creates.
  const counters = new SqliteCounters(location)
  await counters.add('test', 1, 1)
  counters.close()
  const database = new DatabaseSync(join(location, 'service.db'))
  onTestFinished(() => database.close())
  database.prepare('ATTACH ? AS counters').run(join(location, 'counters.db'))
  return async (statement: string) => void database.prepare(statement)
}

async function openPostgres({ onTestFinished }: Test, location: string) {
  const client = new pg.Client(location)
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('SET search_path TO execution_service')
  return async (statement: string) => {
    await client.query(`PREPARE released AS ${statement}`)
    await client.query('DEALLOCATE released')
  }
}
