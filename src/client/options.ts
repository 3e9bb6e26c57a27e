/** What a client and a single call can be told, with what holds where nothing is said. */
import type { HeadersOptions } from 'openapi-fetch'

/** What a client is made of. Every number can be given for a single call, too. */
export interface ClientOptions extends LimitOptions {
  /** Where the surface is, without a path: `https://execution.example.com`, or `http://127.0.0.1:3001` for a local one. */
  baseUrl: string
  /** An API key from the dashboard's tab "API Keys". It is sent with every request, and nowhere else. */
  apiKey: string
  /** Sends the requests instead of the global `fetch`: to log them, or to go through a proxy. */
  fetch?: ((request: Request) => Promise<Response>) | undefined
  /** Headers for every request. */
  headers?: HeadersOptions | undefined
  /**
   * Called once, when the service answers by another document than the one that this client was made from. Calls go on
   * as before: an additive change does no harm. What it throws is ignored.
   */
  onDrift?: ((drift: Drift) => void) | undefined
}

/** How often and how long a call is tried. */
export interface LimitOptions {
  /** How often a call that failed is tried again, where that is safe. 3 by default; 0 for never. */
  retries?: number | undefined
  /** The wait before the second try; it doubles from try to try, and is shortened by up to half at random. 0.5 by default. */
  retryWaitSeconds?: number | undefined
  /**
   * No wait between tries is longer. Where the service asks for more by `Retry-After`, the call ends with its error,
   * whose `retryAfterSeconds` says how much. 60 by default.
   */
  retryWaitSecondsMax?: number | undefined
  /**
   * How long one try may take until its answer is there, in addition to what `Prefer: wait=N` asks for. A stream only has
   * to begin in this time. 30 by default.
   */
  timeoutSeconds?: number | undefined
  /** How long a call may take with all its tries and waits. Without it: as long as they take. */
  totalSeconds?: number | undefined
}

/** What a single call can be told beside its parameters and body. */
export interface CallOptions extends LimitOptions {
  /** Ends the call at once, also while it waits for its next try; the answer's `error` then has the type `aborted`. */
  signal?: AbortSignal | null
}

/** The service and this client do not go by the same document. */
export interface Drift {
  /** The document's name, such as `execution.v1`. */
  document: string
  /** The hash of the document that this client was made from. */
  clientHash: string
  /** The hash that the service has sent as `X-Document-Hash`. */
  serviceHash: string
}

/** As long as the service will wait with its answer, whatever `Prefer: wait=N` asks for. */
export const preferredWaitSecondsMax = 30

/** The limits of a call: its own, else its client's, else those that hold where nothing is said. */
export type Limits = { [Name in keyof LimitOptions]-?: number }

const usual: Limits = {
  retries: 3,
  retryWaitSeconds: 0.5,
  retryWaitSecondsMax: 60,
  timeoutSeconds: 30,
  totalSeconds: Number.POSITIVE_INFINITY,
}

export function limitsOf(client: LimitOptions, call: LimitOptions): Limits {
  return {
    retries: call.retries ?? client.retries ?? usual.retries,
    retryWaitSeconds: call.retryWaitSeconds ?? client.retryWaitSeconds ?? usual.retryWaitSeconds,
    retryWaitSecondsMax: call.retryWaitSecondsMax ?? client.retryWaitSecondsMax ?? usual.retryWaitSecondsMax,
    timeoutSeconds: call.timeoutSeconds ?? client.timeoutSeconds ?? usual.timeoutSeconds,
    totalSeconds: call.totalSeconds ?? client.totalSeconds ?? usual.totalSeconds,
  }
}

/** What of a call is for fetch. */
export function withoutLimits<Init extends object>(call: Init): Omit<Init, keyof Limits> {
  const entries = Object.entries(call).filter(([name]) => !(name in usual))
  return Object.fromEntries(entries) as Omit<Init, keyof Limits>
}

/** @throws {TypeError} for what cannot work for any request; its message names the option. */
export function checkOptions({ baseUrl, apiKey }: ClientOptions): void {
  if (!baseUrl) throw new TypeError('baseUrl is empty: give the address of the API.')
  // What a header can carry. A message of fetch's own would have the key in it.
  if (/^[!-~]+$/.test(apiKey ?? '')) return
  throw new TypeError('apiKey is empty or has characters that no API key has: give the value of an API key.')
}
