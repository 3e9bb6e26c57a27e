/** `migrate-store --to URL`: copies the embedded store to PostgreSQL, and verifies the copy. */
import { hash } from 'node:crypto'
import { type Config, readConfig } from '../config/config.ts'
import { openKeyRing } from '../domain/installation.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption } from '../storage/encryption.ts'
import { DatabaseBusy, DatabaseError } from '../storage/postgres/postgres-schema.ts'
import { openTarget, type Target } from '../storage/postgres/postgres-target.ts'
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
    const path = await checkSource(config)
    const source = await lockSource(path, serving)
    try {
      const tables = sourceTables(source)
      const target = await openTarget(url, tables)
      try {
        await copyAll(source, target, tables)
        await target.publish()
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

/** Copies what is missing and verifies everything. Starts over once if the source has changed since an interruption. */
async function copyAll(source: Source, target: Target, tables: readonly SourceTable[]): Promise<void> {
  if (target.resumed) print('Resuming the copy that was interrupted.')
  for (let mayStartOver = target.resumed; ; mayStartOver = false) {
    for (const table of tables) await copyTable(source, target, table)
    for (const { table, id } of lastIds(source)) if (id > 0) await target.setLastId(table, id)
    const different = await firstDifference(source, target, tables)
    if (different === undefined) return
    if (!mayStartOver) {
      throw new CommandError(`The copy of the table ${different} differs from the source: check the store with doctor.`)
    }
    print(`The table ${different} has changed since the interruption. Starting over.`)
    await target.clear(tables)
  }
}

const progressMilliseconds = 2000

async function copyTable(source: Source, target: Target, table: SourceTable): Promise<void> {
  const total = countRows(source, table)
  if (total === 0) return
  let copied = 0
  let printedAt = performance.now()
  for (const rows of readBatches(source, table, await target.lastKey(table))) {
    await target.insert(table, rows)
    copied += rows.length
    if (performance.now() - printedAt < progressMilliseconds) continue
    printedAt = performance.now()
    print(`${table.name}: ${copied} of ${total} rows`)
  }
}

/** Compares the number of rows and the sum of their hashes. Returns the first table that differs. */
async function firstDifference(
  source: Source,
  target: Target,
  tables: readonly SourceTable[],
): Promise<string | undefined> {
  for (const table of tables) {
    const expected = await summarize(readBatches(source, table))
    const actual = await summarize(target.read(table))
    if (expected.rows !== actual.rows || expected.sum !== actual.sum) return table.name
    if (expected.rows > 0) print(`${table.name}: ${expected.rows} rows copied and verified`)
  }
  return undefined
}

/** Adds up SHA-256 hashes of rows, which does not depend on their order. */
async function summarize(batches: Iterable<Row[]> | AsyncIterable<Row[]>): Promise<{ rows: number; sum: bigint }> {
  let [rows, sum] = [0, 0n]
  for await (const batch of batches) {
    for (const row of batch) sum += BigInt(`0x${hash('sha256', canonicalRow(row))}`)
    rows += batch.length
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
  const steps = `Everything is in PostgreSQL. Set DATABASE_URL to it for all processes, and start them. ${key}`
  if (!serving) return steps
  return `${steps}\nThe old store accepts no writes until this command ends: stop all processes of the service first, then press Ctrl+C.`
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
