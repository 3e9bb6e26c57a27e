/** Cursors of pages: opaque to callers, and refused when they were changed or belong to another list. */
import type { Encryption } from './encryption.ts'

const signatureBytes = 16

export class Cursors {
  readonly #encryption: Encryption

  constructor(encryption: Encryption) {
    this.#encryption = encryption
  }

  /** @param list names the list with its account and filters. */
  write(list: string, after: string): string {
    return written(after, this.#encryption.sign('cursor', signed(list, after)))
  }

  /** What the page starts after; `undefined` for a cursor that was not written for this list. */
  read(list: string, cursor: string): string | undefined {
    const dot = cursor.lastIndexOf('.')
    if (dot <= 0) return undefined
    const after = cursor.slice(0, dot)
    // The whole text is compared: decoding would ignore characters that do not belong into base64.
    const fits = this.#encryption
      .signatures('cursor', signed(list, after))
      .some((signature) => cursor === written(after, signature))
    return fits ? after : undefined
  }
}

function signed(list: string, after: string): string {
  return `${list}\0${after}`
}

function written(after: string, signature: Buffer): string {
  return `${after}.${signature.subarray(0, signatureBytes).toString('base64url')}`
}
