/**
 * A setup file of Vitest for `npm run record:release`: appends each statement that the service prepares to a file in the
 * directory RECORD_STATEMENTS.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { onOneLine, type StoreName } from './releases.ts'

const recorded = new Set<string>()

/** Statements of tests are none of the service. */
function isFromService(): boolean {
  const frames = (new Error().stack ?? '').split('\n')
  const caller = frames.find(
    (frame) =>
      /\/(src|test)\//.test(frame) && !/upgrades\/recording|storage\/(sqlite|postgres)\/|node_modules/.test(frame),
  )
  return caller === undefined || caller.includes('/src/')
}

function record(store: StoreName, text: string): void {
  if (recorded.has(text)) return
  recorded.add(text)
  if (!/^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|VALUES)\b/i.test(text) || !isFromService()) return
  appendFileSync(join(process.env.RECORD_STATEMENTS ?? '', `${store}.${process.pid}`), `${onOneLine(text)}\n`)
}

/** Files of the same process share modules, so that each would wrap the methods again. */
const marked = globalThis as { recordsStatements?: boolean }

if (!marked.recordsStatements) {
  marked.recordsStatements = true
  Error.stackTraceLimit = 50
  const { prepare } = DatabaseSync.prototype
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...args) {
    record('sqlite', args[0])
    return prepare.apply(this, args)
  }
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [first] = args as [string | { text?: string }]
    const text = typeof first === 'string' ? first : first?.text
    if (text !== undefined) record('postgres', text)
    return (query as (...args: unknown[]) => unknown).apply(this, args)
  } as typeof query
}
