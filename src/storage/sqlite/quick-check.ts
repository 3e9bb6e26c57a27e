/** Prints, as a JSON array, what SQLite finds wrong with a file: `node quick-check.ts PATH`. */
import { DatabaseSync } from 'node:sqlite'

const path = process.argv[2]
if (!path) throw new Error('Name the file to check.')
const database = new DatabaseSync(path, { readOnly: true, timeout: 1000 })
try {
  const rows = database.prepare('PRAGMA quick_check(5)').all()
  const found = rows.map(({ quick_check }) => String(quick_check)).filter((line) => line !== 'ok')
  process.stdout.write(JSON.stringify(found))
} catch (error) {
  // Pages that cannot be read at all end the check itself.
  process.stdout.write(JSON.stringify([error instanceof Error ? error.message : String(error)]))
} finally {
  database.close()
}
