/** Turns Prism's choice into a response of `src/contract/`, which validates and sends it like the service's. */
import { credentialReader } from '../../contract/credential.ts'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import type { ServerSentEvent } from '../../contract/handler.ts'
import { preferredWait } from '../../contract/prefer.ts'
import type { ProblemMember } from '../../contract/problem.ts'
import { commonHeaders } from '../../contract/response-validation.ts'
import { apiKeyRealm } from '../../domain/api-keys/api-key.ts'
import { waitSecondsMax } from '../../domain/runs/run-operations.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import type { Clock } from './mock-runs.ts'
import { chooseResponse } from './preferences.ts'
import type { ChosenResponse, Prism } from './prism.ts'
import { mediaTypeByName, readSampleFile } from './sample-files.ts'

type MockRequest = Pick<HandlerRequest, 'path' | 'query' | 'headers' | 'signal'>

/** @throws {Problem} if the request prefers a response that is not documented. */
export async function mockResponse(
  prism: Prism,
  operation: Operation,
  request: MockRequest,
  clock: Clock,
): Promise<HandlerResponse> {
  const { prefer, accept } = request.headers as Record<string, string | undefined>
  const query = request.query as { limit?: number; delaySeconds?: number }
  const { code, exampleKey, dynamic, seed } = chooseResponse(
    operation,
    prism.listExamples(operation),
    prefer,
    query.delaySeconds,
  )
  const { isBinary = false, content = {} } = operation.responses.get(code) ?? {}
  const hasBody = Object.keys(content).length > 0
  const mediaType = isBinary ? mediaTypeByName(fileName(request)) : undefined
  const choice = {
    code,
    ...(exampleKey !== undefined && { exampleKey }),
    ...(mediaType !== undefined && { mediaTypes: [mediaType] }),
    // For other media types, Prism would make up a random string.
    dynamic: dynamic && 'application/json' in content,
    ...(seed !== undefined && { seed }),
  }
  // `Accept` applies neither to problems nor to responses without a body.
  const chosen = await prism.choose(operation, code < 300 && hasBody ? accept : undefined, choice, query.limit)
  const response = { status: code, headers: toHeaders(operation, chosen, request) }
  return hasBody ? withBody(response, chosen, isBinary, request, clock) : response
}

async function withBody(
  response: HandlerResponse,
  { mediaType = '', body }: ChosenResponse,
  isBinary: boolean,
  request: MockRequest,
  clock: Clock,
): Promise<HandlerResponse> {
  if (isBinary) return { ...response, bytes: await readSampleFile(mediaType), mediaType }
  if (mediaType === 'text/event-stream') {
    const events = parseEvents(body as string).filter(
      ({ id }) => Number(id) > Number(request.headers['last-event-id'] ?? 0),
    )
    // Like the service when no event is left; otherwise clients would reconnect forever.
    return events.length > 0
      ? { ...response, events: pace(events, clock, request.signal) }
      : { ...response, status: 204 }
  }
  if (mediaType === 'application/problem+json') {
    const { type, detail, errors } = body as { type: string; detail: string; errors?: ProblemMember[] }
    const kind = type.slice(type.indexOf('#') + 1)
    return { ...response, problem: { kind, detail, ...(errors && { errors }) } }
  }
  if (mediaType === 'text/plain') return { ...response, text: body as string }
  // Every list has one page.
  const isPage = body !== null && typeof body === 'object' && 'data' in body && 'nextCursor' in body
  return { ...response, body: isPage ? { ...body, nextCursor: null } : body }
}

/** The required headers of the document with their examples, except those that depend on the request. */
function toHeaders(
  operation: Operation,
  { status, headers }: ChosenResponse,
  request: MockRequest,
): Record<string, string> {
  const required = operation.responses.get(status)?.requiredHeaders ?? []
  const sent = Object.entries(headers).filter(([name]) => required.includes(name) && !commonHeaders.includes(name))
  const mayWait = status < 300 && operation.responses.has(200) && operation.responses.has(202)
  const wait = mayWait ? preferredWait(request.headers.prefer as string, waitSecondsMax) : undefined
  return {
    ...Object.fromEntries(sent),
    ...(status === 429 && { RateLimit: `"api-key";r=0;t=${headers['Retry-After']}` }),
    ...('Content-Disposition' in headers && { 'Content-Disposition': `attachment; filename="${fileName(request)}"` }),
    ...('WWW-Authenticate' in headers && {
      'WWW-Authenticate': credentialReader(operation.scheme, apiKeyRealm).challenge,
    }),
    ...(wait !== undefined && { 'Preference-Applied': `wait=${wait}` }),
  }
}

function fileName({ path }: MockRequest): string {
  return String(Object.values(path).at(-1))
}

type SentEvent = NonNullable<ServerSentEvent>

/** Parses an event stream (HTML Standard, section 9.2) in the form of the document's example. */
export function parseEvents(text: string): SentEvent[] {
  const blocks = text.split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)))
    return { id: fields.id, event: fields.event, data: JSON.parse(fields.data) }
  })
}

/** With the pauses between the events. */
async function* pace(events: SentEvent[], clock: Clock, signal: AbortSignal): AsyncGenerator<SentEvent> {
  let last: number | undefined
  for (const event of events) {
    const at = Date.parse((event.data as { at: string }).at)
    if (last !== undefined && at > last) await clock.sleep(at - last, signal)
    if (signal.aborted) return
    last = at
    yield event
  }
}
