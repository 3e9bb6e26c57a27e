/** Migrations only add to the schema of earlier versions, or say that they do not. */
import { describe, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import {
  compatibleVersions,
  isAtLeast,
  migrations,
  type SchemaMigration,
} from '../../src/storage/migrations/migrations.ts'
import { postgresColumnTypes } from '../../src/storage/postgres/postgres-connections.ts'
import { sqliteColumnTypes } from '../../src/storage/sqlite/sqlite-connection.ts'
import { findDisturbances } from './additive.ts'
import { newerMigrations } from './newer-version.ts'
import { releases } from './releases.ts'

const stores = [
  { name: 'sqlite', types: sqliteColumnTypes },
  { name: 'postgres', types: postgresColumnTypes },
]

const expanding = (script: string): SchemaMigration => ({ name: '9001-test', kind: 'expand', script: () => script })

describe.each(stores)('migrations for $name', ({ types }) => {
  test.for([...migrations, ...newerMigrations].filter(({ kind }) => kind === 'expand'))(
    '$name only adds what earlier versions ignore',
    (migration) => {
      expect(findDisturbances(migration, types)).toEqual([])
    },
  )

  test.for([
    ['DROP TABLE runs', /may change what earlier versions use/],
    ['ALTER TABLE runs DROP COLUMN tags', /may change/],
    ['ALTER TABLE runs RENAME COLUMN tags TO labels', /may change/],
    ['ALTER TABLE runs ALTER COLUMN priority TYPE BIGINT', /may change/],
    ['ALTER TABLE runs ALTER COLUMN tags SET NOT NULL', /may change/],
    ["UPDATE runs SET tags = '[]'", /may change/],
    ['CREATE OR REPLACE FUNCTION cancel_waits_of_run() RETURNS trigger AS $$ BEGIN END $$', /may change/],
    ['ALTER TABLE runs ADD COLUMN note TEXT NOT NULL', /NOT NULL without a default/],
    ['ALTER TABLE runs ADD COLUMN note TEXT DEFAULT gen_random_uuid()', /not constant/],
    ["ALTER TABLE runs ADD COLUMN note TEXT CHECK (note <> '')", /has CHECK/],
    ['ALTER TABLE runs ADD COLUMN note TEXT REFERENCES users (id)', /has REFERENCES/],
    ['CREATE INDEX runs_by_note ON runs (note)', /blocks writes to runs/],
    ['CREATE UNIQUE INDEX runs_by_note ON runs (note)', /blocks writes to runs/],
    ['CREATE TABLE notes (run_id TEXT NOT NULL REFERENCES runs (id))', /without ON DELETE CASCADE/],
    ["INSERT INTO accounts VALUES ('a')", /writes to accounts/],
    ['ALTER TABLE runs ADD COLUMN a TEXT;\nALTER TABLE users ADD COLUMN a TEXT', /locks runs and users/],
  ] as const)('%s is no expansion', ([script, problem]) => {
    expect(findDisturbances(expanding(script), types)).toEqual([expect.stringMatching(problem)])
  })

  test.for([
    "ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN note TEXT DEFAULT 'a' NOT NULL",
    'ALTER TABLE runs ADD COLUMN note BIGINT',
    'CREATE TABLE notes (run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE);\nCREATE UNIQUE INDEX notes_key ON notes (run_id)',
    'CREATE TABLE notes (id TEXT);\nINSERT INTO notes SELECT id FROM runs LIMIT 10',
  ])('%s is an expansion', (script) => {
    expect(findDisturbances(expanding(script), types)).toEqual([])
  })
})

test('migrations have names in their order', () => {
  const names = migrations.map(({ name }) => name)
  expect(names).toEqual([...new Set(names)].toSorted())
  for (const name of names) expect(name).toMatch(/^\d{4}-[a-z-]+$/)
})

test('a release removes only what the release before it does not use', () => {
  const versions = [...compatibleVersions().values()]
  expect(versions.every((version, index) => index === 0 || isAtLeast(version, versions[index - 1] ?? ''))).toBe(true)
  const earlier = releases.filter((each) => !isAtLeast(each, packageJson.version))
  const previous = earlier.at(-1) ?? packageJson.version
  expect(isAtLeast(previous, versions.at(-1) ?? '')).toBe(true)
})
