/** A newer version of the service, for tests: its migrations add a column to every table, a table, a trigger and indexes. */
import { migrations, type SchemaMigration, statementsOf } from '../../src/storage/migrations/migrations.ts'
import { sqliteColumnTypes } from '../../src/storage/sqlite/sqlite-connection.ts'

const created = migrations.flatMap((each) => statementsOf(each, sqliteColumnTypes))
export const tables = created.flatMap((sql) => /CREATE TABLE (\w+)/.exec(sql)?.[1] ?? [])

/** One for each table, so that none locks two tables that others use. */
const addColumn = (table: string): SchemaMigration => ({
  name: `9001-${table}`,
  kind: 'expand',
  script: ({ text }) => `ALTER TABLE ${table} ADD COLUMN newer ${text} NOT NULL DEFAULT 'added'`,
})

export const newerMigrations: SchemaMigration[] = [
  ...tables.toSorted().map(addColumn),
  {
    name: '9002-notes',
    kind: 'expand',
    script: ({ text, inPostgres, inSqlite }) => `
CREATE TABLE newer_notes (
  run_id ${text} NOT NULL REFERENCES runs (id) ON DELETE CASCADE, status ${text} NOT NULL)${inSqlite(`;
CREATE TRIGGER newer_notes_of_run AFTER UPDATE OF status ON runs WHEN NEW.finished_at IS NOT NULL
  BEGIN INSERT INTO newer_notes (run_id, status) VALUES (NEW.id, NEW.status); END`)}${inPostgres(`CREATE FUNCTION add_newer_note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN INSERT INTO newer_notes (run_id, status) VALUES (NEW.id, NEW.status); RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER newer_notes_of_run AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.finished_at IS NOT NULL) EXECUTE FUNCTION add_newer_note()`)};
`,
  },
  {
    name: '9003-indexes',
    kind: 'expand',
    indexes: {
      runs_newer: 'ON runs (account_id, newer, id)',
      run_events_newer: "ON run_events (at) WHERE newer = 'added'",
    },
  },
]

/** Calls `act` as the newer version, with its migrations or with others. */
export async function asNewerVersion<Result>(
  act: () => Promise<Result>,
  added: readonly SchemaMigration[] = newerMigrations,
): Promise<Result> {
  migrations.push(...added)
  try {
    return await act()
  } finally {
    migrations.splice(-added.length)
  }
}

/** Removes what processes of an earlier version use. */
export const contraction: SchemaMigration = {
  name: '9004-contract',
  kind: 'contract',
  compatibleFrom: '99.0.0',
  script: () => 'DROP TABLE storage_usage',
}
