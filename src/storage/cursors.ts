/** Pagination cursors: opaque, signed, and valid only for the list that issued them. */
import type { Encryption } from './encryption.ts'

const signatureBytes = 16

export class Cursors {
  readonly #encryption: Encryption

  constructor(encryption: Encryption) {
    this.#encryption = encryption
  }

  /** @param list identifies the list, including its account and filters. */
  write(list: string, after: string): string {
    return format(after, this.#encryption.sign('cursor', `${list}\0${after}`))
  }

  /** Returns the position of a cursor; `undefined` when it was altered or issued for another list. */
  read(list: string, cursor: string): string | undefined {
    const dot = cursor.lastIndexOf('.')
    if (dot <= 0) return undefined
    const after = cursor.slice(0, dot)
    // Compares the text, since decoding base64 ignores invalid characters.
    const isValid = this.#encryption
      .signatures('cursor', `${list}\0${after}`)
      .some((signature) => cursor === format(after, signature))
    return isValid ? after : undefined
  }
}

function format(after: string, signature: Buffer): string {
  return `${after}.${signature.subarray(0, signatureBytes).toString('base64url')}`
}
