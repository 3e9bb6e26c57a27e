/** The installation's encryption keys: derivation, encoding, and the key ring. */
import { hkdfSync } from 'node:crypto'

export const keyBytes = 32
const idBytes = 4

export interface Key {
  /** 32 random bytes, used for key derivation only. */
  readonly bytes: Buffer
  /** Identifies the key in encrypted values, without revealing it. */
  readonly id: Buffer
  readonly encryption: Buffer
  readonly signing: Buffer
}

/** Derives a key for each purpose, and the key's id, with HKDF (RFC 5869). */
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

/** Decodes a key from base64; `undefined` when the text is not one whole key. */
export function parseKey(text: string): Buffer | undefined {
  const key = Buffer.from(text, 'base64')
  // Buffer.from stops at the padding and would ignore a second key after it.
  const isWhole = text.trim().replace(/=$/, '').length === Math.ceil((keyBytes * 8) / 6)
  return isWhole && key.length === keyBytes ? key : undefined
}

/** Keys, the current one first. The current key encrypts and signs; the older ones decrypt and verify. */
export interface KeyRing {
  /** Returns the keys. Up to `keyRefreshMilliseconds` old. */
  keys(): readonly Key[]
  /** Returns the latest keys. */
  reload(): readonly Key[]
  /** What an operator must do about a missing key: the end of a sentence. */
  readonly missingKeyAdvice: string
}

/** For this long after a key was added, a process may still encrypt with the previous one. */
export const keyRefreshMilliseconds = 1000

/** Keys from the environment, which do not change while the process runs. */
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
