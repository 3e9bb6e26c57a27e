/** `migrate-store --to URL`: copies the embedded store to PostgreSQL, and verifies the copy. */
import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type Config, readConfig } from '../config/config.ts'
import { blobLocation, openKeyRing } from '../domain/installation.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption } from '../storage/encryption.ts'
import { DatabaseBusy, DatabaseError, describeDatabase } from '../storage/postgres/postgres-schema.ts'
import { isUniqueViolation, openTarget, type Target } from '../storage/postgres/postgres-target.ts'
import { markMoved } from '../storage/sqlite/moved-store.ts'
import { StoreLocked } from '../storage/sqlite/sqlite-connection.ts'
import { inspectSqliteStore } from '../storage/sqlite/sqlite-inspection.ts'
import {
  countRows,
  lastIds,
  lockSource,
  type Row,
  readBatches,
  type Source,
  SourceInUse,
  type SourceTable,
  sourceTables,
} from '../storage/sqlite/sqlite-source.ts'
import { findEncryptedColumns } from './doctor/encryption-key.ts'
import { CommandError, print } from './output.ts'

export interface MigrateStoreOptions {
  to: string
  serving?: boolean
}

const expected = [SourceInUse, StoreLocked, DatabaseError, DatabaseBusy]

/**
 * @param untilStopped resolves when the operator says that all processes of a serving installation are stopped.
 * @throws {CommandError} when the source or the target cannot be used; the message says what to do.
 */
export async function migrateStore(
  { to, serving = false }: MigrateStoreOptions,
  environment: NodeJS.ProcessEnv = process.env,
  untilStopped: () => Promise<void> = untilSignal,
): Promise<void> {
  // The setting of the target would hide the source.
  const config = readConfig({ ...environment, DATABASE_URL: undefined })
  const url = readConfig({ ...environment, DATABASE_URL: to }).DATABASE_URL
  if (url === undefined) throw new CommandError('--to is empty: pass postgres://user:password@host/database.')
  try {
    print(`Checking the store in ${config.DATA_DIR}.`)
    const path = await checkSource(config)
    const source = await lockSource(path, serving)
    try {
      const tables = sourceTables(source)
      print('The store is locked. Opening the database.')
      const target = await openTarget(url, tables)
      try {
        await copyAll(source, target, tables)
        await target.publish()
        markMoved(config.DATA_DIR, describeDatabase(url))
      } finally {
        await target.close()
      }
      print(nextSteps(config, serving))
      if (serving) await untilStopped()
    } finally {
      source.close()
    }
  } catch (error) {
    const isExpected = expected.some((kind) => error instanceof kind)
    throw isExpected ? new CommandError((error as Error).message.replaceAll('DATABASE_URL', '--to')) : error
  }
}

/** Checks that the store has this version's schema and that the keys decrypt it. Returns its path. */
async function checkSource(config: Config): Promise<string> {
  const { DATA_DIR } = config
  const inspection = await inspectSqliteStore(DATA_DIR)
  if (!inspection) throw new CommandError(`There is no store in ${DATA_DIR}: set DATA_DIR to the service's directory.`)
  try {
    const { path, schema, store } = inspection
    if (schema.newer.length > 0) {
      throw new CommandError('The store was written by a newer version of this service: copy it with that version.')
    }
    if (schema.pending.length > 0) {
      throw new CommandError('The store has the schema of an older version: start this version once, and try again.')
    }
    const columns = await findEncryptedColumns({ read: store.read, schema })
    if (columns.length > 0) await decryptLatest(store.read, new Encryption(await openKeyRing(config)), columns)
    return path
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error
    const place = config.ENCRYPTION_KEY ? 'ENCRYPTION_KEY' : `The key file in ${DATA_DIR}`
    throw new CommandError(`${place} does not decrypt the values in ${DATA_DIR}: set the key that encrypted them.`)
  } finally {
    inspection.close()
  }
}

/** Copies everything, or what an interrupted copy lacks, and verifies the copy. */
async function copyAll(source: Source, target: Target, tables: readonly SourceTable[]): Promise<void> {
  const copy = async (starts?: Starts) => {
    for (const table of tables) await copyTable(source, target, table, starts?.get(table))
  }
  if (target.resumed) {
    print('Resuming the copy that was interrupted: comparing it with the store.')
    try {
      await copy(await findChanges(source, target, tables))
    } catch (error) {
      // Two rows may have exchanged values that must be unique, such as names.
      if (!isUniqueViolation(error)) throw error
      print('The changes since the interruption conflict with the copy. Starting over.')
      await target.clear(tables)
      await copy()
    }
  } else await copy()
  for (const { table, id } of lastIds(source)) if (id > 0) await target.setLastId(table, id)
  const different = await firstDifference(source, target, tables)
  if (different === undefined) return
  throw new CommandError(`The copy of the table ${different} differs from the source: check the store with doctor.`)
}

/** By table: the keys after which batches of rows are to be copied; `undefined` for the first batch. */
type Starts = Map<SourceTable, (Row | undefined)[]>

/**
 * Finds the batches that differ from the copy, and deletes rows that are no longer in the store. Tables that refer to others
 * come first, so that a row is deleted after those that refer to it.
 */
