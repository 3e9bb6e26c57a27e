/** What is stored encrypted, and what is signed: AES-256-GCM and HMAC-SHA-256 under the installation's keys. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { Key, KeyRing } from './encryption-keys.ts'

/**
 * What was sealed: the format's number; from format 2 on, the id of the key; then a random nonce, the encrypted text and
 * the tag. Format 2 authenticates what stands before the nonce together with the owner, format 1 the owner alone.
 */
const format = 2
const idBytesOf: Readonly<Record<number, number>> = { 1: 0, [format]: 4 }
const nonceBytes = 12
const tagBytes = 16

/** A sealed value that is not opened: changed, cut short, of another row, or under a key that is missing. */
export class DecryptionError extends Error {}

export class Encryption {
  readonly #ring: KeyRing

  constructor(ring: KeyRing) {
    this.#ring = ring
  }

  /** Encrypts `text` so that it opens only where `owner` is the same: a copy to another row is refused. */
  encrypt(text: string, owner: string): Uint8Array {
    const key = current(this.#ring.keys())
    const header = headerOf(key)
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key.encryption, nonce).setAAD(authenticated(header, owner))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([header, nonce, sealed, cipher.getAuthTag()])
  }

  /** @throws {DecryptionError} when the bytes were changed, cut short, sealed for another owner, or under a missing key. */
  decrypt(bytes: Uint8Array, owner: string): string {
    const sealed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const idBytes = idBytesOf[sealed[0] ?? 0]
    if (idBytes === undefined || sealed.length < 1 + idBytes + nonceBytes + tagBytes) {
      throw new DecryptionError('An encrypted value in the store is not whole.')
    }
    const header = sealed.subarray(0, 1 + idBytes)
    const aad = idBytes === 0 ? Buffer.from(owner) : authenticated(header, owner)
    const fitting = (keys: readonly Key[]) => keys.filter(({ id }) => idBytes === 0 || id.equals(header.subarray(1)))
    const openedBy = (keys: readonly Key[]) => openedByAny(fitting(keys), sealed.subarray(header.length), aad)
    const text = openedBy(this.#ring.keys()) ?? openedBy(this.#ring.reload())
    if (text !== undefined) return text
    if (fitting(this.#ring.keys()).length > 0) {
      throw new DecryptionError('An encrypted value in the store was changed, or belongs to another row or key.')
    }
    const id = header.subarray(1).toString('hex')
    throw new DecryptionError(
      `A value in the store is encrypted under a key that is missing (${id}): ${this.#ring.missingKeyAdvice}.`,
    )
  }

  /** What everything begins with that is sealed under the current key. */
  currentHeader(): Uint8Array {
    return headerOf(current(this.#ring.reload()))
  }

  /** A keyed hash of `text`, which tells nothing of it to whoever lacks the key. `purpose` keeps uses apart. */
  sign(purpose: string, text: string): Buffer {
    return signature(current(this.#ring.keys()), purpose, text)
  }

  /** What `sign` gives and has given under each key, the current one first: the earlier ones are as good. */
  signatures(purpose: string, text: string): Buffer[] {
    return this.#ring.reload().map((key) => signature(key, purpose, text))
  }
}

function current([key]: readonly Key[]): Key {
  if (!key) throw new Error('A ring of keys has at least one.')
  return key
}

function headerOf({ id }: Key): Buffer {
  return Buffer.concat([Buffer.of(format), id])
}

/** The header has one length in each format, so that none of it can be taken for the owner. */
function authenticated(header: Buffer, owner: string): Buffer {
  return Buffer.concat([header, Buffer.from(owner)])
}

function openedByAny(keys: readonly Key[], sealed: Buffer, aad: Buffer): string | undefined {
  const nonce = sealed.subarray(0, nonceBytes)
  for (const { encryption } of keys) {
    const decipher = createDecipheriv('aes-256-gcm', encryption, nonce, { authTagLength: tagBytes })
    decipher.setAAD(aad).setAuthTag(sealed.subarray(-tagBytes))
    const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
    try {
      return Buffer.concat([text, decipher.final()]).toString('utf8')
    } catch {
      // The tag does not fit: nothing of the text may be used.
    }
  }
  return undefined
}

function signature(key: Key, purpose: string, text: string): Buffer {
  return createHmac('sha256', key.signing).update(`${purpose}\0${text}`).digest()
}
