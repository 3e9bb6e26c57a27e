/** Checks the data directory, its disk, and the embedded store in it. */
import { constants } from 'node:fs'
import { access, mkdtemp, readdir, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StoreMoved } from '../../storage/sqlite/moved-store.ts'
import { resultCode, StoreLocked } from '../../storage/sqlite/sqlite-connection.ts'
import {
  type Inspection,
  measureFsyncMicroseconds,
  probeSettings,
  type Settings,
} from '../../storage/sqlite/sqlite-inspection.ts'
import {
  type Finding,
  fail,
  failWithMessage,
  formatBytes,
  notChecked,
  type Opened,
  ok,
  shortMessage,
  warn,
} from './finding.ts'

export async function checkDataDirectory(directory: string): Promise<Finding> {
  const advice = 'Set DATA_DIR to a directory that the user of the service can write to.'
  const found = await stat(directory).catch(ignoreMissing)
  try {
    if (found && !found.isDirectory()) return fail(`${directory} is not a directory`, advice)
    const existing = await findExisting(directory)
    if (!found) {
      await access(existing, constants.W_OK | constants.X_OK)
      return ok(`${directory} does not exist yet; the first start creates it, with the store and its encryption key`)
    }
    await withProbe(existing, (probe) => writeFile(join(probe, 'file'), 'probe', { flush: true }))
    return checkPrivate(directory, found.mode)
  } catch (error) {
    return fail(`${directory} is not writable (${shortMessage(error)})`, advice)
  }
}

const othersBits = 0o077

/** A private directory protects its files, whatever their modes are. */
async function checkPrivate(directory: string, mode: number): Promise<Finding> {
  const advice = `Run \`chmod -R go= ${directory}\`.`
  for (const name of (mode & othersBits) === 0 ? [] : await readdir(directory)) {
    const path = join(directory, name)
    // SQLite may remove its files meanwhile.
    const found = await stat(path).catch(ignoreMissing)
    if (found && (found.mode & othersBits) !== 0) {
      const octal = (found.mode & 0o777).toString(8).padStart(4, '0')
      return warn(`other users of this machine have access to ${path} (its mode is ${octal})`, advice)
    }
  }
  return ok(directory)
}

/** ENOTDIR: a parent is a file. */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

/** The directory or, if it does not exist, its closest existing parent, which is on the same disk. */
async function findExisting(directory: string): Promise<string> {
  const found = await stat(directory).catch(ignoreMissing)
  const parent = dirname(directory)
  return found || parent === directory ? directory : findExisting(parent)
}

/** Calls `act` with a new directory in `parent`, and removes it. */
async function withProbe<Result>(parent: string, act: (probe: string) => Result | Promise<Result>): Promise<Result> {
  const probe = await mkdtemp(join(parent, '.doctor-'))
  try {
    return await act(probe)
  } finally {
    await rm(probe, { recursive: true, force: true })
  }
}

interface FileSystem {
  type: number
  bsize: number
  bavail: number
}

export async function statFileSystem(directory: string): Promise<FileSystem> {
  return statfs(await findExisting(directory))
}

const freeBytesMin = 1_000_000_000

export function checkFreeSpace({ bavail, bsize }: Pick<FileSystem, 'bavail' | 'bsize'>): Finding {
  const bytes = bavail * bsize
  if (bytes >= freeBytesMin) return ok(`${formatBytes(bytes)} free`)
  return warn(
    `${formatBytes(bytes)} free: on a full disk, queueing runs fails with 503`,
    'Free space on the disk of DATA_DIR, or move DATA_DIR to a larger one.',
  )
}

/** Network file systems, and FUSE, which often is one, by their numbers in statfs(2). */
const networkFileSystems: Readonly<Record<number, string>> = {
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
  // Some machines return a signed 32-bit number.
  const name = networkFileSystems[type >>> 0]
  if (!name) return ok('a local disk')
  return warn(
    `DATA_DIR is on ${name}: SQLite cannot rely on its locks and shared memory, and the store may get damaged`,
    'Set DATA_DIR to a directory on a local disk.',
  )
}

const quickCheckMillisecondsMax = 8000

const notYet = ok('none yet; the first start creates it')

