/** One call of an operation: its tries, the waits between them, and what comes of it as a value. */
import createClient, { type FetchOptions, mergeHeaders } from 'openapi-fetch'
import type { Answer, OperationDescription, SurfaceDescription } from './operation.ts'
import {
  type CallOptions,
  type ClientOptions,
  checkOptions,
  type LimitOptions,
  limitsOf,
  preferredWaitSecondsMax,
  withoutLimits,
} from './options.ts'
import {
  aborted,
  invalidRequest,
  isRedirect,
  networkFailure,
  type Problem,
  problemOf,
  redirected,
  timedOut,
  unexpectedAnswer,
  unreadable,
} from './problem.ts'
import { mayRepeat, waitSeconds } from './retry.ts'
import { noticingEnd, pause, timeLimit, unlessAborted } from './time-limit.ts'

type Init = Omit<FetchOptions<unknown>, 'params'> & CallOptions & { params?: { header?: Record<string, string> } }

/** The part of openapi-fetch's client that is used, with types that are none of one operation. */
interface Sender {
  request(method: string, path: string, init: object): Promise<{ data?: unknown; error?: unknown; response: Response }>
}

interface Caller {
  sender: Sender
  options: ClientOptions
  noteDrift(response: Response): void
}

/** Every operation of the document as a function that calls it. */
export function operationsOf<Operations>(surface: SurfaceDescription<Operations>, options: ClientOptions): Operations {
  checkOptions(options)
  const { baseUrl, apiKey, fetch = (request: Request) => globalThis.fetch(request), headers } = options
  const sender = createClient({
    baseUrl,
    fetch,
    headers: mergeHeaders(headers, surface.credential(apiKey)),
    // Followed to another host, a redirect would give it the key: only `Authorization` is left out by fetch itself.
    // Not `error`, which looks like a broken connection.
    redirect: 'manual',
  }) as unknown as Sender
  const caller = { sender, options, noteDrift: driftNoticeOf(surface, options) }
  const descriptions = Object.entries(surface.operations) as [string, OperationDescription][]
  const functions = descriptions.map(([id, description]) => [
    id,
    (init?: Init) => call(caller, description, init ?? {}),
  ])
  return Object.fromEntries(functions)
}

function driftNoticeOf({ document, documentHash }: SurfaceDescription<never>, { onDrift }: ClientOptions) {
  let noticed = false
  return ({ headers }: Response) => {
    const serviceHash = headers.get('X-Document-Hash')
    if (noticed || serviceHash === null || serviceHash === documentHash) return
    noticed = true
    // An error of the callback's is neither the call's nor, uncaught, the end of the program.
    Promise.resolve({ document, clientHash: documentHash, serviceHash })
      .then(onDrift)
      .catch(() => {})
  }
}

async function call(caller: Caller, description: OperationDescription, given: Init): Promise<Answer<unknown>> {
  const limits = limitsOf(caller.options, given)
  const { retries, totalSeconds } = limits
  let headers: Headers
  try {
    headers = mergeHeaders(given.headers, given.params?.header)
  } catch (cause) {
    return { error: invalidRequest(cause), response: Response.error() }
  }
  if (description.retry === 'withIdempotencyKey') ensureIdempotencyKey(headers)
  const init = { ...withoutLimits(given), headers }
  const timeoutSeconds = limits.timeoutSeconds + preferredWaitSeconds(headers)
  // Not the wall clock, which may be set meanwhile.
  const deadline = performance.now() + totalSeconds * 1000
  for (let failures = 1; ; failures += 1) {
    const left = (deadline - performance.now()) / 1000
    const answer = await tryOnce(caller, description, init, Math.min(timeoutSeconds, left))
    if (!answer.error || failures > retries || !mayRepeat(description.retry, answer.error)) return answer
    const seconds = waitSeconds(failures, answer.error, limits)
    if (seconds === undefined || performance.now() + seconds * 1000 >= deadline) return answer
    await pause(seconds, init.signal)
    if (init.signal?.aborted) return { error: aborted(init.signal), response: answer.response }
  }
}

async function tryOnce(
  { sender, options, noteDrift }: Caller,
  { method, path, parseAs = 'json' }: OperationDescription,
  init: Omit<Init, keyof LimitOptions>,
  seconds: number,
): Promise<Answer<unknown>> {
  let response = Response.error()
  if (init.signal?.aborted) return { error: aborted(init.signal), response }
  const limit = timeLimit(init.signal, seconds)
  const as = init.parseAs ?? parseAs
  let url = ''
  const send = init.fetch ?? options.fetch ?? ((request: Request) => globalThis.fetch(request))
  const fetch = async (request: Request) => {
    url = request.url
    response = await send(request)
    noteDrift(response)
    return response
  }
  let isStreaming = false
  try {
    const sent = sender.request(method, path, { ...init, parseAs: as, fetch, signal: limit.signal })
    const answer = await unlessAborted(sent, limit.signal)
    response = answer.response
    if (!response.ok) return { error: refusal(response, answer.error), response }
    const data = answer.data ?? (await emptyBody(response, as))
    const isEmpty = data === undefined && response.status !== 204
    if (isEmpty) return { error: unexpectedAnswer(response, 'The answer has no content.'), response }
    isStreaming = as === 'stream' && data !== undefined
    return { data: isStreaming ? noticingEnd(data as ReadableStream<Uint8Array>, limit.end) : data, response }
  } catch (cause) {
    if (init.signal?.aborted) return { error: aborted(init.signal), response }
    if (limit.isOver)
      return { error: timedOut(`${method} ${url} was not answered within ${Number(seconds.toFixed(1))} s.`), response }
    if (url === '') return { error: invalidRequest(cause), response }
    if (cause instanceof SyntaxError) return { error: unreadable(response, cause), response }
    return { error: networkFailure(method, url, cause), response }
  } finally {
    // A stream goes on after its head, for as long as the caller lets it.
    if (isStreaming) limit.stop()
    else limit.end()
  }
}

/** openapi-fetch reads no body that is declared empty; a file without content is a file all the same. */
function emptyBody(response: Response, as: NonNullable<Init['parseAs']>): unknown {
  if (response.status === 204 || as === 'json') return undefined
  return as === 'stream' ? new Response('').body : response[as]()
}

function refusal(response: Response, body: unknown): Problem {
  return isRedirect(response) ? redirected(response) : problemOf(response, body)
}

/** The same key for all tries. Not randomUUID, which browsers have in secure contexts alone. */
function ensureIdempotencyKey(headers: Headers): void {
  if (headers.has('Idempotency-Key')) return
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  headers.set('Idempotency-Key', Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''))
}

/** How long the answer may take because the caller has asked for it (RFC 7240, section 4.3). */
function preferredWaitSeconds(headers: Headers): number {
  const wait = headers.get('Prefer')?.match(/(?:^|,)\s*wait\s*=\s*"?(\d+)/i)?.[1]
  return Math.min(Number(wait ?? 0), preferredWaitSecondsMax)
}
