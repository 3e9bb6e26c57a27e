/** What is stored encrypted, and what is signed: AES-256-GCM and HMAC-SHA-256 under the installation's key. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const formatVersion = 1
const nonceBytes = 12
const tagBytes = 16
export const keyBytes = 32

export class Encryption {
  readonly #encryptionKey: Buffer
  readonly #signingKey: Buffer

  /** @param key 32 random bytes; keys for each purpose are derived from it (RFC 5869). */
  constructor(key: Buffer) {
    this.#encryptionKey = derive(key, 'encryption')
    this.#signingKey = derive(key, 'signing')
  }

  /** Encrypts `text` so that it opens only where `owner` is the same: a copy to another row is refused. */
  seal(text: string, owner: string): Uint8Array {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#encryptionKey, nonce).setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(formatVersion), nonce, sealed, cipher.getAuthTag()])
  }

  /** @throws when the bytes were changed, cut short, sealed for another owner, or under another key. */
  open(bytes: Uint8Array, owner: string): string {
    const sealed = Buffer.from(bytes)
    if (sealed[0] !== formatVersion || sealed.length < 1 + nonceBytes + tagBytes) {
      throw new Error('An encrypted value in the store is not whole.')
    }
    const nonce = sealed.subarray(1, 1 + nonceBytes)
    const decipher = createDecipheriv('aes-256-gcm', this.#encryptionKey, nonce, { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(-tagBytes))
    return Buffer.concat([decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]).toString(
      'utf8',
    )
  }

  /** A keyed hash of `text`, which tells nothing of it to whoever lacks the key. `purpose` keeps uses apart. */
  sign(purpose: string, text: string): Buffer {
    return createHmac('sha256', this.#signingKey).update(`${purpose}\0${text}`).digest()
  }
}

function derive(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `execution-service/${purpose}`, keyBytes))
}

/** The installation's key: `configured`, or the one in the data directory, made at the first start for its owner alone. */
export function installationKey(dataDirectory: string, configured: Buffer | undefined): Buffer {
  if (configured) return configured
  const path = join(dataDirectory, 'encryption.key')
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
  if (!existsSync(path)) makeKey(path)
  const key = Buffer.from(readFileSync(path, 'utf8'), 'base64')
  if (key.length !== keyBytes)
    throw new Error(`${path} does not hold a key of ${keyBytes} bytes: restore it from a backup.`)
  return key
}

/** The file appears with its whole content, or not at all: another process may be about to read it. */
function makeKey(path: string): void {
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(draft, `${randomBytes(keyBytes).toString('base64')}\n`, { flag: 'wx', mode: 0o600, flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    // Another process was first; its key is then the one that all read.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
