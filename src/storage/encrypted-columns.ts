/** Encrypted columns: re-encrypts their values after a key rotation, and checks that a process has the store's keys. */
import { setTimeout as delay } from 'node:timers/promises'
import { DecryptionError, type Encryption } from './encryption.ts'
import { takeBatch } from './purge-target.ts'
import type { Store, Transaction, Value } from './store.ts'
import type { Tables } from './tables/tables.ts'

/** A nullable column of encrypted values. */
export interface EncryptedColumn {
  table: keyof Tables
  key: readonly string[]
  column: string
  /** Arguments of `aad`: SQL expressions over the row, such as columns. */
  aadColumns: readonly string[]
  /** Returns the associated data of a row's value. */
  aad(...values: string[]): string
}

interface EncryptedValue {
  key: Value[]
  bytes: Uint8Array
  aad: string
}

/** Decrypts the value with the highest key of each column. @throws {DecryptionError} when any of them fails. */
export async function decryptLatest(
  tx: Transaction,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<void> {
  for (const column of columns) {
    const order = column.key.map((name) => `${name} DESC`).join(', ')
    const [row] = await selectValues(tx, column, `ORDER BY ${order} LIMIT 1`, [])
    if (row) encryption.decrypt(row.bytes, row.aad)
  }
}

/** Whether any of the columns contains a value. */
export async function hasEncryptedValues(tx: Transaction, columns: readonly EncryptedColumn[]): Promise<boolean> {
  for (const { table, column } of columns) {
    const rows = await tx.all(`SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL LIMIT 1`, [])
    if (rows.length > 0) return true
  }
  return false
}

export interface Reencrypted {
  values: number
  /** One message for each value that could not be decrypted and was left unchanged. */
  failures: string[]
}

/**
 * Re-encrypts every value that is not encrypted with the current key, until none is left. Safe to run concurrently with
 * all other work, including itself: values that change in between are handled in the next round.
 */
export async function reencrypt(
  store: Store,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<Reencrypted> {
  let values = 0
  for (;;) {
    const round: Round = { found: 0, reencrypted: 0, failures: [] }
    for (const column of columns) await reencryptColumn(store, encryption, column, round)
    values += round.reencrypted
    if (round.found === round.failures.length) return { values, failures: round.failures }
  }
}

interface Round {
  found: number
  reencrypted: number
  failures: string[]
}

async function reencryptColumn(
  store: Store,
  encryption: Encryption,
  column: EncryptedColumn,
  round: Round,
): Promise<void> {
  let after: Value[] | undefined
  for (;;) {
    const rows = await selectOutdated(store.read, encryption, column, after)
    if (rows.length === 0) return
    round.found += rows.length
    after = rows.at(-1)?.key
    const startedAt = performance.now()
    const changes = rows.flatMap((row) => {
      try {
        return [{ ...row, replacement: encryption.encrypt(encryption.decrypt(row.bytes, row.aad), row.aad) }]
      } catch (error) {
        if (!(error instanceof DecryptionError)) throw error
        round.failures.push(`${column.table}.${column.column} of ${row.key.join(', ')}: ${error.message}`)
        return []
      }
    })
    round.reencrypted += await replaceValues(store, column, changes)
    // Leaves other writers as much time as this batch took.
    await delay(performance.now() - startedAt)
  }
}

/** Compares and swaps: a value that another process has changed in between stays. Returns the number of changed rows. */
async function replaceValues(
  store: Store,
  { table, key, column }: EncryptedColumn,
  changes: readonly (EncryptedValue & { replacement: Uint8Array })[],
): Promise<number> {
  if (changes.length === 0) return 0
  const isRow = key.map((name) => `${name} = ?`).join(' AND ')
  const sql = `UPDATE ${table} SET ${column} = ? WHERE ${isRow} AND ${column} = ? RETURNING 1`
  return store.write(async (tx) => {
    let count = 0
    for (const { key, bytes, replacement } of changes) {
      count += (await tx.all(sql, [replacement, ...key, bytes])).length
    }
    return count
  })
}

/** Limits of a batch, which bound memory and the time under the write lock. */
const batchRowsMax = 64
const batchBytesMax = 1024 * 1024

/** Selects the next values that need the current key. Reads sizes first, since a value may have megabytes. */
async function selectOutdated(
  tx: Transaction,
  encryption: Encryption,
  column: EncryptedColumn,
  after: readonly Value[] | undefined,
): Promise<EncryptedValue[]> {
  const header = encryption.currentHeader()
  const names = column.key.join(', ')
  const marks = column.key.map(() => '?').join(', ')
  const isOutdated = `substr(${column.column}, 1, ${header.length}) <> ?`
  const isAfter = after ? `AND (${names}) > (${marks})` : ''
  const sizesSql = `SELECT ${names}, length(${column.column}) AS size_bytes FROM ${column.table}
    WHERE ${isOutdated} ${isAfter} ORDER BY ${names} LIMIT ${batchRowsMax}`
  const values = [header, ...(after ?? [])]
  const sizes = await tx.all<{ size_bytes: number } & Record<string, Value>>(sizesSql, values)
  const last = takeBatch(sizes, batchBytesMax).at(-1)
  if (!last) return []
  const until = column.key.map((name) => last[name] as Value)
  const range = `AND ${isOutdated} ${isAfter} AND (${names}) <= (${marks}) ORDER BY ${names}`
  return selectValues(tx, column, range, [...values, ...until])
}

/** @param rest SQL after `WHERE column IS NOT NULL`. */
async function selectValues(
  tx: Transaction,
  column: EncryptedColumn,
  rest: string,
  values: readonly Value[],
): Promise<EncryptedValue[]> {
  const selected = [
    ...column.key.map((name, index) => `${name} AS key_${index}`),
    ...column.aadColumns.map((expression, index) => `${expression} AS aad_${index}`),
    `${column.column} AS bytes`,
  ]
  const sql = `SELECT ${selected.join(', ')} FROM ${column.table} WHERE ${column.column} IS NOT NULL ${rest}`
  const rows = await tx.all<Record<string, Value>>(sql, values)
  return rows.map((row) => ({
    key: column.key.map((_, index) => row[`key_${index}`] as Value),
    bytes: row.bytes as Uint8Array,
    aad: column.aad(...column.aadColumns.map((_, index) => String(row[`aad_${index}`]))),
  }))
}

const checkAad = 'encryption-check'

/**
 * A known value that every process decrypts before it encrypts anything. It detects a lost key file before a new key
 * replaces it.
 */
export const encryptionCheckColumn: EncryptedColumn = {
  table: 'encryption_check',
  key: ['id'],
  column: 'value',
  aadColumns: [],
  aad: () => checkAad,
}

/** Whether these are the store's keys. A store without encrypted values adopts them. */
export async function verifyEncryptionKeys(
  store: Store,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<boolean> {
  try {
    if (!(await hasEncryptedValues(store.read, [encryptionCheckColumn]))) {
      // A new store, or one written before check values existed.
      await decryptLatest(store.read, encryption, columns)
      const row = { id: 1, value: encryption.encrypt('', checkAad) }
      // Another process may insert the row at the same time.
      await store.write(({ query }) =>
        query
          .insertInto('encryption_check')
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .execute(),
      )
    }
    await decryptLatest(store.read, encryption, [encryptionCheckColumn])
    return true
  } catch (error) {
    if (error instanceof DecryptionError) return false
    throw error
  }
}
