/**
 * Contents of rows: small ones are in the row, larger ones are blobs. A blob is written before the row that refers to it, and
 * deleted after it. Until then, and from then on, it has a row in `unused_blobs`, by which maintenance deletes it.
 */
import { v7 as uuid } from 'uuid'
import { inList } from '../statement-values.ts'
import { type Store, StoreUnavailable, statement, type Transaction } from '../store.ts'
import type { BlobStore } from './blob-store.ts'

/** Larger contents are blobs. */
export const inlineBytesMax = 1024 * 1024

/** A content as a row has it. */
export interface StoredContent {
  /** Empty if there is a blob. */
  content: Uint8Array
  blob: string | null
}

/** From the start of an upload until the row must refer to the blob. */
const uploadMilliseconds = 60 * 60 * 1000
/** A blob that could not be deleted while others could is left for this time. */
const postponedMilliseconds = 10 * 60 * 1000
const deletedMax = 100

const insertUnused = statement<object, [key: string, deleteAfter: number]>(
  `INSERT INTO unused_blobs (key, delete_after) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET delete_after = excluded.delete_after`,
)
const deleteUnused = statement<{ key: string }, [key: string]>('DELETE FROM unused_blobs WHERE key = ? RETURNING key')
const findUnused = statement<{ key: string }, [now: number]>(
  `SELECT key FROM unused_blobs WHERE delete_after <= ? ORDER BY delete_after LIMIT ${deletedMax}`,
)

type IfAllowed = (work: (tx: Transaction) => Promise<void>) => Promise<boolean>

export class Contents {
  readonly #store: Store
  readonly #blobs: BlobStore | undefined
  readonly #now: () => number
  /** The keys of contents whose upload has failed, for the next attempt. */
  readonly #failed = new WeakMap<Uint8Array, string>()

  /** @param blobs without it, all contents are in rows. */
  constructor(store: Store, blobs?: BlobStore, now: () => number = Date.now) {
    this.#store = store
    this.#blobs = blobs
    this.#now = now
  }

  /**
   * Outside of the transaction that stores the row, which calls `useBlob`. A later call with the same object after a failure
   * replaces the same blob.
   *
   * @param ifAllowed runs the given work in a transaction before an upload, or returns false when nothing may be stored.
   * @returns `undefined` when nothing may be stored.
   */
  async write(content: Uint8Array, ifAllowed: IfAllowed): Promise<StoredContent | undefined> {
    if (!this.#blobs || content.length <= inlineBytesMax) return { content, blob: null }
    const key = this.#failed.get(content) ?? uuid()
    this.#failed.delete(content)
    const deleteAfter = this.#now() + uploadMilliseconds
    try {
      const isAllowed = await ifAllowed(async (tx) => void (await tx.all(insertUnused, [key, deleteAfter])))
      if (!isAllowed) return undefined
      await this.#blobs.put(key, content)
    } catch (error) {
      this.#failed.set(content, key)
      throw error
    }
    return { content: new Uint8Array(), blob: key }
  }

  /** `undefined` when the blob was deleted. @param first from 0. */
  async readBlob(key: string, first: number, bytes: number): Promise<Uint8Array | undefined> {
    if (!this.#blobs) throw new Error('A content is a blob, but ARTIFACTS_URL is not set to where it is.')
    return bytes === 0 ? new Uint8Array() : this.#blobs.read(key, { first, last: first + bytes - 1 })
  }

  /**
   * Deletes blobs to which no row refers. Those that cannot be deleted do not keep others from it.
   *
   * @returns whether there may be more. @throws when no blob could be deleted.
   */
  async deleteUnused(): Promise<boolean> {
    const blobs = this.#blobs
    if (!blobs) return false
    const keys = (await this.#store.read.all(findUnused, [this.#now()])).map(({ key }) => key)
    if (keys.length === 0) return false
    const results = await Promise.allSettled(keys.map((key) => blobs.delete(key)))
    const [failure] = results.filter((result) => result.status === 'rejected')
    const deleted = keys.filter((_, index) => results[index]?.status === 'fulfilled')
    if (failure && deleted.length === 0) throw failure.reason
    const failed = keys.filter((key) => !deleted.includes(key))
    const later = this.#now() + postponedMilliseconds
    const { marks, values } = inList(deleted)
    const write = async (tx: Transaction) => {
      await tx.all(`DELETE FROM unused_blobs WHERE key IN (${marks})`, values)
      for (const key of failed) await tx.all(insertUnused, [key, later])
    }
    await this.#store.write(write, { concurrent: true, exclusive: 'maintenance' })
    return keys.length === deletedMax
  }
}

/** In a transaction: the blob was written for a row that is not stored. Maintenance deletes it. */
export async function discardBlob(tx: Transaction, { blob }: StoredContent): Promise<void> {
  if (blob !== null) await tx.all(insertUnused, [blob, 0])
}

/** No StoreUnavailable, which would fail other writes of the same transaction. */
class BlobDeleted extends Error {}

/** Turns the error of a blob that was deleted before its row was stored into StoreUnavailable: a later try uploads it again. */
export function ifUploaded<Result>(stored: Promise<Result>): Promise<Result> {
  return stored.catch((error: unknown) => {
    throw error instanceof BlobDeleted ? new StoreUnavailable(error.message, { cause: error }) : error
  })
}

/** In the transaction that has stored a row with the blob; see `ifUploaded`. */
export async function useBlob(tx: Transaction, { blob }: StoredContent): Promise<void> {
  if (blob === null) return
  const [found] = await tx.all(deleteUnused, [blob])
  if (!found) throw new BlobDeleted('The upload of a blob took so long that it was deleted.')
}
