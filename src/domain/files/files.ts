/**
 * Files that callers upload, and give to runs by their ids. A file is stored in parts, so that neither an upload nor a
 * download has more than one of them in memory.
 */
import { createHash } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import type { ByteRange } from '../../contract/conditional-requests.ts'
import type { ByteStream } from '../../contract/handler.ts'
import { invalidRequest, Problem } from '../../contract/problem.ts'
import { requireValid } from '../../contract/value-checks.ts'
import { type Contents, ifUploaded, type StoredContent, useBlob } from '../../storage/blobs/contents.ts'
import { dayMilliseconds, type PurgeTarget, takeBatch } from '../../storage/purge-target.ts'
import { findRunOfFile } from '../../storage/runs/run-lookups.ts'
import { parseId } from '../../storage/statement-values.ts'
import { ignoreUnavailable, type Store, StoreUnavailable, statement, type Transaction } from '../../storage/store.ts'
import type { FilesTable } from '../../storage/tables/run-tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import type { FileVariable } from '../workflows/workflows.ts'
import { FileMissing, type FileOfRun } from './file-of-run.ts'
import { isReferred, isVisible } from './files.sql.ts'

export interface StoredFile {
  id: string
  name: string
  mediaType: string
  sizeBytes: number
  /** In hexadecimal. */
  sha256: string
  createdAt: number
  /** When it is deleted, unless a run or a schedule refers to it. */
  expiresAt: number
}

export interface NewFile {
  name: string
  mediaType: string
  content: AsyncIterable<Uint8Array>
  /** The size of the content, if it is known. */
  declaredBytes?: number | undefined
}

/** A larger part takes more memory; a smaller one more transactions, and more requests to a bucket. */
export const partBytes = 4 * 1024 * 1024
/** An upload that stores no part for this time has been interrupted. */
const uploadMilliseconds = 60 * 60 * 1000
const longestName = 255

const insertFile = statement<
  object,
  [id: string, accountId: string, name: string, mediaType: string, createdAt: number, expiresAt: number]
>(
  `INSERT INTO files (id, account_id, name, media_type, status, size_bytes, created_at, expires_at)
    VALUES (?, ?, ?, ?, 'uploading', 0, ?, ?)`,
)
const renewUpload = statement<{ id: string }, [bytes: number, expiresAt: number, id: string]>(
  `UPDATE files SET size_bytes = size_bytes + ?, expires_at = ? WHERE id = ? AND status = 'uploading' RETURNING id`,
)
const insertPart = statement<
  object,
  [fileId: string, position: number, sizeBytes: number, blob: string | null, content: Uint8Array]
>('INSERT INTO file_parts (file_id, position, size_bytes, blob, content) VALUES (?, ?, ?, ?, ?)')
const renewEqual = statement<
  FilesTable,
  [expiresAt: number, sameExpiresAt: number, accountId: string, sha256: string, name: string, mediaType: string]
>(
  `UPDATE files SET expires_at = CASE WHEN expires_at < ? THEN CAST(? AS BIGINT) ELSE expires_at END
    WHERE account_id = ? AND sha256 = ? AND name = ? AND media_type = ? AND status = 'ready' RETURNING *`,
)
const completeFile = statement<FilesTable, [sha256: string, createdAt: number, expiresAt: number, id: string]>(
  `UPDATE files SET status = 'ready', sha256 = ?, created_at = ?, expires_at = ?
    WHERE id = ? AND status = 'uploading' RETURNING *`,
)
const findFile = statement<FilesTable, [id: string, accountId: string, now: number]>(
  `SELECT * FROM files WHERE id = ? AND account_id = ? AND ${isVisible}`,
)
const findFilesOfRun = statement<FilesTable, [runId: string]>(
  `SELECT * FROM files WHERE status = 'ready' AND id IN (SELECT file_id FROM run_files WHERE run_id = ?)`,
)
const findParts = statement<
  { position: number; size_bytes: number; blob: string | null },
  [fileId: string, before: number, after: number]
>(
  `SELECT position, size_bytes, blob FROM file_parts
    WHERE file_id = ? AND position < ? AND position + size_bytes > ? ORDER BY position`,
)
const readPart = statement<
  { content: Uint8Array | null },
  [first: number, bytes: number, fileId: string, position: number]
