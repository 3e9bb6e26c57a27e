/** The keys of an installation: the current one seals and signs, older ones open and verify. */
import { type Key, keyOf } from './key.ts'

export interface KeyRing {
  /** The current key first. Another process may have added one; that is noticed within `noticeMilliseconds`. */
  keys(): readonly Key[]
  /** The keys as they are at this moment. */
  latest(): readonly Key[]
  /** What whoever lacks a key is to do, for the end of a sentence. */
  readonly remedy: string
}

/** How long after a key was added a process may seal under the one before it. */
export const noticeMilliseconds = 1000

/** Keys that stay as they are for as long as the process runs, the current one first. */
export class FixedKeys implements KeyRing {
  readonly #keys: readonly Key[]
  readonly remedy = 'set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS'

  constructor(keys: readonly Buffer[]) {
    this.#keys = keys.map(keyOf)
  }

  keys(): readonly Key[] {
    return this.#keys
  }

  latest(): readonly Key[] {
    return this.#keys
  }
}
