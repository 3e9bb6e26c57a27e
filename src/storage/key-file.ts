/** The keys in a file of the data directory: a line for each in base64, the current one first. */
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { deriveKey, type Key, type KeyRing, keyBytes, keyRefreshMilliseconds, parseKey } from './encryption-keys.ts'
import type { Store } from './store.ts'

/** A key file that nothing is to be encrypted with; the message says how to mend it. */
export class KeyFileError extends Error {}

export function keyFilePath(dataDirectory: string): string {
  return join(dataDirectory, 'encryption.key')
}

/** The keys as the file has them; one that another process has changed is read again. */
export class KeyFile implements KeyRing {
  readonly #path: string
  #keys: readonly Key[]
  #version: string | undefined
  #lookedAt: number

  /** @throws {KeyFileError} when others than its owner can read the file, or when it does not hold keys. */
  constructor(path: string) {
    this.#path = path
    refuseReadableByOthers(path)
    this.#version = versionOf(path)
    this.#lookedAt = performance.now()
    this.#keys = read(path).map(deriveKey)
  }

  get missingKeyAdvice(): string {
    return `restore ${this.#path} from a backup, or set ENCRYPTION_KEY if the key was there`
  }

  /** Looks at the file once a second; the clock goes on while a process is paused, so that it looks when it wakes up. */
  keys(): readonly Key[] {
    return performance.now() - this.#lookedAt < keyRefreshMilliseconds ? this.#keys : this.reload()
  }

  reload(): readonly Key[] {
    this.#lookedAt = performance.now()
    const version = versionOf(this.#path)
    if (version === this.#version) return this.#keys
    try {
      this.#keys = read(this.#path).map(deriveKey)
      this.#version = version
    } catch {
      // Missing, or being mended by hand: what runs goes on with the keys that it has, what starts says so.
    }
    return this.#keys
  }
}

/**
 * Makes the file with its first key, unless it is there. It appears with its whole content, or not at all: another
 * process may be about to read it. Whoever returns from here may encrypt: the key survives a power cut.
 */
export function createKeyFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if (!existsSync(path)) {
    const draft = `${path}.${randomBytes(8).toString('hex')}`
    write(draft, [randomBytes(keyBytes)])
    try {
      linkSync(draft, path)
    } catch (error) {
      // Another process was first; its key is then the one that all read.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  syncDirectory(path)
}

/**
 * Makes a new key the current one; those before it stay. In a transaction of the store beside the file, which no other
 * process's overlaps: of two keys that are added at once, one would be lost, with what it has encrypted by then.
 */
export function addKeyInTransaction(store: Store, path: string): Promise<void> {
  return store.write(async () => addKey(path))
}

/**
 * Makes a new key the current one. The caller sees to it that nobody else does the same.
 *
 * It is written twice: at first behind the current one, since another process encrypts under a key as soon as it sees
 * it in front, and that key must survive a power cut by then.
 */
export function addKey(path: string): void {
  const file = realpathSync(path)
  const keys = read(file)
  const added = newKey(keys)
  replace(file, [...keys, added])
  replace(file, [added, ...keys])
}

/** Ids have four bytes: one that is taken already would make two keys look alike. */
function newKey(keys: readonly Buffer[]): Buffer {
  for (;;) {
    const bytes = randomBytes(keyBytes)
    const { id } = deriveKey(bytes)
    if (!keys.some((key) => deriveKey(key).id.equals(id))) return bytes
  }
}

function replace(path: string, keys: readonly Buffer[]): void {
  const draft = `${path}.new`
  // A process that was killed may have left one.
  rmSync(draft, { force: true })
  write(draft, keys)
  try {
    keepOwner(path, draft)
  } catch (error) {
    rmSync(draft)
    throw error
  }
  renameSync(draft, path)
  syncDirectory(path)
}

/** Who rotates may be another user than the service, root for instance; the service has to read the new file too. */
function keepOwner(path: string, draft: string): void {
  const [before, after] = [statSync(path), statSync(draft)]
  if (before.uid === after.uid && before.gid === after.gid) return
  try {
    chownSync(draft, before.uid, before.gid)
  } catch {
    // Its group may not read it anyway.
    if (before.uid === after.uid) return
    throw new KeyFileError(
      `${path} belongs to another user (${before.uid}): call this as that user, or as root. Nothing was changed.`,
    )
  }
}

function write(path: string, keys: readonly Buffer[]): void {
  const text = keys.map((key) => `${key.toString('base64')}\n`).join('')
  writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true })
}

/** A file's name is in its directory, which is to reach the disk as well. */
export function syncDirectory(path: string): void {
  const directory = openSync(dirname(path), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

function read(path: string): Buffer[] {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const keys = lines.map(parseKey).filter((key) => key !== undefined)
  if (keys.length > 0 && keys.length === lines.length) return keys
  throw new KeyFileError(
    `${path} does not hold ${lines.length > 1 ? 'on each line ' : ''}a key of ${keyBytes} bytes: restore it from a backup.`,
  )
}

/** Tells the file's contents apart: every change is a new file. */
function versionOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':')
}

function refuseReadableByOthers(path: string): void {
  // Windows has other means, which the mode does not tell of.
  if (process.platform === 'win32' || (statSync(path).mode & 0o077) === 0) return
  throw new KeyFileError(`${path} can be read by others than its owner: run \`chmod 600 ${path}\`.`)
}
