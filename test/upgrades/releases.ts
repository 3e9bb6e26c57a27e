/**
 * What `npm run record:release` has recorded of each release: its migrations and statements, in `test/upgrades/VERSION`.
 * A file has one statement on each line.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { isAtLeast, migrations, statementsOf } from '../../src/storage/migrations/migrations.ts'
import { postgresColumnTypes } from '../../src/storage/postgres/postgres-connections.ts'
import { sqliteColumnTypes } from '../../src/storage/sqlite/sqlite-connection.ts'

const directory = new URL('.', import.meta.url)

/** Versions, the earliest first. */
export const releases = readdirSync(directory)
  .filter((name) => /^\d+\.\d+\.\d+$/.test(name))
  .toSorted((a, b) => (isAtLeast(a, b) ? 1 : -1))

export type StoreName = 'sqlite' | 'postgres'
type Kind = 'migrations' | 'statements'

const types = { sqlite: sqliteColumnTypes, postgres: postgresColumnTypes }

export const recordOf = (release: string, store: StoreName, kind: Kind) =>
  new URL(`${release}/${store}.${kind}.sql`, directory)

export function readRecord(release: string, store: StoreName, kind: Kind): string[] {
  return readFileSync(recordOf(release, store, kind), 'utf8')
    .trim()
    .split('\n')
}

/** The migrations as they are recorded, each after a comment with its name. */
export function describeMigrations(store: StoreName): string[] {
  return migrations.flatMap((migration) => [
    `-- ${migration.name}`,
    ...statementsOf(migration, types[store]).map(onOneLine),
  ])
}

export function onOneLine(statement: string): string {
  return statement.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim()
}
