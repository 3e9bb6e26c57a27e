/** Sends answers, each of them held to the document first, and ends their exchanges. */
import { sendEvents } from './events.ts'
import { clientClosed, type Exchange, type LooseAnswer } from './exchange.ts'
import { type ProblemDetail, problemBody, problemKinds } from './problem.ts'

/** Seconds after which a request that found the store unavailable may succeed. */
const retryAfterSeconds = '1'

interface Content {
  mediaType: string | undefined
  body: unknown
}

/** The answer that tells of a problem. */
export function problemAnswer(problem: ProblemDetail, headers: Record<string, string> = {}): LooseAnswer {
  const { status } = problemKinds[problem.kind]
  return { status, problem, headers: status === 503 ? { 'Retry-After': retryAfterSeconds, ...headers } : headers }
}

export const internalError = problemAnswer({
  kind: 'internal-error',
  detail: 'The service failed. Report the request id.',
})

export const unavailable = problemAnswer({ kind: 'unavailable', detail: 'The store is unavailable. Try again.' })

/** Sends the answer. One that does not fit the document is logged, and a 500 sent instead. */
export function send(exchange: Exchange, answer: LooseAnswer): void {
  const content = contentOf(answer, exchange.requestId)
  const { mediaType, body } = content
  const wrong = exchange.served?.answers.check(answer.status, mediaType, answer.headers ?? {}, body)
  // The 500 itself was held to the document at start.
  if (wrong !== undefined && answer.status !== 500) {
    exchange.fault('The answer does not fit its document.', { status: answer.status, wrong })
    send(exchange, internalError)
  } else if (exchange.response.destroyed) exchange.end(clientClosed)
  else if (answer.events) sendEvents(exchange, answer.status, headList(exchange, answer, mediaType), answer.events)
  else sendAtOnce(exchange, answer, content)
}

function contentOf({ body, problem, text, events, bytes, mediaType }: LooseAnswer, requestId: string): Content {
  if (problem) return { mediaType: 'application/problem+json', body: problemBody(problem, requestId) }
  if (text !== undefined) return { mediaType: 'text/plain', body: text }
  // The stream as a whole is a string in its document; its events are held to `contentSchema` one by one.
  if (events) return { mediaType: 'text/event-stream', body: '' }
  if (bytes) return { mediaType, body: bytes }
  return { mediaType: body === undefined ? undefined : 'application/json', body }
}

/**
 * `writeHead` and `end` with a list of headers instead of Express' `set` and `json`, which look for what is not here:
 * a type to guess, an ETag, a JSONP callback.
 */
function sendAtOnce(exchange: Exchange, answer: LooseAnswer, { mediaType, body }: Content) {
  const { response } = exchange
  const headers = headList(exchange, answer, mediaType)
  if (mediaType === undefined) {
    response.writeHead(answer.status, headers).end()
  } else {
    const content = answer.bytes ?? (mediaType === 'text/plain' ? (body as string) : JSON.stringify(body))
    const bytes = Buffer.byteLength(content)
    headers.push('Content-Length', String(bytes))
    response.writeHead(answer.status, headers)
    if (answer.headers?.Connection === 'close') endAfterUpload(exchange, content)
    // ASCII is the same in both, and Node writes it faster when it need not look for anything else.
    else if (typeof content === 'string') response.end(content, bytes === content.length ? 'latin1' : 'utf8')
    else response.end(content)
  }
  exchange.end(answer.status)
}

/** Names and values in turn, the form that Node writes as it is. */
function headList(
  { requestId, documentHash }: Exchange,
  { headers }: LooseAnswer,
  mediaType: string | undefined,
): string[] {
  // Answers hold data of one account: no cache may keep them.
  const list = ['X-Request-Id', requestId, 'Cache-Control', 'no-store']
  if (documentHash) list.push('X-Document-Hash', documentHash)
  if (mediaType) list.push('Content-Type', mediaType)
  for (const name in headers) if (headers[name] !== undefined) list.push(name, String(headers[name]))
  return list
}

/**
 * Discards what the client still sends, until it stops or the listener's request timeout cuts it. Closing the socket
 * earlier resets it, and the client may lose the answer (RFC 9112, section 9.6).
 */
function endAfterUpload({ request, response }: Exchange, content: string | Uint8Array) {
  response.write(content)
  if (request.complete) return response.end()
  request.once('close', () => response.end()).resume()
  return undefined
}
