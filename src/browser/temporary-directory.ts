/** The directory of one browser's profile and other files, which is removed with it. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockFile } from './file-lock.ts'

export interface TemporaryDirectory {
  path: string
  remove(): void
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
    remove() {
      lock?.release()
      rmSync(path, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function removeStale(): void {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(prefix))) {
    const path = join(tmpdir(), name)
    try {
      const { uid, mtimeMs } = statSync(path)
      // A young one may not have its lock yet.
      if (uid !== process.getuid?.() || mtimeMs > Date.now() - 60_000) continue
      const lock = lockFile(join(path, lockName), 0)
      if (!lock) continue
      lock.release()
      rmSync(path, { recursive: true, force: true })
    } catch {
      // Another process is about to remove it as well.
    }
  }
}
