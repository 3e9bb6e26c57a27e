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
    const signature = this.#encryption.sign('cursor', `${list}\0${after}`).subarray(0, signatureBytes)
    return `${after}.${signature.toString('base64url')}`
  }

  /** What the page starts after; `undefined` for a cursor that was not written for this list. */
  read(list: string, cursor: string): string | undefined {
    const dot = cursor.lastIndexOf('.')
    const after = cursor.slice(0, dot)
    // The whole text is compared: decoding would ignore characters that do not belong into base64.
    return dot > 0 && cursor === this.write(list, after) ? after : undefined
  }
}
