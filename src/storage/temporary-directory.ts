/** Temporary directories of processes. Each is locked by its process, and removed by a later one if that was killed. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface TemporaryDirectory {
  path: string
  /** @throws when something cannot be removed; the next call of `createTemporaryDirectory` tries again. */
  remove(): void
}

/** How the names of these directories begin. */
export const directoryPrefixes = {
  browser: 'execution-service-browser-',
  build: 'execution-service-build-',
  demo: 'execution-service-demo-',
  deployments: 'execution-service-deployments-',
  docs: 'execution-service-docs-',
  files: 'execution-service-files-',
  project: 'execution-service-project-',
} as const
const lockName = 'lock'

export type DirectoryUse = keyof typeof directoryPrefixes

/** An owner in a name of a directory has at most this many characters. */
export const ownerLengthMax = 12

/** The path of a Unix socket has at most this many bytes (`sun_path` in unix(7), without the final NUL). */
const socketBytesMax = 107

/** Chromium's longest socket below its directory. Chrome's is shorter. */
const longestSocket = '/org.chromium.Chromium.XXXXXX/SingletonSocket'

/** For browsers, where TMPDIR is too long. */
const shortRoot = '/tmp'

/** The directory in which directories for this use are created: TMPDIR, unless a browser's sockets do not fit there. */
export function rootOf(use: DirectoryUse): string {
  const root = tmpdir()
  const path = `${root}/${directoryPrefixes[use]}${'x'.repeat(ownerLengthMax)}-XXXXXX${longestSocket}`
  return use === 'browser' && Buffer.byteLength(path) > socketBytesMax ? shortRoot : root
}

/**
 * Also removes directories that are left over, for example from a machine's crash.
 *
 * @param owner the next part of the directory's name; at most `ownerLengthMax` characters.
 * @throws when the directory cannot be created.
 */
export function createTemporaryDirectory(use: DirectoryUse, owner = String(process.pid)): TemporaryDirectory {
  const root = rootOf(use)
  for (const each of new Set([root, tmpdir()])) removeLeftDirectories(each)
  const path = mkdtempSync(join(root, `${directoryPrefixes[use]}${owner}-`))
  const lock = lockFile(join(path, lockName), 0)
  return {
    path,
    remove() {
      lock?.release()
      // Not `rm`, which a process that may write there can lead out of it by a link that it creates meanwhile.
      rmSync(path, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** For the host process of the browser: removes its directory, and nothing that was not created here. */
export function removeOwnDirectory(path: string | undefined): void {
  if (path && basename(path).startsWith(directoryPrefixes.browser))
    rmSync(path, { recursive: true, force: true, maxRetries: 5 })
}

/**
 * Removes the directories of processes that have ended.
 *
 * @param ageMilliseconds of those that are removed: a new one may not have its lock yet.
 */
export function removeLeftDirectories(root: string, ageMilliseconds = 60_000): void {
  const isOwn = (name: string) => Object.values(directoryPrefixes).some((prefix) => name.startsWith(prefix))
  for (const name of readdirSync(root).filter(isOwn)) {
    const path = join(root, name)
    try {
      // Any user may create a symbolic link of this name: the lock must not be written to its target.
      const found = lstatSync(path)
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue
      if (found.mtimeMs > Date.now() - ageMilliseconds) continue
      const lock = lockFile(join(path, lockName), 0)
      if (!lock) continue
      lock.release()
      rmSync(path, { recursive: true, force: true })
    } catch {
      // Another process is removing it.
    }
  }
}

/**
 * Locks a file, creating it if needed; blocks the thread while it waits. Node's only file locks are those of SQLite:
 * nothing is stored in the file.
 *
 * @returns undefined when another process holds the lock for longer than `waitMilliseconds`.
 */
export function lockFile(path: string, waitMilliseconds: number): { release(): void } | undefined {
  const lock = new DatabaseSync(path, { timeout: waitMilliseconds })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined
    throw error
  }
  return { release: () => lock.close() }
}

const sqliteBusy = 5
