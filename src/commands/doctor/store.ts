/** Whether the embedded store opens, is of this version's schema, and is whole; and how large it is. */

import type { Inspection } from '../../storage/sqlite/sqlite-inspection.ts'
import type { StoreInspection } from '../../storage/store-inspection.ts'
import { type Finding, fail, formatBytes, ok, pluralize, reasonOf, unchecked, warn } from './finding.ts'
import { findLastWrite } from './last-write.ts'

/** What reading the store came to: it is there, or not yet, or cannot be read. */
export type Read<Of extends StoreInspection = StoreInspection> = { inspection: Of | undefined } | { refused: string }

const quickCheckMillisecondsMax = 8000

const notYet = ok('there is none yet; the first start makes it')

export async function checkStore(
  read: Read<Inspection>,
  millisecondsMax = quickCheckMillisecondsMax,
): Promise<Finding> {
  const restore = 'Stop the service, and restore the data directory from a backup.'
  if ('refused' in read) return fail(`the store does not open (${read.refused})`, restore)
  if (!read.inspection) return notYet
  const { schema, quickCheck, path } = read.inspection
  if (schema.newer.length > 0) {
    return fail(
      `${path} was written by a newer version of this service (it has ${schema.newer.join(', ')})`,
      'Start that version, or restore a backup.',
    )
  }
  const faults = await quickCheck(millisecondsMax).catch((error: unknown) => [reasonOf(error)])
  if (faults && faults.length > 0) return fail(`${path} is damaged (${reasonOf(faults.join('; '))})`, restore)
  const schemaNow =
    schema.pending.length === 0
      ? "of this version's schema"
      : `of an earlier version; the next start migrates it (${schema.pending.join(', ')})`
  if (faults) return ok(`${path} is whole, and ${schemaNow}`)
  return warn(
    `${path} is ${schemaNow}; SQLite was not through with its check after ${millisecondsMax / 1000} s`,
    `Check it by \`sqlite3 ${path} 'PRAGMA quick_check'\` when there is time.`,
  )
}

const logBytesMax = 1_000_000_000

export function checkStoreSize(read: Read<Inspection>): Finding {
  if ('refused' in read) return unchecked('the store does not open', 'the store')
  if (!read.inspection) return notYet
  return storeSize(read.inspection.sizeBytes())
}

export function storeSize({ file, log }: { file: number; log: number }): Finding {
  const found = `${formatBytes(file)}, and ${formatBytes(log)} in its write-ahead log`
  if (log <= logBytesMax) return ok(found)
  return warn(
    `${found}: a program that reads for long keeps it from being emptied`,
    'Stop other programs that have the store open, such as a backup or an sqlite3 shell.',
  )
}

const behindMillisecondsMax = 60_000
/** Nobody had this version before. */
const released = Date.UTC(2026, 0)

/** @param now the clock's time. Expiry, delays and leases are told by it. */
export async function checkClock(read: Read, now: number): Promise<Finding> {
  const shown = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const advice = "Set the machine's clock, and keep it right with NTP."
  if (now < released) return fail(`it is ${shown}, before this version was written`, advice)
  if ('refused' in read) return unchecked('the store does not open', 'the store')
  const newest = read.inspection && (await findLastWrite(read.inspection.store.read))
  const behind = (newest ?? 0) - now
  if (behind <= behindMillisecondsMax) return ok(`it is ${shown}`)
  return fail(
    `it is ${shown}, ${spanOf(behind)} behind what the store remembers: keys and runs would not expire, nor leases end`,
    advice,
  )
}

function spanOf(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000)
  if (minutes < 120) return pluralize(minutes, 'minute')
  const hours = Math.round(minutes / 60)
  return hours < 48 ? pluralize(hours, 'hour') : pluralize(Math.round(hours / 24), 'day')
}
