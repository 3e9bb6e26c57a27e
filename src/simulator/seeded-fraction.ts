/** Randomness of the simulator: the same seed and names give the same number. */
import { createHash } from 'node:crypto'

/** @returns a number from 0 to less than 1. */
export function seededFraction(seed: string | number, ...names: readonly string[]): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([String(seed), ...names]))
    .digest()
  return digest.readUInt32BE(0) / 2 ** 32
}
