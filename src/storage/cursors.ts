/** Pages of lists, and their cursors: opaque, signed, and valid only for the list that issued them. */
import type { Encryption } from './encryption.ts'

export interface PageRequest {
  limit: number
  cursor?: string | undefined
}

interface PageOptions<Row> {
  /** Returns the leading rows that the page has; by default all. */
  bound?(rows: Row[]): Row[]
  /** The position of a row in the list; by default its id. */
  positionOf?(row: Row): string
}

const signatureBytes = 16

export class Cursors {
  readonly #encryption: Encryption

  constructor(encryption: Encryption) {
    this.#encryption = encryption
  }

  /**
   * A page of a list; `undefined` for a cursor of another list.
   *
   * @param list identifies the list, including its account and filters.
   * @param read returns at most `limit` rows after a position; `undefined` for the beginning of the list.
   */
  async page<Row extends { id: string }>(
    list: readonly unknown[],
    { limit, cursor }: PageRequest,
    read: (after: string | undefined, limit: number) => Promise<Row[]>,
    { bound = (rows) => rows, positionOf = ({ id }) => id }: PageOptions<Row> = {},
  ): Promise<{ rows: Row[]; nextCursor: string | null } | undefined> {
    const name = JSON.stringify(list)
    const after = cursor === undefined ? undefined : this.read(name, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    const found = await read(after, limit + 1)
    const rows = bound(found.slice(0, limit))
    const last = found.length > rows.length ? rows.at(-1) : undefined
    return { rows, nextCursor: last ? this.write(name, positionOf(last)) : null }
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
