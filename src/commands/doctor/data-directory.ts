/** Whether the data directory can hold a store: it can be written to, has space, and is on a disk of this machine. */
import { constants } from 'node:fs'
import { access, mkdtemp, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Finding, fail, formatBytes, ok, reasonOf, warn } from './finding.ts'

export async function checkDataDirectory(directory: string): Promise<Finding> {
  const advice = 'Set DATA_DIR to a directory that the user of the service can write to.'
  const found = await stat(directory).catch(absent)
  try {
    if (found && !found.isDirectory()) return fail(`${directory} is no directory`, advice)
    const place = await existingPlace(directory)
    if (!found) {
      await access(place, constants.W_OK | constants.X_OK)
      return ok(`${directory} does not exist; the first start makes it, with the store and its encryption key`)
    }
    await inProbe(place, (probe) => writeFile(join(probe, 'file'), 'probe', { flush: true }))
    return ok(directory)
  } catch (error) {
    return fail(`${directory} cannot be written to (${reasonOf(error)})`, advice)
  }
}

/** What is not there, or below what is no directory. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

/** The directory, or the nearest one above it that exists: a directory that is still to be made will be on its disk. */
export async function existingPlace(directory: string): Promise<string> {
  const found = await stat(directory).catch(absent)
  const above = dirname(directory)
  return found || above === directory ? directory : existingPlace(above)
}

/** Calls `act` with a directory of its own in `place`, which is gone afterwards. */
export async function inProbe<Result>(
  place: string,
  act: (probe: string) => Result | Promise<Result>,
): Promise<Result> {
  const probe = await mkdtemp(join(place, '.doctor-'))
  try {
    return await act(probe)
  } finally {
    await rm(probe, { recursive: true, force: true })
  }
}

const freeBytesMin = 1_000_000_000

export interface FileSystem {
  type: number
  bsize: number
  bavail: number
}

/** @param directory the data directory, or where it will be. */
export async function fileSystemOf(directory: string): Promise<FileSystem> {
  return statfs(await existingPlace(directory))
}

export function checkFreeSpace({ bavail, bsize }: Pick<FileSystem, 'bavail' | 'bsize'>): Finding {
  const bytes = bavail * bsize
  if (bytes >= freeBytesMin) return ok(`${formatBytes(bytes)} are free`)
  return warn(
    `${formatBytes(bytes)} are free: when none is left, runs are refused with 503`,
    'Make room on the disk of DATA_DIR, or move DATA_DIR to a larger one.',
  )
}

/** File systems of other machines, and those that are likely to be, by their numbers in statfs(2). */
const remote: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4266872130: 'SMB',
  4283649346: 'CIFS',
  16914839: '9p',
  1702057286: 'FUSE',
  12805120: 'Ceph',
  1397113167: 'AFS',
}

export function checkFileSystem({ type }: Pick<FileSystem, 'type'>): Finding {
  // A signed number of 32 bits on some machines.
  const name = remote[type >>> 0]
  if (!name) return ok('on a disk of this machine')
  return warn(
    `DATA_DIR is on ${name}, whose locks and shared memory SQLite cannot rely on: the store may be damaged`,
    'Set DATA_DIR to a directory on a disk of this machine.',
  )
}
