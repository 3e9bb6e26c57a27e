/** JSON text that becomes part of a response as it is: parsing and formatting 1 MiB blocks the process for 20 ms. */

let collected: string[] = []
/** Random, so that no other text of a response is mistaken for it. */
const placeholder = crypto.randomUUID()

export class JsonText<Value = unknown> {
  readonly #text: string

  /** @param text valid JSON that matches the document where it is sent; responses are not validated within it. */
  constructor(text: string) {
    this.#text = text
  }

  get value(): Value {
    return JSON.parse(this.#text)
  }

  /** Called by `JSON.stringify`. Use `stringify` instead, which inserts the text. */
  toJSON(): string {
    collected.push(this.#text)
    return placeholder
  }
}

/** A whole response as JSON in UTF-8, which many requests share. It must match the document; it is not validated. */
export class EncodedJson {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** Like `JSON.stringify`, with the text of each `JsonText` in its place. */
export function stringify(value: unknown): string {
  // Another caller of `JSON.stringify`, or one that threw, may have left texts of another response.
  collected = []
  const json = JSON.stringify(value)
  if (collected.length === 0) return json
  const texts = collected
  collected = []
  return json
    .split(`"${placeholder}"`)
    .map((piece, index) => piece + (texts[index] ?? ''))
    .join('')
}
