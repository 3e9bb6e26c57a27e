/** Representations that many requests share: made once, compressed once, and bounded in bytes. */
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip, type ZlibOptions } from 'node:zlib'
import type { Response } from 'express'
import type { TenantRequest } from './tenant-limits.ts'

export const compress = promisify<string | Uint8Array, ZlibOptions, Buffer>(gzip)

/** Whether a response of this size is to be compressed. If so, sets its headers. */
export function compresses(response: Response, bytes: number): boolean {
  response.vary('Accept-Encoding')
  if (bytes < 1024 || response.req.acceptsEncodings('gzip', 'identity') !== 'gzip') return false
  response.set('Content-Encoding', 'gzip')
  return true
}

export interface Representation {
  /** In UTF-8. */
  bytes: Uint8Array
  /** An entity tag (RFC 9110, section 8.8.3) of the uncompressed bytes. */
  etag: string
  compress(): Promise<Uint8Array>
}

/** Sends it with the headers that are set. What the client has not read is counted as its account's memory. */
export async function sendRepresentation(
  response: Response,
  representation: Representation,
  tenant: TenantRequest | undefined,
): Promise<void> {
  const { bytes } = representation
  const content = compresses(response, bytes.length) ? await representation.compress() : bytes
  await tenant?.reserve(content.length)
  response.set('Content-Length', String(content.length)).end(content)
  tenant?.unlockProcessing()
}

/** The representations of one owner, the most recently used last. */
interface Kept {
  bytes: number
  byName: Map<string, Representation & { keptBytes: number }>
}

/** By owners, such as an account's workflows. Those of an owner that is no longer used are dropped after others. */
export class Representations<Owner extends object> {
  readonly #limits: { ownerBytesMax: number; bytesMax: number }
  readonly #byOwner = new WeakMap<Owner, Kept>()
  /** The most recently used last. */
  readonly #kept = new Set<Kept>()
  #bytes = 0

  /** The last one of an owner, and the last owner, are kept even beyond the limits. */
  constructor(limits = { ownerBytesMax: 32 * 1024 * 1024, bytesMax: 96 * 1024 * 1024 }) {
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  find(owner: Owner, name: string): Representation | undefined {
    const kept = this.#byOwner.get(owner)
    const found = kept?.byName.get(name)
    if (!kept || !found) return undefined
    kept.byName.delete(name)
    kept.byName.set(name, found)
    this.#touch(kept)
    return found
  }

  /** Makes what is not kept while no other large request of any tenant is processed. */
  async get(
    owner: Owner,
    name: string,
    tenant: TenantRequest | undefined,
    make: () => string | Promise<string>,
  ): Promise<Representation> {
    const found = this.find(owner, name)
    if (found) return found
    await tenant?.lockProcessing()
    try {
      return this.find(owner, name) ?? this.add(owner, name, await make())
    } finally {
      tenant?.unlockProcessing()
    }
  }

  add(owner: Owner, name: string, text: string): Representation {
    const kept = this.#byOwner.get(owner) ?? { bytes: 0, byName: new Map() }
    this.#byOwner.set(owner, kept)
    this.#drop(kept, name)
    const bytes = Buffer.from(text)
    let compressed: Promise<Uint8Array> | undefined
    const representation = {
      bytes,
      etag: `"${hash('sha256', bytes, 'hex').slice(0, 16)}"`,
      keptBytes: 0,
      compress: () => {
        compressed ??= compress(bytes, {}).then((content) => {
          if (kept.byName.get(name) === representation) this.#count(kept, representation, content.length)
          return content
        })
        return compressed
      },
    }
    kept.byName.set(name, representation)
    this.#count(kept, representation, bytes.length)
    return representation
  }

  #touch(kept: Kept): void {
    this.#kept.delete(kept)
    this.#kept.add(kept)
  }

  #count(kept: Kept, representation: { keptBytes: number }, bytes: number): void {
    representation.keptBytes += bytes
    kept.bytes += bytes
    this.#bytes += bytes
    this.#touch(kept)
    for (const name of kept.byName.keys()) {
      if (kept.bytes <= this.#limits.ownerBytesMax || kept.byName.size === 1) break
      this.#drop(kept, name)
    }
    for (const oldest of this.#kept) {
      if (this.#bytes <= this.#limits.bytesMax || oldest === kept) break
      for (const name of oldest.byName.keys()) this.#drop(oldest, name)
      this.#kept.delete(oldest)
    }
  }

  #drop(kept: Kept, name: string): void {
    const dropped = kept.byName.get(name)
    if (!dropped) return
    kept.byName.delete(name)
    kept.bytes -= dropped.keptBytes
    this.#bytes -= dropped.keptBytes
  }
}