export async function checkStore(
  opened: Opened<Inspection>,
  millisecondsMax = quickCheckMillisecondsMax,
): Promise<Finding> {
  if ('error' in opened) return explainUnopened(opened)
  if (!opened.inspection) return notYet
  const { schema, quickCheck, schemaDeviations, path } = opened.inspection
  const newer = `${path} was written by a newer version of this service (it has ${schema.newer.join(', ')})`
  if (!schema.isCompatible) return fail(newer, 'Start that version, or restore a backup.')
  const errors = await quickCheck(millisecondsMax).catch((error: unknown) => [shortMessage(error)])
  if (errors && errors.length > 0) return fail(`${path} is damaged (${shortMessage(errors.join('; '))})`, restore)
  if (schema.newer.length > 0) return ok(`${newer}, on whose schema this version runs`)
  const deviations = schema.pending.length > 0 ? [] : await schemaDeviations()
  if (deviations.length > 0) {
    return warn(
      `the schema of ${path} was changed (${deviations.join(', ')})`,
      'Undo the change. Triggers act in every transaction, and `backup` refuses such a store.',
    )
  }
  const version =
    schema.pending.length === 0
      ? "has this version's schema"
      : `has an earlier schema; the next start migrates it (${schema.pending.join(', ')})`
  if (errors) return ok(`${path} is intact and ${version}`)
  return warn(
    `${path} ${version}; SQLite's check did not finish within ${millisecondsMax / 1000} s`,
    `Run \`sqlite3 ${path} 'PRAGMA quick_check'\` when there is time.`,
  )
}

const restore = 'Stop the service, and restore the data directory from a backup.'

/** SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN */
const forbidden = [3, 8, 14]

function explainUnopened({ error, cause }: { error: string; cause?: unknown }): Finding {
  if (cause instanceof StoreMoved) return failWithMessage(cause.message)
  const found = `the store cannot be opened (${error})`
  if (cause instanceof StoreLocked) return fail(found, 'End that program, or wait until it has ended.')
  const { syscall } = cause as NodeJS.ErrnoException
  const isForbidden = syscall !== undefined || forbidden.includes(resultCode(cause))
  return fail(found, isForbidden ? 'Let the user of the service read and write DATA_DIR and the files in it.' : restore)
}

const logBytesMax = 1_000_000_000

export function checkStoreSize(opened: Opened<Inspection>): Finding {
  if ('error' in opened) return notChecked('the store cannot be opened', 'the store')
  if (!opened.inspection) return notYet
  return evaluateStoreSize(opened.inspection.sizeBytes())
}

export function evaluateStoreSize({ file, log }: { file: number; log: number }): Finding {
  const sizes = `${formatBytes(file)}, and ${formatBytes(log)} in its write-ahead log`
  if (log <= logBytesMax) return ok(sizes)
  return warn(
    `${sizes}: a long-running reader keeps SQLite from truncating it`,
    'Stop other programs that have the store open, such as a backup or an sqlite3 shell.',
  )
}

/** `PRAGMA synchronous` (sqlite.org/pragma.html): FULL. */
const synchronousFull = 2

export async function checkDurability(directory: string, store: Inspection | undefined): Promise<Finding> {
  try {
    return evaluateDurability(await withProbe(await findExisting(directory), probeSettings), store)
  } catch (error) {
    return fail(
      `SQLite does not work in ${directory} (${shortMessage(error)})`,
      'Set DATA_DIR to a directory on a local disk that the user of the service can write to.',
    )
  }
}

export function evaluateDurability(
  { journalMode, synchronous }: Settings,
  store: Pick<Inspection, 'journalMode'> | undefined,
): Finding {
  if (journalMode !== 'wal') {
    return fail(
      `the file system does not support SQLite's write-ahead log (journal_mode is ${journalMode})`,
      'Set DATA_DIR to a directory on a local disk.',
    )
  }
  if (synchronous !== synchronousFull) {
    return fail(
      `synchronous is ${synchronous}, not FULL (2): a power cut would lose acknowledged runs`,
      'Reinstall Node 24 and the service: another build of SQLite is in use.',
    )
  }
  if (store && store.journalMode !== 'wal') {
    return warn(
      "another program has turned off the store's write-ahead log (journal_mode is delete)",
      'Start the service, which turns it on again.',
    )
  }
  return ok('journal_mode is WAL, synchronous is FULL')
}

/** No disk is faster; memory is. */
const plausibleMicrosecondsMin = 20
const slowMicroseconds = 100_000

export async function checkDisk(directory: string): Promise<Finding> {
  try {
    return evaluateFsync(await withProbe(await findExisting(directory), measureFsyncMicroseconds))
  } catch (error) {
    return notChecked(shortMessage(error), 'the data directory')
  }
}

export function evaluateFsync(microseconds: number): Finding {
  const time = microseconds < 1000 ? `${Math.round(microseconds)} µs` : `${(microseconds / 1000).toFixed(1)} ms`
  const found = `writing and syncing a page takes ${time}`
  if (microseconds < plausibleMicrosecondsMin) {
    return warn(
      `${found}: no disk is that fast, so a power cut may lose acknowledged runs`,
      'Set DATA_DIR to a directory on a real disk, not in memory.',
    )
  }
  if (microseconds > slowMicroseconds) {
    return warn(
      `${found}: each request that queues a run waits that long`,
      'Set DATA_DIR to a directory on a faster disk, or reduce the load on this one.',
    )
  }
  return ok(found)
}