async function findChanges(source: Source, target: Target, tables: readonly SourceTable[]): Promise<Starts> {
  const starts: Starts = new Map()
  for (const table of tables.toReversed()) {
    const progress = new Progress(`${table.name}: compared`, countRows(source, table))
    const differing: (Row | undefined)[] = []
    let after: Row | undefined
    for (const rows of readBatches(source, table)) {
      const last = keyOf(table, rows.at(-1) ?? [])
      const copied = await target.readRange(table, after, last)
      const expected = new Set(rows.map(canonicalRow))
      if (copied.length !== rows.length || copied.some((row) => !expected.has(canonicalRow(row)))) {
        differing.push(after)
        const keys = new Set(rows.map((row) => canonicalRow(keyOf(table, row))))
        const copiedKeys = copied.map((row) => keyOf(table, row))
        await target.delete(
          table,
          copiedKeys.filter((key) => !keys.has(canonicalRow(key))),
        )
      }
      after = last
      progress.add(rows.length)
    }
    await target.deleteAfter(table, after)
    starts.set(table, differing)
  }
  return starts
}

function keyOf({ columns, key }: SourceTable, row: Row): Row {
  return key.map((name) => row[columns.indexOf(name)] ?? null)
}

/** @param starts of the batches to copy; default all. */
async function copyTable(
  source: Source,
  target: Target,
  table: SourceTable,
  starts?: readonly (Row | undefined)[],
): Promise<void> {
  const progress = new Progress(table.name, countRows(source, table))
  if (!starts) {
    for (const rows of readBatches(source, table)) {
      await target.put(table, rows)
      progress.add(rows.length)
    }
    return
  }
  let changed = 0
  for (const start of starts) {
    const [rows = []] = readBatches(source, table, start)
    await target.put(table, rows)
    progress.add(rows.length)
    changed += rows.length
  }
  if (changed > 0) print(`${table.name}: ${changed} rows copied again, in batches with missing or changed rows`)
}

/** Prints how many rows of a table are done, at most once a second. */
class Progress {
  static #printedAt = 0
  readonly #title: string
  readonly #total: number
  #done = 0

  constructor(title: string, total: number) {
    this.#title = title
    this.#total = total
  }

  add(rows: number): void {
    this.#done += rows
    if (performance.now() - Progress.#printedAt < progressMilliseconds) return
    Progress.#printedAt = performance.now()
    print(`${this.#title}: ${this.#done} of ${this.#total} rows`)
  }
}

const progressMilliseconds = 1000

/** Compares the number of rows and the sum of their hashes. Returns the first table that differs. */
async function firstDifference(
  source: Source,
  target: Target,
  tables: readonly SourceTable[],
): Promise<string | undefined> {
  for (const table of tables) {
    const progress = new Progress(`${table.name}: verified`, 2 * countRows(source, table))
    const expected = await summarize(readBatches(source, table), progress)
    const actual = await summarize(target.read(table), progress)
    if (expected.rows !== actual.rows || expected.sum !== actual.sum) return table.name
    if (expected.rows > 0) print(`${table.name}: ${expected.rows} rows copied and verified`)
  }
  return undefined
}

/** Adds up SHA-256 hashes of rows, which does not depend on their order. */
async function summarize(batches: Iterable<Row[]> | AsyncIterable<Row[]>, progress: Progress) {
  let [rows, sum] = [0, 0n]
  for await (const batch of batches) {
    for (const row of batch) sum += BigInt(`0x${hash('sha256', canonicalRow(row))}`)
    rows += batch.length
    progress.add(batch.length)
  }
  return { rows, sum }
}

/** The stores return the same numbers and text, and different kinds of byte arrays. */
function canonicalRow(row: Row): string {
  return JSON.stringify(
    row.map((value) => (value instanceof Uint8Array ? [Buffer.from(value).toString('base64')] : value)),
  )
}

function nextSteps(config: Config, serving: boolean): string {
  const key = config.ENCRYPTION_KEY
    ? 'Keep ENCRYPTION_KEY as it is.'
    : `Set ENCRYPTION_KEY to the key in ${config.DATA_DIR}, or keep that directory.`
  const steps = `Everything is in PostgreSQL, and the store in ${config.DATA_DIR} opens no more. Set DATABASE_URL for all processes and commands, and start them. ${key}${blobNote(config)}`
  if (!serving) return steps
  return `${steps}\nProcesses that have the old store open cannot write to it until this command ends: stop all processes of the service first, then press Ctrl+C.`
}

/** Blobs stay where they are, and the default of ARTIFACTS_URL is another one with DATABASE_URL. */
function blobNote(config: Config): string {
  const location = blobLocation({ ...config, DATABASE_URL: undefined })
  if (config.ARTIFACTS_URL || location?.kind !== 'directory' || !existsSync(location.path)) return ''
  const { href } = pathToFileURL(location.path)
  return ` Artifacts above 1 MiB stay in ${location.path}: set ARTIFACTS_URL to ${href} for all processes, which need to share it.`
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const keepAlive = setInterval(() => {}, 60_000)
    const stop = () => {
      clearInterval(keepAlive)
      resolve()
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
  })
}
