/**
 * `npm run record:release`: records the migrations of this version, and every statement that it sends to a store in the
 * tests of the domain and of the operations. Run it once for each release; what is recorded of a release never changes.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { describeMigrations, recordOf, type StoreName } from './releases.ts'

const directory = mkdtempSync(join(tmpdir(), 'execution-service-record-'))

function runTests(testSet: string, ...args: string[]): void {
  const env = { ...process.env, TEST_SET: testSet, RECORD_STATEMENTS: directory }
  const { status } = spawnSync('vitest', ['run', ...args], { stdio: 'inherit', env })
  if (status !== 0) throw new Error('Tests have failed: what they use of the store is not known.')
}

/**
 * Lists of values have any length: one is kept of each. Numbers that a statement repeats say which values are the same,
 * so that it stays as it is.
 */
function shorten(statement: string): string {
  const numbers = [...statement.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  if (numbers.some((number, index) => number !== index + 1)) return statement
  const short = statement
    .replaceAll(/\$\d+/g, '?')
    .replaceAll(/(\((?:[^()]*\?[^()]*)\))(?:, ?\1)+/g, '$1')
    .replaceAll(/\b(in|IN) \(\?(?:, ?\?)+\)/g, '$1 (?)')
  let count = 0
  return numbers.length > 0 ? short.replaceAll('?', () => `$${++count}`) : short
}

function statementsFor(store: StoreName): string[] {
  const files = readdirSync(directory).filter((name) => name.startsWith(`${store}.`))
  const statements = files.flatMap((name) => readFileSync(join(directory, name), 'utf8').trim().split('\n'))
  // Of SQLite itself and of the migrator.
  const own = statements.filter(
    (each) => !/sqlite_schema|sqlite_sequence|kysely_|pragma_|pg_catalog|pg_stat/i.test(each),
  )
  return [...new Set(own.map(shorten))].toSorted()
}

try {
  runTests('quick', '--project', 'in-process', 'test/domain', 'test/operations', 'test/maintenance', 'test/dashboard')
  runTests('all', '--project', 'postgres', 'test/operations')
  for (const store of ['sqlite', 'postgres'] as const) {
    const files = { migrations: describeMigrations(store), statements: statementsFor(store) }
    for (const [kind, lines] of Object.entries(files)) {
      const file = recordOf(packageJson.version, store, kind as keyof typeof files)
      mkdirSync(new URL('.', file), { recursive: true })
      writeFileSync(file, `${lines.join('\n')}\n`)
      process.stdout.write(`${lines.length} lines in ${file.pathname}\n`)
    }
  }
} finally {
  rmSync(directory, { recursive: true })
}
