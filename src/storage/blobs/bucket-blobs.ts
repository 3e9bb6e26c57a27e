/** Blobs in a bucket, by three requests of the S3 API that all compatible servers have: PutObject, GetObject, DeleteObject. */
import { setTimeout as delay } from 'node:timers/promises'
import { AwsClient } from 'aws4fetch'
import { describeCauses } from '../error-causes.ts'
import { StoreUnavailable } from '../store.ts'
import type { BlobLocation, BlobStore, BucketCredentials, Bytes } from './blob-store.ts'

/**
 * For each method: the time for one request, in which 20 MiB take 350 kB/s for PUT, and pauses in milliseconds before further
 * attempts, after failures of the network or the server. A caller waits for GET; maintenance repeats DELETE.
 */
const methods = {
  PUT: { milliseconds: 60_000, pauses: [100, 500, 2000] },
  GET: { milliseconds: 10_000, pauses: [100] },
  DELETE: { milliseconds: 10_000, pauses: [] },
} as const
/** Between two warnings about requests that the server refuses. */
const warningMilliseconds = 60_000

type Init = RequestInit & { method: keyof typeof methods }

/** The server refuses the request: its key, its bucket or its clock is wrong. It works again when an operator has repaired that. */
class Refused extends StoreUnavailable {}

export class BucketBlobs implements BlobStore {
  readonly place: string
  readonly #client: AwsClient
  readonly #warn: (error: Error) => void
  #warnedAt = Number.NEGATIVE_INFINITY

  /** @param warn called at most once a minute, when the server refuses requests. */
  constructor(
    { url, region }: BlobLocation & { kind: 'bucket' },
    credentials: BucketCredentials,
    warn: (error: Error) => void,
  ) {
    this.place = url
    this.#warn = warn
    this.#client = new AwsClient({ ...credentials, service: 's3', region, retries: 0 })
  }

  async put(key: string, content: Uint8Array): Promise<void> {
    const headers = { 'Content-Type': 'application/octet-stream' }
    await this.#send(key, { method: 'PUT', headers, body: content as Uint8Array<ArrayBuffer> })
  }

  async read(key: string, { first, last }: Bytes): Promise<Uint8Array | undefined> {
    const content = await this.#send(key, { method: 'GET', headers: { Range: `bytes=${first}-${last}` } })
    if (!content || content.length === last - first + 1) return content
    throw new StoreUnavailable(`${this.place} sent ${content.length} instead of ${last - first + 1} bytes.`)
  }

  async delete(key: string): Promise<void> {
    await this.#send(key, { method: 'DELETE' })
  }

  /** Repeats the request, which is safe: a blob never changes. Resolves with `undefined` for a missing blob. */
  async #send(key: string, init: Init): Promise<Uint8Array | undefined> {
    for (const pause of methods[init.method].pauses) {
      try {
        return await this.#sendOnce(key, init)
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || error instanceof Refused) throw error
        await delay(pause)
      }
    }
    return this.#sendOnce(key, init)
  }

  async #sendOnce(key: string, init: Init): Promise<Uint8Array | undefined> {
    try {
      const signal = AbortSignal.timeout(methods[init.method].milliseconds)
      const response = await this.#client.fetch(`${this.place}/${key}`, { ...init, signal })
      const body = await response.bytes()
      if (response.ok) return body
      const code = /<Code>([A-Za-z]{1,60})<\/Code>/.exec(Buffer.from(body).toString('latin1'))?.[1]
      // A missing bucket is also a 404.
      if (response.status === 404 && code === 'NoSuchKey') return undefined
      const message = `${init.method} in ${this.place} failed with ${response.status}${code ? ` (${code})` : ''}.`
      if (response.status >= 500 || response.status === 429) throw new StoreUnavailable(message)
      throw this.#refused(message)
    } catch (error) {
      const { name } = error as Error
      // Errors of fetch: of the network, and of the time limit.
      if (!(error instanceof TypeError) && name !== 'TimeoutError') throw error
      throw new StoreUnavailable(`${this.place} cannot be reached: ${describeCauses(error)}.`, { cause: error })
    }
  }

  #refused(message: string): Refused {
    const error = new Refused(message)
    const now = performance.now()
    if (now - this.#warnedAt < warningMilliseconds) return error
    this.#warnedAt = now
    this.#warn(error)
    return error
  }
}
