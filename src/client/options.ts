/** Options of a client and of a single call, with their defaults. */
import type { HeadersOptions } from 'openapi-fetch'

/** Options of a client. The limits can also be set for a single call. */
export interface ClientOptions extends LimitOptions {
  /** Base address of the API, without a path: `https://execution.example.com`, or `http://127.0.0.1:3001` locally. */
  baseUrl: string
  /**
   * An API key from the dashboard's tab "API Keys", or a token of `createRunToken`, for the run that it reads. Sent with
   * every request to `baseUrl`.
   */
  apiKey: string
  /** Replaces the global `fetch`, for example to log requests or to use a proxy. */
  fetch?: ((request: Request) => Promise<Response>) | undefined
  /** Headers sent with every request. */
  headers?: HeadersOptions | undefined
  /**
   * Called once when the service uses a different version of the OpenAPI document than this client. Calls continue to
   * work: changes within v1 are compatible. Errors that it throws are ignored.
   */
  onDrift?: ((drift: Drift) => void) | undefined
}

/** Retries and time limits. */
export interface LimitOptions {
  /** How often a failed call is retried, if retrying is safe. Default: 3. 0 disables retries. */
  retries?: number | undefined
  /** Wait before the first retry. It doubles with each retry; random jitter shortens it by up to half. Default: 0.5. */
  retryWaitSeconds?: number | undefined
  /**
   * Longest wait between two tries. If `Retry-After` asks for more, the call fails at once and the error's
   * `retryAfterSeconds` has the requested wait. Default: 60.
   */
  retryWaitSecondsMax?: number | undefined
  /**
   * Time limit of a single try, in addition to the wait requested by `Prefer: wait=N`. For a stream it covers the time
   * until the response headers. Default: 30.
   */
  timeoutSeconds?: number | undefined
  /** Time limit of the whole call, including retries and waits. Default: none. */
  totalSeconds?: number | undefined
}

/** Options of a single call, in addition to its parameters and body. */
export interface CallOptions extends LimitOptions {
  /** Aborts the call, even between two tries. The result's `error` has the type `problemTypes.aborted`. */
  signal?: AbortSignal | null
}

/** The service and this client were built from different OpenAPI documents. */
export interface Drift {
  /** The document's name, such as `execution.v1`. */
  document: string
  /** Hash of the document that this client was built from. */
  clientHash: string
  /** Hash that the service sent as `X-Document-Hash`. */
  serviceHash: string
}

/** Longest time that the service delays a response, whatever `Prefer: wait=N` asks for. */
export const preferredWaitSecondsMax = 30

export type Limits = { [Name in keyof LimitOptions]-?: number }

const defaults: Limits = {
  retries: 3,
  retryWaitSeconds: 0.5,
  retryWaitSecondsMax: 60,
  timeoutSeconds: 30,
  totalSeconds: Number.POSITIVE_INFINITY,
}

const limitNames = Object.keys(defaults) as (keyof Limits)[]

/** An option of the call wins over the client's, which wins over the default. */
export function resolveLimits(client: LimitOptions, call: LimitOptions): Limits {
  const entries = limitNames.map((name) => [name, call[name] ?? client[name] ?? defaults[name]])
  return Object.fromEntries(entries) as Limits
}

export function withoutLimits<Init extends object>(call: Init): Omit<Init, keyof Limits> {
  const entries = Object.entries(call).filter(([name]) => !(name in defaults))
  return Object.fromEntries(entries) as Omit<Init, keyof Limits>
}

/** @throws {TypeError} that names the invalid option. */
export function checkOptions({ baseUrl, apiKey }: ClientOptions): void {
  if (!baseUrl) throw new TypeError('baseUrl is empty: give the address of the API.')
  // Characters that a header can carry. Fetch would reject others with a message that contains the key.
  if (/^[!-~]+$/.test(apiKey ?? '')) return
  throw new TypeError('apiKey is empty or has characters that no API key has: give the value of an API key.')
}
