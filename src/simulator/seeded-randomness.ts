/**
 * Randomness of a world: the same bytes for the same seed. AES in counter mode makes them, so that a snapshot needs only
 * the number of bytes that were used.
 */
import crypto, { createCipheriv, hash } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const blockBytes = 16
const chunkBytes = 4096

export class SeededRandomness {
  #key: Uint8Array
  #chunk = Buffer.alloc(0)
  /** The position after the chunk. */
  #end = 0
  #used = 0

  constructor(seed: string) {
    this.#key = keyOf(seed)
  }

  /** Goes on as another one with this seed from a position that it has returned. */
  seek(seed: string, position: number): void {
    this.#key = keyOf(seed)
    this.#end = Math.ceil(position / blockBytes) * blockBytes
    this.#chunk = Buffer.alloc(0)
    this.#used = 0
  }

  /** What was used, with the rest of a block: both this one and another that goes on from there continue at the same byte. */
  skipToPosition(): number {
    const used = this.#end - (this.#chunk.length - this.#used)
    const position = Math.ceil(used / blockBytes) * blockBytes
    this.#end = position
    this.#chunk = Buffer.alloc(0)
    this.#used = 0
    return position
  }

  bytes(length: number): Buffer {
    const parts: Buffer[] = []
    for (let missing = length; missing > 0; ) {
      if (this.#used === this.#chunk.length) this.#readChunk()
      const part = this.#chunk.subarray(this.#used, this.#used + missing)
      this.#used += part.length
      missing -= part.length
      parts.push(part)
    }
    return Buffer.concat(parts)
  }

  /** At least 0, and less than `range`, which is at most 2^48. */
  integer(range: number): number {
    const limit = 2 ** 48 - (2 ** 48 % range)
    for (;;) {
      const value = this.bytes(6).readUIntBE(0, 6)
      if (value < limit) return value % range
    }
  }

  uuid(): string {
    const bytes = this.bytes(16)
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }

  #readChunk(): void {
    const counter = Buffer.alloc(blockBytes)
    counter.writeBigUInt64BE(BigInt(this.#end / blockBytes), 8)
    this.#chunk = createCipheriv('aes-256-ctr', this.#key, counter).update(Buffer.alloc(chunkBytes))
    this.#end += chunkBytes
    this.#used = 0
  }

  /** Replaces the randomness of this thread, also for modules that have imported functions of `node:crypto`. */
  install(): void {
    const fill = <View extends NodeJS.ArrayBufferView>(view: View): View => {
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
      bytes.set(this.bytes(bytes.length))
      return view
    }
    const later = <Value>(value: Value, callback?: (error: null, value: Value) => void) => {
      if (!callback) return value
      process.nextTick(callback, null, value)
      return undefined
    }
    const randomInt = (...given: unknown[]) => {
      const numbers = given.filter((each) => typeof each === 'number')
      const [min, max] = numbers.length > 1 ? numbers : [0, numbers[0]]
      return later((min as number) + this.integer((max as number) - (min as number)), given.find(isFunction))
    }
    const randomFillSync = (view: NodeJS.ArrayBufferView, offset = 0, size = view.byteLength - offset) => {
      fill(new Uint8Array(view.buffer, view.byteOffset + offset, size))
      return view
    }
    const replaced = {
      randomBytes: (length: number, callback?: Callback) => later(this.bytes(length), callback),
      randomFillSync,
      randomFill: (view: NodeJS.ArrayBufferView, ...rest: unknown[]) =>
        later(randomFillSync(view, ...(rest.slice(0, -1) as number[])), rest.at(-1) as Callback),
      randomUUID: () => this.uuid(),
      randomInt,
    }
    Object.assign(crypto, replaced)
    Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: fill })
    Object.defineProperty(globalThis.crypto, 'randomUUID', { value: replaced.randomUUID })
    Math.random = () => this.integer(2 ** 48) / 2 ** 48
    syncBuiltinESMExports()
  }
}

// biome-ignore lint/suspicious/noExplicitAny: of any of the replaced functions.
type Callback = (error: null, value: any) => void

function isFunction(value: unknown): value is Callback {
  return typeof value === 'function'
}

function keyOf(seed: string): Uint8Array {
  return hash('sha256', `simulator/${seed}`, 'buffer')
}
