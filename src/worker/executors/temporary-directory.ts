/** Directories of a worker and its processes: of a browser's profile, of the files of deployments, and of traces. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { lockFile } from './file-lock.ts'

export interface TemporaryDirectory {
  path: string
  /** @throws when something cannot be removed; the next call of `createTemporaryDirectory` tries again. */
  remove(): Promise<void>
}

/** How the names of these directories begin. */
export const directoryPrefixes = {
  browser: 'execution-service-browser-',
  deployments: 'execution-service-deployments-',
  trace: 'execution-service-trace-',
} as const
const lockName = 'lock'

/**
 * Also removes directories that are left over, for example from a machine's crash.
 *
 * @param owner the next part of the directory's name.
 */
export function createTemporaryDirectory(use: keyof typeof directoryPrefixes, owner: string): TemporaryDirectory {
  removeStale()
  const path = mkdtempSync(join(tmpdir(), `${directoryPrefixes[use]}${owner}-`))
  const lock = lockFile(join(path, lockName), 0)
  return {
    path,
    async remove() {
      lock?.release()
      await rm(path, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** For the host process of the browser: removes its directory, and nothing that was not created here. */
export function removeOwnDirectory(path: string | undefined): void {
  if (path && basename(path).startsWith(directoryPrefixes.browser))
    rmSync(path, { recursive: true, force: true, maxRetries: 5 })
}

function removeStale(): void {
  const isOwn = (name: string) => Object.values(directoryPrefixes).some((prefix) => name.startsWith(prefix))
  for (const name of readdirSync(tmpdir()).filter(isOwn)) {
    const path = join(tmpdir(), name)
    try {
      // Any user may create a symbolic link of this name: the lock must not be written to its target.
      const found = lstatSync(path)
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue
      // A new directory may not have its lock yet.
      if (found.mtimeMs > Date.now() - 60_000) continue
      const lock = lockFile(join(path, lockName), 0)
      if (!lock) continue
      lock.release()
      rmSync(path, { recursive: true, force: true })
    } catch {
      // Another process is removing it.
    }
  }
}
