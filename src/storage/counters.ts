/** Counts that all processes of an installation share for a short while: quick to add to, and worth nothing afterwards. */

export interface Counters {
  /**
   * Adds to the count of `name` over all processes, and tells what it is now. A count is 0 at first, never less, and 0
   * again when its window has ended, which begins with the first addition.
   *
   * Waits for no disk: a power cut, or a crash of the store, may set counts back to 0.
   *
   * @throws {StoreUnavailable}
   */
  add(name: string, amount: number, windowMilliseconds: number): Promise<Count>
}

export interface Count {
  count: number
  /** Until the window ends, by a clock that all processes share: more than 0, and at most the window. */
  millisecondsLeft: number
}

/** Counts whose window has ended are removed this often, by each process that adds to any. */
export const removalMilliseconds = 60_000
