/** Makes one of many things that come quickly after each other. */

/**
 * Yields the last of what comes within `milliseconds` of the first, and `null` when there is `null` alone: silence.
 * Ends with its source.
 */
export async function* inBursts<Thing>(
  source: AsyncGenerator<Thing | null>,
  milliseconds: number,
): AsyncGenerator<Thing | null> {
  let next = source.next()
  try {
    for (;;) {
      const first = await next
      if (first.done) return
      let last = first.value
      next = source.next()
      const over = last === null ? undefined : later(milliseconds)
      const end = performance.now() + milliseconds
      // The clock too: no timer rings while things come one right after the other.
      while (over && performance.now() < end) {
        const more = await Promise.race([next, over.promise])
        if (!more || more.done) break
        last = more.value ?? last
        next = source.next()
      }
      over?.cancel()
      yield last
    }
  } finally {
    // Not awaited: a generator returns only when what it waits for has come. Nor is what it waits for wanted any more.
    next.catch(() => {})
    source.return(undefined).catch(() => {})
  }
}

function later(milliseconds: number): { promise: Promise<undefined>; cancel(): void } {
  let timer: NodeJS.Timeout | undefined
  const promise = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds)
  })
  return { promise, cancel: () => clearTimeout(timer) }
}
