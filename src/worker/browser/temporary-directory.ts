/** The directory of one browser's profile and other files, which is removed with it. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { lockFile } from './file-lock.ts'

export interface TemporaryDirectory {
  path: string
  /** @throws when something of it cannot be removed; whoever makes the next one tries again. */
  remove(): Promise<void>
}

const prefix = 'execution-service-browser-'
const lockName = 'lock'

/** Also removes those that nobody was left to remove, because worker and browser were killed together. */
export function makeTemporaryDirectory(): TemporaryDirectory {
  removeStale()
  const path = mkdtempSync(join(tmpdir(), prefix))
  const lock = lockFile(join(path, lockName), 0)
  return {
    path,
    async remove() {
      lock?.release()
      await rm(path, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** For the process that the directory was made for: it removes nothing that was not made here. */
export function removeOwn(path: string | undefined): void {
  if (path && basename(path).startsWith(prefix)) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
}

function removeStale(): void {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(prefix))) {
    const path = join(tmpdir(), name)
    try {
      // Not what a link leads to, which any user may put there: the lock would be written into that.
      const found = lstatSync(path)
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue
      // A young one may not have its lock yet.
      if (found.mtimeMs > Date.now() - 60_000) continue
      const lock = lockFile(join(path, lockName), 0)
      if (!lock) continue
      lock.release()
      rmSync(path, { recursive: true, force: true })
    } catch {
      // Another process is about to remove it as well.
    }
  }
}
