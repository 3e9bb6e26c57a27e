/** Sends responses and server-sent events after comparing them with the document, and ends their exchanges. */
import { crossOriginHeaders } from './cross-origin.ts'
import { clientClosed, type Exchange, type HandlerResponse } from './exchange.ts'
import type { ByteStream, ServerSentEvent } from './handler.ts'
import { EncodedJson, stringify } from './i-json.ts'
import { type HttpProblemKind, httpProblemTypes, type ProblemDetail, problemBody } from './problem.ts'

/** Seconds to wait before retrying a request that failed because the store was unavailable. */
const retryAfterSeconds = '1'

type Content = { mediaType: string | undefined; body: unknown }

export function problemResponse(
  problem: ProblemDetail & { kind: HttpProblemKind },
  headers: Record<string, string> = {},
): HandlerResponse {
  return { status: httpProblemTypes[problem.kind].status, problem, headers }
}

export const internalError = problemResponse({
  kind: 'internal-error',
  detail: 'The service failed. Report the request id.',
})

export const unavailable = problemResponse(
  { kind: 'unavailable', detail: 'The store is unavailable. Try again.' },
  { 'Retry-After': retryAfterSeconds },
)

export interface RateLimitStatus {
  /** Name of the policy in the RateLimit headers. */
  policy: string
  requestsMax: number
  windowSeconds: number
  /** Requests that it may still make in the window. */
  remaining: number
  /** Seconds until the window ends, at least 1. */
  resetSeconds: number
  /** Whether this request is refused. */
  isExceeded: boolean
}

/** As of draft-ietf-httpapi-ratelimit-headers-10. */
export function rateLimitHeaders(status: RateLimitStatus) {
  const { policy, requestsMax, windowSeconds, remaining, resetSeconds } = status
  return {
    RateLimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
    'RateLimit-Policy': `"${policy}";q=${requestsMax};w=${windowSeconds}`,
  }
}

export function rateLimited({ requestsMax, windowSeconds, resetSeconds }: RateLimitStatus): HandlerResponse {
  const seconds = (count: number) => `${count} second${count === 1 ? '' : 's'}`
  const detail = `The limit is ${requestsMax} requests in ${seconds(windowSeconds)}. Try again in ${seconds(resetSeconds)}.`
  return problemResponse({ kind: 'rate-limited', detail }, { 'Retry-After': String(resetSeconds) })
}

/** Sends the response. If it does not match the document, logs and counts that; tests get a 500 instead. */
export function send(exchange: Exchange, response: HandlerResponse): void {
  const content = contentOf(exchange, response)
  const { mediaType, body } = content
  const { status, headers = {} } = response
  const mismatch = exchange.served?.responses.check(status, mediaType, headers, body)
  // The 500 itself was checked at start.
  if (mismatch && status !== 500 && !exchange.acceptMismatch(mismatch, { status })) send(exchange, internalError)
  else if (exchange.dropsResponse) drop(exchange)
  else if (exchange.response.destroyed) exchange.end(clientClosed)
  else if (response.events) sendEvents(exchange, response, response.events)
  else if (response.stream) sendStream(exchange, response, response.stream, mediaType)
  else sendContent(exchange, response, content)
}

/** Closes the connection without a response. */
export function drop(exchange: Exchange): void {
  exchange.response.destroy()
  exchange.end(clientClosed)
}

function contentOf({ context, requestId }: Exchange, response: HandlerResponse): Content {
  const { body, problem, text, events, bytes, stream, mediaType } = response
  if (problem) {
    return { mediaType: 'application/problem+json', body: problemBody(context.problemTypes, problem, requestId) }
  }
  if (text !== undefined) return { mediaType: mediaType ?? 'text/plain', body: text }
  // The document describes the whole stream as a string; each event is checked against its `contentSchema`.
  if (events) return { mediaType: 'text/event-stream', body: '' }
  if (bytes) return { mediaType, body: bytes }
  if (stream) return { mediaType, body: noBytes }
  return { mediaType: body === undefined ? undefined : 'application/json', body }
}

