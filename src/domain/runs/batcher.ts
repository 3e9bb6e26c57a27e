/** Writes items that arrive together in one transaction. While one batch is written, the next one gathers. */
import { context, ROOT_CONTEXT } from '@opentelemetry/api'
import { type Store, StoreUnavailable, type Transaction, type WriteOptions } from '../../storage/store.ts'

/** Bounds how long the first item of a batch waits for the last. */
const batchMax = 256

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

type Write<Item, Result> = (tx: Transaction, items: Item[]) => Promise<Result[]>

export class Batcher<Item, Result> {
  readonly #store: Store
  readonly #write: Write<Item, Result>
  readonly #options: WriteOptions
  #waiting: Waiting<Item, Result>[] = []
  #draining: Promise<void> | undefined

  /** @param write returns a result for each item, in their order. */
  constructor(store: Store, write: Write<Item, Result>, options: WriteOptions = {}) {
    this.#store = store
    this.#write = write
    this.#options = options
  }

  /** Once this resolves, what was written survives a power cut. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      // A batch serves several requests, so it belongs to no request's trace.
      this.#draining ??= context.with(ROOT_CONTEXT, () => this.#drain())
    })
  }

  async #drain(): Promise<void> {
    // Lets requests that have arrived on other connections be parsed and authenticated.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, batchMax), false)
    this.#draining = undefined
  }

  /** @param isClosed whether later items may not join the batch. */
  async #writeBatch(batch: Waiting<Item, Result>[], isClosed: boolean): Promise<void> {
    try {
      const options = { ...this.#options, concurrent: true, batchSize: batch.length }
      const results = await this.#store.write((tx) => {
        // The write has waited for its transaction: items that arrived meanwhile join it.
        if (!isClosed) batch.push(...this.#waiting.splice(0, batchMax - batch.length))
        options.batchSize = batch.length
        const items = batch.map(({ item }) => item)
        return this.#write(tx, items)
      }, options)
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      // When the connection is lost during the commit, the items may be stored. Do not write them a second time.
      if (batch.length === 1 || error instanceof StoreUnavailable) {
        for (const { reject } of batch) reject(error)
        return
      }
      // A single item may have failed the transaction: write each one separately.
      for (const each of batch) await this.#writeBatch([each], true)
    }
  }
}
