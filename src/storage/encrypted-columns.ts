/** Which columns hold sealed values, as each folder of the domain describes its own, and how they are sealed anew. */
import { setTimeout as delay } from 'node:timers/promises'
import { DecryptionError, type Encryption } from './encryption.ts'
import type { Store, Transaction, Value } from './store.ts'
import type { Tables } from './tables.ts'

export interface EncryptedColumn {
  table: keyof Tables
  /** The columns that identify a row. */
  key: readonly string[]
  /** Where the sealed value is, or NULL. */
  column: string
  /** What `owner` is made from: for each name an SQL expression over the row, such as the name of a column. */
  aadColumns: Readonly<Record<string, string>>
  aad(parts: Record<string, string>): string
}

/** A column that `owner` describes with the names in `aadColumns`, and no others. */
export function encryptedColumn<Name extends string>(
  column: Omit<EncryptedColumn, 'aadColumns' | 'aad'> & {
    aadColumns: Readonly<Record<Name, string>>
    aad(parts: Record<Name, string>): string
  },
): EncryptedColumn {
  return column
}

interface Sealed {
  key: Value[]
  bytes: Uint8Array
  aad: string
}

/**
 * Opens the last value of each column, in the order of its key.
 *
 * @throws {DecryptionError} when one does not open.
 */