const noBytes = new Uint8Array()

/** Uses `writeHead` and `end`: Express's `set` and `json` also guess a type, compute an ETag and look for a callback. */
function sendContent(exchange: Exchange, response: HandlerResponse, { mediaType, body }: Content) {
  const { response: raw } = exchange
  const headers = headerList(exchange, response, mediaType)
  if (mediaType === undefined) {
    raw.writeHead(response.status, headers).end()
  } else {
    const content = response.bytes ?? response.text ?? formatJson(body)
    const bytes = Buffer.byteLength(content)
    headers.push('Content-Length', String(bytes))
    const closes = response.headers?.Connection === 'close'
    // What the client still sends of a raw body would have to be read before the next request.
    const isUploading = isRawBody(exchange) && !exchange.request.complete
    if (isUploading && !closes) headers.push('Connection', 'close')
    raw.writeHead(response.status, headers)
    if (closes || isUploading) endAfterUpload(exchange, content)
    // For ASCII both encodings are equal, and Node writes latin1 faster.
    else if (typeof content === 'string') raw.end(content, bytes === content.length ? 'latin1' : 'utf8')
    else raw.end(content)
  }
  exchange.end(response.status)
}

function isRawBody({ served, body }: Exchange): boolean {
  return body !== undefined && served?.operation.body?.isRaw === true
}

function formatJson(body: unknown): string | Uint8Array {
  return body instanceof EncodedJson ? body.bytes : stringify(body)
}

/** Alternating names and values, which Node writes without another conversion. */
function headerList(
  { request, requestId, context, rateLimit }: Exchange,
  { status, headers }: HandlerResponse,
  mediaType: string | undefined,
) {
  // Responses contain data of one account; no cache may keep them.
  const list = ['X-Request-Id', requestId, 'Cache-Control', 'no-store']
  if (context.documentHash) list.push('X-Document-Hash', context.documentHash)
  if (context.strictTransportSecurity) list.push('Strict-Transport-Security', context.strictTransportSecurity)
  if (context.crossOrigin) list.push(...crossOriginHeaders(context.crossOrigin, request.headers.origin))
  // A 401 says nothing about the key, not even that it was valid until now.
  if (rateLimit && status !== 401 && headers?.RateLimit === undefined) {
    const { RateLimit, 'RateLimit-Policy': policy } = rateLimitHeaders(rateLimit)
    list.push('RateLimit', RateLimit, 'RateLimit-Policy', policy)
  }
  if (mediaType) list.push('Content-Type', mediaType)
  if (headers?.['X-Content-Type-Options'] === undefined) list.push('X-Content-Type-Options', 'nosniff')
  for (const name in headers) if (headers[name] !== undefined) list.push(name, String(headers[name]))
  return list
}

/**
 * Discards what the client still sends, until it stops or the listener's request timeout cuts it off. Closing the
 * socket earlier resets it, and the client may lose the response (RFC 9112, section 9.6).
 */
function endAfterUpload({ request, response }: Exchange, content: string | Uint8Array) {
  response.write(content)
  if (request.complete) return response.end()
  request.once('close', () => response.end()).resume()
  return undefined
}

/** Sends bytes while they are read, until the client disconnects. A service that stops waits for the rest. */
function sendStream(exchange: Exchange, response: HandlerResponse, stream: ByteStream, mediaType: string | undefined) {
  const { response: raw } = exchange
  const headers = headerList(exchange, response, mediaType)
  raw.writeHead(response.status, [...headers, 'Content-Length', String(stream.bytes)])
  if (exchange.method === 'HEAD') {
    raw.end()
    return exchange.end(response.status)
  }
  let sent = 0
  const count = (chunk: Uint8Array) => {
    sent += chunk.length
    return chunk
  }
  write(exchange, stream.chunks, count, createInterruption(exchange, undefined))
    .then(() => {
      if (sent !== stream.bytes && !raw.destroyed) throw new Error(`${sent} of ${stream.bytes} bytes were read.`)
      raw.end()
    })
    .catch((error: unknown) => {
      exchange.logError('response of bytes failed', { err: error })
      // The client notices by `Content-Length` that bytes are missing.
      raw.destroy()
    })
    .finally(() => exchange.end(response.status))
}

