/** Tries in a directory what the store needs of its file system: a write-ahead log, and an fsync that reaches the disk. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from './sqlite-connection.ts'

export interface Settings {
  journalMode: unknown
  synchronous: unknown
}

/** The settings that a connection like the service's own gets for a file in `directory`. @throws when it gets none. */
export function probeSettings(directory: string): Settings {
  const { database } = connect(join(directory, 'probe.db'), { readOnly: false })
  try {
    database.exec('CREATE TABLE probe (value TEXT); INSERT INTO probe VALUES (1)')
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    return { journalMode: pragma('journal_mode'), synchronous: pragma('synchronous') }
  } finally {
    database.close()
  }
}

const pageBytes = 4096
const writes = 25
/** On a disk that takes its time, fewer writes tell as much. */
const millisecondsMax = 1500

/** How long it takes to write a page and have it on the disk, in microseconds: the median of some writes. */
export function measureFsyncMicroseconds(directory: string): number {
  const file = openSync(join(directory, 'probe'), 'wx', 0o600)
  const times: number[] = []
  const deadline = performance.now() + millisecondsMax
  try {
    for (let index = 0; index < writes && (index < 3 || performance.now() < deadline); index += 1) {
      const start = performance.now()
      writeSync(file, Buffer.alloc(pageBytes, index), 0, pageBytes, index * pageBytes)
      fsyncSync(file)
      times.push((performance.now() - start) * 1000)
    }
  } finally {
    closeSync(file)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}