>('SELECT substr(content, ?, ?) AS content FROM file_parts WHERE file_id = ? AND position = ?')

/** Hides the file from then on. */
const hideFile = statement<{ id: string }, [id: string]>(
  `UPDATE files SET status = 'deleted', expires_at = 0 WHERE id = ? AND status <> 'deleted' RETURNING id`,
)
const hideExpired = statement<object, [id: string, now: number]>(
  `UPDATE files SET status = 'deleted' WHERE id = ? AND expires_at <= ? AND NOT ${isReferred}`,
)
const keepReferred = statement<object, [expiresAt: number, id: string, now: number]>(
  `UPDATE files SET expires_at = ? WHERE id = ? AND expires_at <= ? AND status = 'ready'`,
)
const findExpired = statement<Pick<FilesTable, 'id' | 'status'>, [now: number]>(
  'SELECT id, status FROM files WHERE expires_at <= ? ORDER BY expires_at, id LIMIT 100',
)
const findPartsToDelete = statement<{ position: number; size_bytes: number }, [fileId: string]>(
  `SELECT position, CASE WHEN blob IS NULL THEN size_bytes ELSE 0 END AS size_bytes
    FROM file_parts WHERE file_id = ? ORDER BY position LIMIT 100`,
)
const deletePart = statement<object, [fileId: string, position: number]>(
  'DELETE FROM file_parts WHERE file_id = ? AND position = ?',
)
const deleteRow = statement<object, [id: string]>(`DELETE FROM files WHERE id = ? AND status = 'deleted'`)

interface FilesDependencies {
  store: Store
  contents: Contents
  usage: StorageUsage
  retentionDays: number
  now?: () => number
}

export class Files {
  readonly #store: Store
  readonly #contents: Contents
  readonly #usage: StorageUsage
  readonly #now: () => number
  readonly #retentionMilliseconds: number

  constructor({ store, contents, usage, retentionDays, now = Date.now }: FilesDependencies) {
    this.#store = store
    this.#contents = contents
    this.#usage = usage
    this.#now = now
    this.#retentionMilliseconds = retentionDays * dayMilliseconds
  }

  /**
   * Stores the content while it arrives. The same content with the same name and media type is the same file.
   *
   * @throws {Problem} beyond the storage quota, and if the document does not allow the name or media type. Also what
   * reading the content throws. Nothing is stored then.
   */
  async create(accountId: string, file: NewFile, by: Actor | ApiKeyUse): Promise<StoredFile> {
    const { name, mediaType, content, declaredBytes = partBytes } = file
    const invalid = describeInvalidName(name)
    if (invalid) throw new Problem(invalidRequest([{ parameter: 'name', detail: invalid }]).problem)
    requireValid('StoredFile', { mediaType })
    this.#usage.require(accountId, file.declaredBytes ?? 0)
    const id = uuid()
    const now = this.#now()
    const insert = (tx: Transaction) =>
      tx.all(insertFile, [id, accountId, name, mediaType, now, now + uploadMilliseconds])
    await this.#store.write(insert, { concurrent: true })
    let position = 0
    try {
      const hash = createHash('sha256')
      for await (const part of inParts(content, Math.min(partBytes, Math.max(1, declaredBytes)))) {
        hash.update(part)
        this.#usage.require(accountId, part.length)
        await this.#storePart(id, position, part)
        this.#usage.add(accountId, part.length)
        position += part.length
      }
      const stored = await this.#complete(accountId, { ...file, id, sha256: hash.digest('hex') }, by)
      if (stored.id !== id) await this.#giveUp(accountId, id, position)
      return stored
    } catch (error) {
      await this.#giveUp(accountId, id, position)
      throw error
    }
  }

