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
    return `${after}.${this.#sign(list, after).toString('base64url')}`
  }

  /** What the page starts after; `undefined` for a cursor that was not written for this list. */
  read(list: string, cursor: string): string | undefined {
    const dot = cursor.lastIndexOf('.')
    const after = cursor.slice(0, dot)
    const signature = Buffer.from(cursor.slice(dot + 1), 'base64url')
    return dot > 0 && signature.equals(this.#sign(list, after)) ? after : undefined
  }

  #sign(list: string, after: string): Buffer {
    return this.#encryption.sign('cursor', `${list}\0${after}`).subarray(0, signatureBytes)
  }
}
