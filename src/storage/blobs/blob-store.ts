/** Where contents are that are too large for rows: a directory, or a bucket of an S3-compatible server. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createDirectory, syncDirectory } from '../directories.ts'
import { StoreUnavailable } from '../store.ts'

/** The first and the last byte, from 0. */
export interface Bytes {
  first: number
  last: number
}

/** Keys are UUIDs; a blob never changes. Calls throw StoreUnavailable when a later call may succeed. */
export interface BlobStore {
  /** The directory or the URL of the bucket, for messages. */
  readonly place: string
  /** Resolves when the blob is durable. */
  put(key: string, content: Uint8Array): Promise<void>
  /** `undefined` when there is no such blob. */
  read(key: string, bytes: Bytes): Promise<Uint8Array | undefined>
  /** Also succeeds when there is no such blob. */
  delete(key: string): Promise<void>
}

export type BlobLocation =
  | { kind: 'directory'; path: string }
  | {
      kind: 'bucket'
      /** Of the bucket and the prefix of its keys, without a slash at the end. */
      url: string
      region: string
    }

export interface BucketCredentials {
  accessKeyId: string
  secretAccessKey: string
}

/**
 * @param credentials of a bucket.
 * @param warn called when the server of a bucket refuses requests, which callers repeat.
 */
export async function openBlobStore(
  location: BlobLocation,
  credentials: BucketCredentials | undefined,
  warn: (error: Error) => void = () => {},
): Promise<BlobStore> {
  if (location.kind === 'directory') return new DirectoryBlobs(location.path)
  if (!credentials) throw new Error('A bucket needs credentials.')
  // Loaded on demand, which saves memory and start time with a directory.
  const { BucketBlobs } = await import('./bucket-blobs.ts')
  return new BucketBlobs(location, credentials, warn)
}

/** A file for each blob, private to this user, in 256 directories. */
class DirectoryBlobs implements BlobStore {
  readonly place: string

  constructor(path: string) {
    this.place = path
  }

  async put(key: string, content: Uint8Array): Promise<void> {
    const path = this.#pathOf(key)
    const draft = draftOf(path)
    try {
      createDirectory(dirname(path))
      const file = await open(draft, 'w', 0o600)
      try {
        await file.writeFile(content)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(draft, path)
      syncDirectory(path)
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {})
      throw unavailable(this.place, error)
    }
  }

  async read(key: string, { first, last }: Bytes): Promise<Uint8Array | undefined> {
    try {
      const file = await open(this.#pathOf(key), 'r')
      try {
        const content = Buffer.alloc(last - first + 1)
        let length = 0
        while (length < content.length) {
          const { bytesRead } = await file.read(content, length, content.length - length, first + length)
          if (bytesRead === 0) throw new Error(`the file of ${key} is truncated`)
          length += bytesRead
        }
        return content
      } finally {
        await file.close()
      }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw unavailable(this.place, error)
    }
  }

  async delete(key: string): Promise<void> {
    try {
      const path = this.#pathOf(key)
      await rm(path, { force: true })
      // A process that was killed during `put` leaves it.
      await rm(draftOf(path), { force: true })
    } catch (error) {
      throw unavailable(this.place, error)
    }
  }

  #pathOf(key: string): string {
    return blobPath(this.place, key)
  }
}

/** Of a blob in a directory: by the last digits, which are random, as the first ones are the time. */
export function blobPath(directory: string, key: string): string {
  if (!/^[0-9a-z-]{36}$/.test(key)) throw new Error(`${key} is not the key of a blob.`)
  return join(directory, key.slice(-2), key)
}

/** Where a blob is while it is written. */
export const draftOf = (path: string) => `${path}.partial`

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

function unavailable(place: string, error: unknown): StoreUnavailable {
  return new StoreUnavailable(`The blobs in ${place} cannot be used: ${(error as Error).message}.`, { cause: error })
}
