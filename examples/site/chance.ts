/** Chance that a seed decides: the same requests get the same pages each time the site is started. */
import { createHash } from 'node:crypto'

export class Chance {
  readonly #seed: string
  readonly #draws = new Map<string, number>()

  constructor(seed: string) {
    this.#seed = seed
  }

  /** @param rate between 0 and 1. @param of what may happen, and to which customer: each has its own draws. */
  happens(rate: number, ...of: string[]): boolean {
    if (rate <= 0) return false
    const name = JSON.stringify([this.#seed, ...of])
    const draw = (this.#draws.get(name) ?? 0) + 1
    this.#draws.set(name, draw)
    return createHash('sha256').update(`${name} ${draw}`).digest().readUInt32BE() / 2 ** 32 < rate
  }
}