export async function decryptLatest(
  tx: Transaction,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<void> {
  for (const column of columns) {
    const [row] = await rowsOf(tx, column, `ORDER BY ${descending(column.key)} LIMIT 1`, [])
    if (row) encryption.decrypt(row.bytes, row.aad)
  }
}

/** Whether any of the columns holds a sealed value. */
export async function hasEncryptedValues(tx: Transaction, columns: readonly EncryptedColumn[]): Promise<boolean> {
  for (const { table, column } of columns) {
    const rows = await tx.all(`SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL LIMIT 1`, [])
    if (rows.length > 0) return true
  }
  return false
}

export interface Reencrypted {
  values: number
  /** Of the values that do not open, which are left as they are: where each is, and why. */
  failures: string[]
}

/**
 * Seals anew, under the current key, whatever is under another, until nothing is. It may run beside everything else,
 * itself included: a value that was changed meanwhile is left to the next round.
 */
export async function reencrypt(
  store: Store,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<Reencrypted> {
  let values = 0
  for (;;) {
    const round = { found: 0, resealed: 0, refused: [] as string[] }
    for (const column of columns) await resealColumn(store, encryption, column, round)
    values += round.resealed
    if (round.found === round.refused.length) return { values, failures: round.refused }
  }
}

type Round = { found: number; resealed: number; refused: string[] }

async function resealColumn(
  store: Store,
  encryption: Encryption,
  column: EncryptedColumn,
  round: Round,
): Promise<void> {
  let after: Value[] | undefined
  for (;;) {
    const rows = await batchAfter(store.read, encryption, column, after)
    if (rows.length === 0) return
    round.found += rows.length
    after = rows.at(-1)?.key
    const startedAt = performance.now()
    const changes = rows.flatMap((row) => {
      const sealed = sealedAnew(encryption, column, row, round.refused)
      return sealed ? [{ ...row, sealed }] : []
    })
    round.resealed += await replace(store, column, changes)
    // Whoever else writes gets as much time as this has taken.
    await delay(performance.now() - startedAt)
  }
}

function sealedAnew(
  encryption: Encryption,
  { table, column }: EncryptedColumn,
  { key, bytes, aad }: Sealed,
  refused: string[],
): Uint8Array | undefined {
  try {
    return encryption.encrypt(encryption.decrypt(bytes, aad), aad)
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error
    refused.push(`${table}.${column} of ${key.join(', ')}: ${error.message}`)
    return undefined
  }
}

/** Each only where the old bytes still stand: what another process has written meanwhile is not undone. */
async function replace(
  store: Store,
  { table, key, column }: EncryptedColumn,
  changes: readonly (Sealed & { sealed: Uint8Array })[],
): Promise<number> {
  if (changes.length === 0) return 0
  const isRow = key.map((name) => `${name} = ?`).join(' AND ')
  const sql = `UPDATE ${table} SET ${column} = ? WHERE ${isRow} AND ${column} = ? RETURNING 1`
  return store.write(async (tx) => {
    let count = 0
    for (const { key, bytes, sealed } of changes) count += (await tx.all(sql, [sealed, ...key, bytes])).length
    return count
  })
}

/** Bound what is read at once, and how long the write lock is held for it. */
const batchRowsMax = 64
const batchBytesMax = 1024 * 1024

/** The next rows whose value is not under the current key: sizes first, since a value may have megabytes. */
async function batchAfter(
  tx: Transaction,
  encryption: Encryption,
  column: EncryptedColumn,
  after: readonly Value[] | undefined,
): Promise<Sealed[]> {
  const header = encryption.currentHeader()
  const names = column.key.join(', ')
  const marks = column.key.map(() => '?').join(', ')
  const older = `substr(${column.column}, 1, ${header.length}) <> ?`
  const later = after ? `AND (${names}) > (${marks})` : ''
  const listSql = `SELECT ${names}, length(${column.column}) AS bytes FROM ${column.table}
    WHERE ${older} ${later} ORDER BY ${names} LIMIT ${batchRowsMax}`
  const listed = await tx.all<Record<string, Value>>(listSql, [header, ...(after ?? [])])
  let bytes = 0
  const taken = listed.filter((row, index) => {
    bytes += Number(row.bytes)
    return index === 0 || bytes <= batchBytesMax
  })
  const last = taken.at(-1)
  if (!last) return []
  const until = column.key.map((name) => last[name] as Value)
  const range = `AND ${older} ${later} AND (${names}) <= (${marks}) ORDER BY ${names}`
  return rowsOf(tx, column, range, [header, ...(after ?? []), ...until])
}

async function rowsOf(tx: Transaction, of: EncryptedColumn, rest: string, values: readonly Value[]): Promise<Sealed[]> {
  const parts = Object.entries(of.aadColumns)
  const selected = [
    ...of.key.map((name, index) => `${name} AS key_${index}`),
    ...parts.map(([, expression], index) => `${expression} AS part_${index}`),
    `${of.column} AS bytes`,
  ]
  const sql = `SELECT ${selected.join(', ')} FROM ${of.table} WHERE ${of.column} IS NOT NULL ${rest}`
  const rows = await tx.all<Record<string, Value>>(sql, values)
  return rows.map((row) => ({
    key: of.key.map((_, index) => row[`key_${index}`] as Value),
    bytes: row.bytes as Uint8Array,
    aad: of.aad(Object.fromEntries(parts.map(([name], index) => [name, String(row[`part_${index}`])]))),
  }))
}

function descending(names: readonly string[]): string {
  return names.map((name) => `${name} DESC`).join(', ')
}

const owner = 'encryption-check'
const rowId = 1

export const encryptionCheckColumn: EncryptedColumn = encryptedColumn({
  table: 'encryption_check',
  key: ['id'],
  column: 'value',
  aadColumns: {},
  aad: () => owner,
})

/** Whether anything was ever encrypted that is still there. */
export function hasEncryptedData(store: Store, columns: readonly EncryptedColumn[]): Promise<boolean> {
  return hasEncryptedValues(store.read, [encryptionCheckColumn, ...columns])
}

/** Whether these are the store's keys; those of a store that has nothing encrypted become so. */
export async function verifyEncryptionKeys(
  store: Store,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<boolean> {
  try {
    if (!(await hasEncryptedValues(store.read, [encryptionCheckColumn]))) {
      // Of an earlier version, or new.
      await decryptLatest(store.read, encryption, columns)
      await remember(store, encryption)
    }
    await decryptLatest(store.read, encryption, [encryptionCheckColumn])
    return true
  } catch (error) {
    if (error instanceof DecryptionError) return false
    throw error
  }
}

/** Another process that starts at the same time may be first. */
async function remember(store: Store, encryption: Encryption): Promise<void> {
  const row = { id: rowId, value: encryption.encrypt('', owner) }
  await store.write(({ query }) =>
    query
      .insertInto('encryption_check')
      .values(row)
      .onConflict((it) => it.doNothing())
      .execute(),
  )
}
