/**
 * The mark of a store whose copy in PostgreSQL is in use: a file beside it, which keeps every process from using the old
 * store by mistake. A backup does not contain it.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyOwner, syncDirectory } from '../directories.ts'

/** The message says where the store is now, and how to use the old one all the same. */
export class StoreMoved extends Error {}

const fileName = 'moved-to-postgresql'

/** @param place of the copy, without a password. */
export function markMoved(directory: string, place: string): void {
  const path = join(directory, fileName)
  writeFileSync(path, `${place} on ${new Date().toISOString()}\n`, { mode: 0o600, flush: true })
  copyOwner(directory, path)
  syncDirectory(path)
}

/** @throws {StoreMoved} */
export function rejectMoved(directory: string): void {
  const path = join(directory, fileName)
  if (!existsSync(path)) return
  throw new StoreMoved(
    `The store in ${directory} was moved to PostgreSQL at ${readFileSync(path, 'utf8').trim()}: set DATABASE_URL as the service has it, or remove ${path} to go back to the old store.`,
  )
}

/** For a store that replaces the one in `directory`, which is kept in another one. */
export function moveMark(directory: string, kept: string): void {
  if (existsSync(join(directory, fileName))) renameSync(join(directory, fileName), join(kept, fileName))
}
