/** Time limits and waits that an AbortSignal ends. Without AbortSignal.any, which Node 20.0 and Safari 17.3 lack. */

/** Timers of more milliseconds than a signed 32-bit integer holds would ring at once. */
const millisecondsMax = 2 ** 31 - 1

export interface TimeLimit {
  /** Aborted when the time is over, or when the caller's signal is. */
  signal: AbortSignal
  /** Whether it was the time. */
  readonly isOver: boolean
  /** Starts the time anew. */
  restart(): void
  /** Ends the time; the caller's signal still counts. */
  stop(): void
  /** Lets go of the caller's signal, too. */
  end(): void
  /** Aborts `signal`. */
  abort(): void
}

export function timeLimit(caller: AbortSignal | null | undefined, seconds: number | undefined): TimeLimit {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const follow = () => controller.abort(caller?.reason)
  const limit = {
    signal: controller.signal,
    isOver: false,
    restart() {
      clearTimeout(timer)
      if (seconds === undefined) return
      const ring = () => {
        limit.isOver = true
        controller.abort(new Error(`Nothing came within ${seconds} s`))
      }
      timer = setTimeout(ring, Math.min(seconds * 1000, millisecondsMax))
    },
    stop: () => clearTimeout(timer),
    end() {
      limit.stop()
      caller?.removeEventListener('abort', follow)
    },
    abort: () => controller.abort(),
  }
  if (caller?.aborted) follow()
  else caller?.addEventListener('abort', follow, { once: true })
  limit.restart()
  return limit
}

/** What `act` comes to, unless the signal is aborted before: for what may know nothing of signals. */
export function unlessAborted<Value>(act: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    act.then(resolve, reject)
  })
}

/** The same stream, with `onEnd` called when it has ended in whatever way. Nothing is read before it is asked for. */
export function noticingEnd(stream: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
      } catch (cause) {
        controller.error(cause)
      }
      onEnd()
    },
    cancel(reason) {
      onEnd()
      return reader.cancel(reason)
    },
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/** Resolves after so many seconds, or as soon as the signal is aborted. */
export function pause(seconds: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, Math.min(seconds * 1000, millisecondsMax))
    signal?.addEventListener('abort', done, { once: true })
  })
}
