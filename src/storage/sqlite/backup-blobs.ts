/** The blobs of a directory in a backup: a table `backup_blobs`, which a backup without blobs lacks. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { blobPath, draftOf } from '../blobs/blob-store.ts'
import { createDirectory, syncDirectory } from '../directories.ts'

/** Adds the blobs to which the copy of a store refers. Those that were deleted since the copy was made are left out. */
export function addBlobs(copy: string, directory: string): void {
  const database = new DatabaseSync(copy)
  try {
    // A store of an earlier version has none.
    const tables = ['artifacts', 'file_parts'].filter((table) =>
      database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = 'blob'").get(table),
    )
    const keys = tables.flatMap((table) => {
      const find = `SELECT blob AS key FROM ${table} WHERE blob IS NOT NULL`
      return database.prepare(find).all() as { key: string }[]
    })
    let insert: StatementSync | undefined
    database.exec('BEGIN')
    for (const { key } of keys) {
      const content = readIfPresent(blobPath(directory, key))
      if (!content) continue
      insert ??= createTable(database)
      insert.run(key, content)
    }
    database.exec('COMMIT')
  } finally {
    database.close()
  }
}

function createTable(database: DatabaseSync): StatementSync {
  database.exec('CREATE TABLE backup_blobs (key TEXT PRIMARY KEY, content BLOB NOT NULL)')
  return database.prepare('INSERT INTO backup_blobs VALUES (?, ?)')
}

/** The service may delete a blob at any time. */
function readIfPresent(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/**
 * Writes the blobs of a backup into the directory, except those that are there. Returns whether it has any.
 *
 * @param directory without it, none are written.
 */
export function writeBlobs(backup: string, directory: string | undefined): boolean {
  const database = new DatabaseSync(backup, { readOnly: true })
  try {
    if (!hasBlobs(database)) return false
    if (directory === undefined) return true
    for (const { key, content } of database.prepare('SELECT key, content FROM backup_blobs').iterate()) {
      const path = blobPath(directory, String(key))
      if (existsSync(path)) continue
      createDirectory(dirname(path))
      // Complete when it has its name: an interrupted restore is repeated.
      writeFileSync(draftOf(path), content as Uint8Array, { mode: 0o600, flush: true })
      renameSync(draftOf(path), path)
      syncDirectory(path)
    }
    return true
  } finally {
    database.close()
  }
}

/** Removes the blobs from a copy of a backup, and the space that they took. */
export function dropBlobs(database: DatabaseSync): void {
  if (hasBlobs(database)) database.exec('DROP TABLE backup_blobs; VACUUM')
}

function hasBlobs(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'backup_blobs'").get() !== undefined
}
