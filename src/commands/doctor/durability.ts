/** Whether what the service acknowledges is on the disk: SQLite's settings, and a disk that does what it says. */

import type { Inspection } from '../../storage/sqlite/sqlite-inspection.ts'
import { measureFsyncMicroseconds, probeSettings, type Settings } from '../../storage/sqlite/sqlite-inspection.ts'
import { existingPlace, inProbe } from './data-directory.ts'
import { type Finding, fail, ok, reasonOf, unchecked, warn } from './finding.ts'

/** `PRAGMA synchronous` (sqlite.org/pragma.html): FULL. */
const synchronousFull = 2

/** @param directory the data directory; the probe is made in it, or where it will be. */
export async function checkDurability(directory: string, store: Inspection | undefined): Promise<Finding> {
  try {
    const settings = await inProbe(await existingPlace(directory), probeSettings)
    return durability(settings, store)
  } catch (error) {
    return fail(
      `SQLite cannot work in ${directory} (${reasonOf(error)})`,
      'Set DATA_DIR to a directory on a disk of this machine that the user of the service can write to.',
    )
  }
}

export function durability(
  { journalMode, synchronous }: Settings,
  store: Pick<Inspection, 'journalMode'> | undefined,
): Finding {
  if (journalMode !== 'wal') {
    return fail(
      `the file system does not allow SQLite's write-ahead log (journal_mode is ${journalMode})`,
      'Set DATA_DIR to a directory on a disk of this machine.',
    )
  }
  if (synchronous !== synchronousFull) {
    return fail(
      `synchronous is ${synchronous}, not FULL (2): a power cut would lose runs that were acknowledged`,
      'Install Node 24 and the service anew: another SQLite takes the place of its own.',
    )
  }
  if (store && store.journalMode !== 'wal') {
    return warn(
      'another program has taken the write-ahead log from the store (journal_mode is delete)',
      'Start the service, which sets journal_mode to WAL again.',
    )
  }
  return ok('journal_mode is WAL, synchronous is FULL')
}

/** No disk writes a page and says so in less; memory does. */
const plausibleMicrosecondsMin = 20
const slowMicroseconds = 100_000

/** @param directory the data directory; the probe is made in it, or where it will be. */
export async function checkDisk(directory: string): Promise<Finding> {
  try {
    return diskSpeed(await inProbe(await existingPlace(directory), measureFsyncMicroseconds))
  } catch (error) {
    return unchecked(reasonOf(error), 'the data directory')
  }
}

export function diskSpeed(microseconds: number): Finding {
  const time = microseconds < 1000 ? `${Math.round(microseconds)} µs` : `${(microseconds / 1000).toFixed(1)} ms`
  const found = `a page is written and fsynced in ${time}`
  if (microseconds < plausibleMicrosecondsMin) {
    return warn(
      `${found}: no disk is that fast, so that a power cut may lose runs that were acknowledged`,
      'Set DATA_DIR to a directory on a disk that keeps what it says it has written, not in memory.',
    )
  }
  if (microseconds > slowMicroseconds) {
    return warn(
      `${found}, and each request to queue a run waits for that`,
      'Set DATA_DIR to a directory on a faster disk, or take other load off this one.',
    )
  }
  return ok(found)
}
