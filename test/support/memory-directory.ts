/** Where files of tests wait for no disk. */
import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

export const memoryDirectory = '/dev/shm'

/**
 * In memory, where there is plenty of it, or else the usual directory: a database is some 300 small files, and each
 * commit to a store waits for its file.
 */
export function fastTemporaryDirectory(): string {
  const bytesMin = 4 * 2 ** 30
  if (!existsSync(memoryDirectory) || process.availableMemory() < bytesMin) return tmpdir()
  const { bavail, bsize } = statfsSync(memoryDirectory)
  return bavail * bsize < bytesMin ? tmpdir() : memoryDirectory
}
