/** Writes items that arrive together at once. While one batch is written, the next one gathers. */
import { StoreUnavailable } from '../../storage/store.ts'

/** Bounds how long the first item of a batch waits for the last. */
const batchMax = 256

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export class Batcher<Item, Result> {
  readonly #write: (items: Item[]) => Promise<Result[]>
  #waiting: Waiting<Item, Result>[] = []
  #draining: Promise<void> | undefined

  /** @param write returns a result for each item, in their order. */
  constructor(write: (items: Item[]) => Promise<Result[]>) {
    this.#write = write
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#draining ??= this.#drain()
    })
  }

  async #drain(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, batchMax))
    this.#draining = undefined
  }

  async #writeBatch(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#write(batch.map(({ item }) => item))
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      if (batch.length === 1 || error instanceof StoreUnavailable) {
        for (const { reject } of batch) reject(error)
        return
      }
      // A single item may have failed the transaction: write each one separately.
      for (const each of batch) await this.#writeBatch([each])
    }
  }
}
