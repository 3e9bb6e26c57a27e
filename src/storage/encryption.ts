/** Encrypts and signs with the installation's keys: AES-256-GCM and HMAC-SHA-256. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/**
 * Layout of an encrypted value: header (format, 1 byte, and key id, 4 bytes), nonce, ciphertext, tag. The header precedes
 * the associated data.
 */
const format = 2
const idBytes = 4
const headerBytes = 1 + idBytes
const nonceBytes = 12
const tagBytes = 16

/** The value was altered, truncated, copied from another row, or encrypted with a key that is missing. */
export class DecryptionError extends Error {}

/** Encrypts single values, each bound to where it stands. */
export type ValueEncryption = Pick<Encryption, 'encrypt' | 'decrypt'>

export class Encryption {
  readonly #ring: KeyRing

  constructor(ring: KeyRing) {
    this.#ring = ring
  }

  /**
   * Encrypts with the current key. `aad` (associated data) binds the value to its row: a copy in another row is
   * rejected.
   */
  encrypt(text: string, aad: string): Uint8Array {
    const key = currentKey(this.#ring.keys())
    const header = headerFor(key)
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key.encryption, nonce).setAAD(bindHeader(header, aad))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([header, nonce, ciphertext, cipher.getAuthTag()])
  }

  /** @throws {DecryptionError} */
  decrypt(bytes: Uint8Array, aad: string): string {
    const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (value[0] !== format || value.length < headerBytes + nonceBytes + tagBytes) {
      throw new DecryptionError('An encrypted value in the store is truncated or has an unknown format.')
    }
    const header = value.subarray(0, headerBytes)
    const id = header.subarray(1)
    const candidates = (keys: readonly Key[]) => keys.filter((key) => key.id.equals(id))
    const attempt = (keys: readonly Key[]) =>
      decryptWithAny(candidates(keys), value.subarray(headerBytes), bindHeader(header, aad))
    const text = attempt(this.#ring.keys()) ?? attempt(this.#ring.reload())
    if (text !== undefined) return text
    if (candidates(this.#ring.keys()).length > 0) {
      throw new DecryptionError('An encrypted value in the store was changed, or belongs to another row or key.')
    }
    throw new DecryptionError(
      `A value in the store is encrypted with a key that is missing (${id.toString('hex')}): ${this.#ring.missingKeyAdvice}.`,
    )
  }

  /** The prefix of every value that is encrypted with the current key. */
  currentHeader(): Uint8Array {
    return headerFor(currentKey(this.#ring.reload()))
  }

  /** Returns a keyed hash of `text`. `purpose` separates domains of use. */
  sign(purpose: string, text: string): Buffer {
    return hmac(currentKey(this.#ring.keys()), purpose, text)
  }

  /** Returns the signature with each key of the ring, the current one first. All of them are valid. */
  signatures(purpose: string, text: string): Buffer[] {
    return this.#ring.reload().map((key) => hmac(key, purpose, text))
  }
}

function currentKey([key]: readonly Key[]): Key {
  if (!key) throw new Error('A key ring has at least one key.')
  return key
}

function headerFor({ id }: Key): Buffer {
  return Buffer.concat([Buffer.of(format), id])
}

/** Unambiguous, since the header has a fixed length. */
function bindHeader(header: Buffer, aad: string): Buffer {
  return Buffer.concat([header, Buffer.from(aad)])
}

function decryptWithAny(keys: readonly Key[], body: Buffer, aad: Buffer): string | undefined {
  const nonce = body.subarray(0, nonceBytes)
  for (const { encryption } of keys) {
    const decipher = createDecipheriv('aes-256-gcm', encryption, nonce, { authTagLength: tagBytes })
    decipher.setAAD(aad).setAuthTag(body.subarray(-tagBytes))
    const text = decipher.update(body.subarray(nonceBytes, -tagBytes))
    try {
      return Buffer.concat([text, decipher.final()]).toString('utf8')
    } catch {
      // The tag does not match: the plaintext must not be used.
    }
  }
  return undefined
}

function hmac(key: Key, purpose: string, text: string): Buffer {
  return createHmac('sha256', key.signing).update(`${purpose}\0${text}`).digest()
}

// The installation's encryption keys: derivation, encoding, and the key ring.

export const keyBytes = 32

export interface Key {
  /** 32 random bytes, used for key derivation only. */
  readonly bytes: Buffer
  /** Identifies the key in encrypted values, without revealing it. */
  readonly id: Buffer
  // Bytes would be made a key for each value, which takes four times as long as encrypting a short one.
  readonly encryption: KeyObject
  readonly signing: KeyObject
}

/** Derives a key for each purpose, and the key's id, with HKDF (RFC 5869). */
export function deriveKey(bytes: Buffer): Key {
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', bytes, '', `execution-service/${purpose}`, length))
  return {
    bytes,
    id: derive('key-id', idBytes),
    encryption: createSecretKey(derive('encryption', keyBytes)),
    signing: createSecretKey(derive('signing', keyBytes)),
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
