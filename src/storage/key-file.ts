/** The key file in the data directory: one key per line in base64, the current one first. */
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  linkSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createDirectory, syncDirectory } from './directories.ts'
import { deriveKey, type Key, type KeyRing, keyBytes, keyRefreshMilliseconds, parseKey } from './encryption.ts'
import type { Store } from './store.ts'

/** The key file cannot be used; the message says how to fix it. */
export class KeyFileError extends Error {}

export function keyFilePath(dataDirectory: string): string {
  return join(dataDirectory, 'encryption.key')
}

/** The keys of a key file, re-read when another process has changed the file. */
export class KeyFile implements KeyRing {
  readonly #path: string
  #keys: readonly Key[]
  #version: string | undefined
  #checkedAt: number

  /** @throws {KeyFileError} when other users can read the file, or when it contains anything but keys. */
  constructor(path: string) {
    this.#path = path
    rejectReadableByOthers(path)
    this.#version = fileVersion(path)
    this.#checkedAt = performance.now()
    this.#keys = readKeys(path).map(deriveKey)
  }

  get missingKeyAdvice(): string {
    return `restore ${this.#path} from a backup, or set ENCRYPTION_KEY if the key was there`
  }

  /** The monotonic clock runs on while a process is paused, so a resumed process checks the file at once. */
  keys(): readonly Key[] {
    return performance.now() - this.#checkedAt < keyRefreshMilliseconds ? this.#keys : this.reload()
  }

  reload(): readonly Key[] {
    this.#checkedAt = performance.now()
    const version = fileVersion(this.#path)
    if (version === this.#version) return this.#keys
    try {
      this.#keys = readKeys(this.#path).map(deriveKey)
      this.#version = version
    } catch {
      // Missing, or being edited: running processes keep their keys, and the next start reports the error.
    }
    return this.#keys
  }
}

/**
 * Creates the file with its first key unless it exists. It appears atomically with its whole content, since another
 * process may be about to read it. On return, the key is durable.
 */
export function createKeyFile(path: string): void {
  createDirectory(dirname(path))
  if (!existsSync(path)) {
    const draft = `${path}.${randomBytes(8).toString('hex')}`
    writeKeys(draft, [randomBytes(keyBytes)])
    try {
      linkSync(draft, path)
    } catch (error) {
      // Another process created the file first; all processes use that key.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  syncDirectory(path)
}

/**
 * Adds a key and makes it the current one, inside a write transaction, which serializes concurrent rotations: of two
 * keys added at the same time, one would be lost together with the values encrypted with it.
 */
export function addKeyInTransaction(store: Store, path: string): Promise<void> {
  return store.write(async () => addKey(path))
}

/**
 * Adds a key and makes it the current one. The caller prevents concurrent calls.
 *
 * Writes the file twice. Other processes encrypt with a key as soon as it is first, and it must be durable by then;
 * so it is stored in second place before it is promoted.
 */
export function addKey(path: string): void {
  const file = realpathSync(path)
  const keys = readKeys(file)
  const added = generateKey(keys)
  replaceKeys(file, [...keys, added])
  replaceKeys(file, [added, ...keys])
}

/** Retries until the id, which has only 4 bytes, differs from the ids of all other keys. */
function generateKey(keys: readonly Buffer[]): Buffer {
  for (;;) {
    const bytes = randomBytes(keyBytes)
    const { id } = deriveKey(bytes)
    if (!keys.some((key) => deriveKey(key).id.equals(id))) return bytes
  }
}

function replaceKeys(path: string, keys: readonly Buffer[]): void {
  const draft = `${path}.new`
  // A killed process may have left one.
  rmSync(draft, { force: true })
  writeKeys(draft, keys)
  try {
    copyOwner(path, draft)
  } catch (error) {
    rmSync(draft)
    throw error
  }
  renameSync(draft, path)
  syncDirectory(path)
}

/** Lets the service read the new file when another user, such as root, rotates the key. */
function copyOwner(path: string, draft: string): void {
  const [before, after] = [statSync(path), statSync(draft)]
  if (before.uid === after.uid && before.gid === after.gid) return
  try {
    chownSync(draft, before.uid, before.gid)
  } catch {
    // The mode excludes the group.
    if (before.uid === after.uid) return
    throw new KeyFileError(
      `${path} belongs to another user (${before.uid}): run this command as that user or as root. Nothing was changed.`,
    )
  }
}

function writeKeys(path: string, keys: readonly Buffer[]): void {
  const text = keys.map((key) => `${key.toString('base64')}\n`).join('')
  writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true })
}

function readKeys(path: string): Buffer[] {
  return parseKeys(readFileSync(path, 'utf8'), path)
}

/** @param path where the text comes from, for the error. @throws {KeyFileError} */
export function parseKeys(text: string, path: string): Buffer[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const keys = lines.map(parseKey).filter((key) => key !== undefined)
  if (keys.length > 0 && keys.length === lines.length) return keys
  const expected = lines.length > 1 ? `${keyBytes}-byte keys, one per line` : `a key of ${keyBytes} bytes`
  throw new KeyFileError(`${path} does not contain ${expected}: restore it from a backup.`)
}

/** Changes with every version of the file, since each is a new inode. */
function fileVersion(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':')
}

function rejectReadableByOthers(path: string): void {
  // On Windows, the mode does not reflect access rights.
  if (process.platform === 'win32' || (statSync(path).mode & 0o077) === 0) return
  throw new KeyFileError(`Other users can read ${path}: run \`chmod 600 ${path}\`.`)
}