  /** @throws {StoreUnavailable} also when the upload has been given up. */
  async #storePart(id: string, position: number, part: Uint8Array): Promise<void> {
    const write = async (stored?: StoredContent) =>
      this.#whileUploading(id, stored ? part.length : 0, async (tx) => {
        if (!stored) return
        await tx.all(insertPart, [id, position, part.length, stored.blob, stored.content])
        await useBlob(tx, stored)
      })
    const stored = await this.#contents.write(part, (work) => this.#whileUploading(id, 0, work))
    const isStored = stored && (await ifUploaded(write(stored)))
    if (!isStored) throw new StoreUnavailable('The upload took so long that it was given up.')
  }

  /** Returns false when the upload has been given up. */
  #whileUploading(id: string, bytes: number, work: (tx: Transaction) => Promise<void>): Promise<boolean> {
    const write = async (tx: Transaction) => {
      const [row] = await tx.all(renewUpload, [bytes, this.#now() + uploadMilliseconds, id])
      if (row) await work(tx)
      return row !== undefined
    }
    return this.#store.write(write, { concurrent: true })
  }

  async #complete(
    accountId: string,
    { id, name, mediaType, sha256 }: NewFile & { id: string; sha256: string },
    by: Actor | ApiKeyUse,
  ): Promise<StoredFile> {
    const now = this.#now()
    const expiresAt = now + this.#retentionMilliseconds
    // Isolated from every other write: of two equal uploads that end at once, one finds the other.
    const row = await this.#store.write(async (tx) => {
      const [equal] = await tx.all(renewEqual, [expiresAt, expiresAt, accountId, sha256, name, mediaType])
      if (equal) {
        await tx.all(hideFile, [id])
        return equal
      }
      const [completed] = await tx.all(completeFile, [sha256, now, expiresAt, id])
      const subject = { id, name }
      if (completed) await recordAudit(tx, accountId, { action: 'file.created', by: await toActor(tx, by), subject })
      return completed
    })
    if (!row) throw new StoreUnavailable('The upload took so long that it was given up.')
    return toFile(row)
  }

  /** Deletes what an upload has stored. Maintenance deletes what cannot be deleted now. */
  async #giveUp(accountId: string, id: string, bytes: number): Promise<void> {
    this.#usage.add(accountId, -bytes)
    await this.#discard(id).catch(ignoreUnavailable)
  }

  /** `undefined` when the account has no such file. */
  async get(accountId: string, id: string): Promise<StoredFile | undefined> {
    const fileId = parseId(id)
    if (fileId === undefined) return undefined
    const [row] = await this.#store.read.all(findFile, [fileId, accountId, this.#now()])
    return row && toFile(row)
  }

  /** The file, if the run refers to it. */
  async getOfRun(runId: string, id: string): Promise<StoredFile | undefined> {
    return (await this.ofRun(runId)).find((file) => file.id === id.toLowerCase())
  }

  /** The files to which the run refers. */
  async ofRun(runId: string): Promise<StoredFile[]> {
    return (await this.#store.read.all(findFilesOfRun, [runId])).map(toFile)
  }

  /** The files that variables of the run name. @throws {FileMissing} */
  async findOfRun(runId: string, variables: readonly FileVariable[]): Promise<FileOfRun[]> {
    const files = await this.ofRun(runId)
    return variables.map((variable) => {
      const file = files.find(({ id }) => id === variable.id)
      if (!file) throw new FileMissing(variable)
      const { name, mediaType, sizeBytes } = file
      return { ...variable, name, mediaType, sizeBytes }
    })
  }

  /** Bytes of the file, by default all of them. */
  stream(
    file: Pick<StoredFile, 'id' | 'sizeBytes'>,
    { first, last }: ByteRange = { first: 0, last: file.sizeBytes - 1 },
  ): ByteStream {
    return { bytes: last - first + 1, chunks: this.#read(file, first, last) }
  }

  async *#read({ id }: Pick<StoredFile, 'id'>, first: number, last: number): AsyncGenerator<Uint8Array> {
    if (last < first) return
    const parts = await this.#store.read.all(findParts, [id, last + 1, first])
    for (const { position, size_bytes, blob } of parts) {
      const from = Math.max(0, first - position)
      const bytes = Math.min(size_bytes, last + 1 - position) - from
      const content =
        blob === null
          ? (await this.#store.read.all(readPart, [from + 1, bytes, id, position]))[0]?.content
          : await this.#contents.readBlob(blob, from, bytes)
      if (content?.length !== bytes) throw new Error(`A part of the file ${id} is missing: see ARTIFACTS_URL.`)
      yield content
    }
  }

  /** `inUse` when an unfinished run or a schedule refers to the file. `undefined` when there is no such file. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<'deleted' | 'inUse' | undefined> {
    const fileId = parseId(id)
    if (fileId === undefined) return undefined
    const deleted = await this.#store.write(async (tx) => {
      const [row] = await tx.all(findFile, [fileId, accountId, this.#now()])
      if (!row) return undefined
      const ofSchedules = tx.query.selectFrom('schedule_files').select('schedule_id').where('file_id', '=', fileId)
      const isUsed = (await ofSchedules.limit(1).execute()).length + (await tx.all(findRunOfFile, [fileId])).length > 0
      if (isUsed) return 'inUse'
      await tx.query.deleteFrom('run_files').where('file_id', '=', fileId).execute()
      await tx.all(hideFile, [fileId])
      const subject = { id: fileId, name: row.name }
      await recordAudit(tx, accountId, { action: 'file.deleted', by: await toActor(tx, by), subject })
      return 'deleted'
    })
    if (deleted === 'deleted') {
      await this.#discard(fileId).catch(ignoreUnavailable)
      await this.#store.scrub().catch(ignoreUnavailable)
    }
    return deleted
  }

  /** Hides the file and deletes it with its parts, a batch for each transaction. */
  async #discard(id: string): Promise<void> {
    const discard = async (tx: Transaction) => {
      await tx.all(hideFile, [id])
      return deleteParts(tx, id)
    }
    while (await this.#store.write(discard, { concurrent: true }));
  }
}

/** Expired files, uploads that were interrupted, and what is left of deleted files. */
export function expiredFiles(now: () => number): PurgeTarget {
  return {
    concurrent: true,
    next: async (tx) => {
      const [first] = await tx.all(findExpired, [now()])
      return first && `${first.id}/${first.status}`
    },
    remove: async (tx) => {
      for (const { id, status } of await tx.all(findExpired, [now()])) {
        if (status !== 'deleted') {
          await tx.all(hideExpired, [id, now()])
          // One that a run refers to is looked at again after a day.
          await tx.all(keepReferred, [now() + dayMilliseconds, id, now()])
        }
        if (await deleteParts(tx, id)) return
      }
    },
  }
}

/** Deletes parts of a file that is deleted, and the file after its last part. Returns whether any are left. */
async function deleteParts(tx: Transaction, id: string): Promise<boolean> {
  const [file] = await tx.query.selectFrom('files').select('status').where('id', '=', id).execute()
  if (file?.status !== 'deleted') return false
  const parts = await tx.all(findPartsToDelete, [id])
  const batch = takeBatch(parts)
  for (const { position } of batch) await tx.all(deletePart, [id, position])
  if (batch.length < parts.length || parts.length === 100) return true
  await tx.all(deleteRow, [id])
  return false
}

/** Gathers the chunks in parts of this many bytes; the last one may be smaller. Each is valid until the next is read. */
async function* inParts(chunks: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  const part = Buffer.allocUnsafe(bytes)
  let length = 0
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; ) {
      const taken = chunk.subarray(from, from + bytes - length)
      part.set(taken, length)
      length += taken.length
      from += taken.length
      if (length < bytes) continue
      yield part
      length = 0
    }
  }
  if (length > 0) yield part.subarray(0, length)
}

/** Why a file may not have the name; `undefined` if it may. */
function describeInvalidName(name: string): string | undefined {
  if (name === '.' || name === '..') return 'must not be . or ..'
  const isControl = [...name].some((character) => character < ' ' || character === '\x7f')
  if (name === '' || isControl || /[/\\]/.test(name))
    return 'must have no slash and no control character, and not be empty'
  return Buffer.byteLength(name) > longestName ? `has more than ${longestName} bytes in UTF-8` : undefined
}

function toFile(row: FilesTable): StoredFile {
  const { id, name, media_type: mediaType, size_bytes: sizeBytes, sha256 } = row
  const times = { createdAt: row.created_at, expiresAt: row.expires_at }
  return { id, name, mediaType, sizeBytes, sha256: sha256 ?? '', ...times }
}
