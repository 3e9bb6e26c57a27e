/** Time limits and waits that an AbortSignal ends. Avoids AbortSignal.any, which Node 20.0 and Safari 17.3 lack. */
import type { RetryRule } from './operation.ts'
import type { Limits } from './options.ts'
import { type Problem, problemTypes } from './problem.ts'

/** setTimeout fires immediately for more than a signed 32-bit integer. */
const millisecondsMax = 2 ** 31 - 1

export interface TimeLimit {
  /** Aborted when the time is up, or when the caller's signal is. */
  signal: AbortSignal
  readonly isOver: boolean
  /** Starts the time from zero. */
  restart(): void
  /** Stops the time; the caller's signal still applies. */
  stop(): void
  /** Stops the time and removes the listener from the caller's signal. */
  end(): void
  abort(): void
}

export function timeLimit(caller: AbortSignal | null | undefined, seconds: number | undefined): TimeLimit {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const onAbort = () => controller.abort(caller?.reason)
  const limit = {
    signal: controller.signal,
    isOver: false,
    restart() {
      clearTimeout(timer)
      if (seconds === undefined) return
      const expire = () => {
        limit.isOver = true
        controller.abort(new Error(`No response within ${seconds} s`))
      }
      timer = setTimeout(expire, Math.min(seconds * 1000, millisecondsMax))
    },
    stop: () => clearTimeout(timer),
    end() {
      limit.stop()
      caller?.removeEventListener('abort', onAbort)
    },
    abort: () => controller.abort(),
  }
  if (caller?.aborted) onAbort()
  else caller?.addEventListener('abort', onAbort, { once: true })
  limit.restart()
  return limit
}

/** Rejects when the signal is aborted, even if the promise's source ignores signals. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    promise.then(resolve, reject)
  })
}

/**
 * The same stream, calling `onEnd` when it ends, fails or is cancelled. Reads nothing in advance. Observes the signal
 * itself: Node's fetch can lose an abort after the response headers, when its Request has been garbage-collected.
 */
export function withEndCallback(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  const source: UnderlyingDefaultSource<Uint8Array> = {
    start(controller) {
      const onAbort = () => {
        controller.error(signal.reason)
        reader.cancel(signal.reason).catch(() => {})
        onEnd()
      }
      signal.addEventListener('abort', onAbort, { once: true })
    },
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

/** Resolves after the given time, or as soon as the signal is aborted. */
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

// Which failures are transient, which calls may be retried, and how long to wait.

/** Not 500: a defect of the service would fail the same way again. */
const transientStatuses = [408, 429, 502, 503, 504]

export function isTransient({ status, type }: Problem): boolean {
  return transientStatuses.includes(status) || type === problemTypes.networkFailure || type === problemTypes.timeout
}

/** Whether the call can be sent again without executing it twice. */
export function mayRetry(rule: RetryRule, problem: Problem): boolean {
  if (rule !== 'ifRefused') return isTransient(problem)
  // A 503 may follow a commit whose fsync failed. A gateway's 429 says nothing about earlier tries.
  return problem.status === 429 && problem.type !== 'about:blank'
}

/** Wait before the next try, after `failures` in a row; `undefined` if `Retry-After` exceeds the limit. */
export function retryDelay(
  failures: number,
  { retryAfterSeconds }: Problem,
  { retryWaitSeconds, retryWaitSecondsMax }: Limits,
): number | undefined {
  // Jitter keeps clients that failed at the same moment from retrying at the same moment.
  if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) {
    if (retryAfterSeconds > retryWaitSecondsMax) return undefined
    return retryAfterSeconds + (Math.random() * retryWaitSeconds) / 2
  }
  const longest = Math.min(retryWaitSeconds * 2 ** (failures - 1), retryWaitSecondsMax)
  return longest * (1 - Math.random() / 2)
}