const heartbeat = ': heartbeat\n\n'

/**
 * Sends the head at once, then the events (HTML Standard, section 9.2) until they end, the client disconnects, or the
 * service stops.
 */
function sendEvents(exchange: Exchange, response: HandlerResponse, events: AsyncIterable<ServerSentEvent>) {
  const { response: raw } = exchange
  raw.writeHead(response.status, headerList(exchange, response, 'text/event-stream')).flushHeaders()
  if (exchange.method === 'HEAD') {
    raw.end()
    return exchange.end(response.status)
  }
  const stopping = raw.app.locals.stopping as AbortSignal | undefined
  const format = (event: ServerSentEvent) => formatEvent(exchange, event)
  write(exchange, events, format, createInterruption(exchange, stopping))
    .then(() => raw.end())
    .catch((error: unknown) => {
      exchange.logError('event stream failed', { err: error })
      // An orderly end would hide from the client that events are missing.
      raw.destroy()
    })
    .finally(() => exchange.end(response.status))
}

type Interruption = ReturnType<typeof createInterruption>

/** Takes items no faster than the client reads them. */
async function write<Item>(
  exchange: Exchange,
  items: AsyncIterable<Item>,
  format: (item: Item) => string | Uint8Array,
  interruption: Interruption,
) {
  const { response } = exchange
  const iterator = items[Symbol.asyncIterator]()
  try {
    while (!interruption.isOver) {
      const next = await interruption.unless(iterator.next())
      if (!next || next.done) return
      if (!response.write(format(next.value))) {
        await interruption.unless(new Promise((resolve) => response.once('drain', resolve)))
      }
    }
  } finally {
    interruption.forget()
    // Not awaited: a generator returns only after the promise that it waits for.
    iterator.return?.()?.catch((error: unknown) => exchange.logError('stream failed to end', { err: error }))
  }
}

/** Checked events as text. Several streams may send the same object, which is then checked and formatted once. */
const formattedEvents = new WeakMap<NonNullable<ServerSentEvent>, string>()

function formatEvent(exchange: Exchange, event: ServerSentEvent): string {
  if (event === null) return heartbeat
  const known = formattedEvents.get(event)
  if (known !== undefined) return known
  const mismatch = exchange.served?.responses.checkEvent(event.data)
  if (mismatch && !exchange.acceptMismatch(mismatch, { event: event.event }))
    throw new Error(`The event does not match the document: ${mismatch.pointer} ${mismatch.detail}`)
  if (/[\r\n\0]/.test(event.id + event.event)) throw new Error('The id or name of an event has a line break.')
  const text = `id: ${event.id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
  formattedEvents.set(event, text)
  return text
}

/** Ends waiting when the connection closes or the signal is aborted. */
function createInterruption({ response }: Exchange, stopping: AbortSignal | undefined) {
  let wake = () => {}
  const interrupt = () => {
    interruption.isOver = true
    wake()
  }
  const interruption = {
    isOver: response.destroyed || (stopping?.aborted ?? false),
    /** Resolves with nothing when interrupted. `Promise.race` would keep each promise until the stream ends. */
    unless<T>(promise: Promise<T>): Promise<T | undefined> {
      return new Promise((resolve, reject) => {
        wake = () => resolve(undefined)
        promise.then(resolve, reject)
        if (interruption.isOver) wake()
      })
    },
    forget() {
      response.off('close', interrupt)
      stopping?.removeEventListener('abort', interrupt)
    },
  }
  response.once('close', interrupt)
  stopping?.addEventListener('abort', interrupt)
  return interruption
}
