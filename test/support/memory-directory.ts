/** A directory in memory, for files of tests. */
import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

export const memoryDirectory = '/dev/shm'

/**
 * Returns a directory in memory if there is enough of it, otherwise the usual temporary directory. A database has about 300
 * small files, and each commit waits for an fsync.
 */
export function fastTemporaryDirectory(): string {
  const bytesMin = 4 * 2 ** 30
  if (!existsSync(memoryDirectory) || process.availableMemory() < bytesMin) return tmpdir()
  const { bavail, bsize } = statfsSync(memoryDirectory)
  return bavail * bsize < bytesMin ? tmpdir() : memoryDirectory
}
