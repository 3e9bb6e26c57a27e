/** One key of an installation, and what is derived from it (RFC 5869): a key for each purpose, and its id. */
import { hkdfSync } from 'node:crypto'

export const keyBytes = 32
const idBytes = 4

export interface Key {
  /** 32 random bytes, used for nothing but derivation. */
  readonly bytes: Buffer
  /** Stands in what was sealed under the key, and tells nothing of it. */
  readonly id: Buffer
  readonly encryption: Buffer
  readonly signing: Buffer
}

export function deriveKey(bytes: Buffer): Key {
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', bytes, '', `execution-service/${purpose}`, length))
  return {
    bytes,
    id: derive('key-id', idBytes),
    encryption: derive('encryption', keyBytes),
    signing: derive('signing', keyBytes),
  }
}

/** The key that the text is in base64, or `undefined` where it is none. */
export function parseKey(text: string): Buffer | undefined {
  const key = Buffer.from(text, 'base64')
  // Decoding ends at the padding, and would ignore a second key behind it.
  const isWhole = text.trim().replace(/=$/, '').length === Math.ceil((keyBytes * 8) / 6)
  return isWhole && key.length === keyBytes ? key : undefined
}
export interface KeyRing {
  /** The current key first. Another process may have added one; that is noticed within `noticeMilliseconds`. */
  keys(): readonly Key[]
  /** The keys as they are at this moment. */
  reload(): readonly Key[]
  /** What whoever lacks a key is to do, for the end of a sentence. */
  readonly missingKeyAdvice: string
}

/** How long after a key was added a process may seal under the one before it. */
export const keyRefreshMilliseconds = 1000

/** Keys that stay as they are for as long as the process runs, the current one first. */
export class FixedKeys implements KeyRing {
  readonly #keys: readonly Key[]
  readonly missingKeyAdvice = 'set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS'

  constructor(keys: readonly Buffer[]) {
    this.#keys = keys.map(deriveKey)
  }

  keys(): readonly Key[] {
    return this.#keys
  }

  reload(): readonly Key[] {
    return this.#keys
  }
}
