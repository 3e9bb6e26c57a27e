/** Turns what Prism has chosen into an answer of `src/contract/`, which checks and sends it as it does the service's. */
import { credentialReader } from '../../contract/credential.ts'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import type { ServerSentEvent } from '../../contract/handler.ts'
import { preferredWait } from '../../contract/prefer.ts'
import type { ProblemMember } from '../../contract/problem.ts'
import { commonHeaders } from '../../contract/response-validation.ts'
import { apiKeyRealm } from '../../domain/api-keys/api-key.ts'
import { waitSecondsMax } from '../../domain/runs/run-operations.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import { mediaTypeOf, sampleFile } from './files.ts'
import { choiceOf } from './preferences.ts'
import type { Chosen, Prism } from './prism.ts'

type MockRequest = Pick<HandlerRequest, 'path' | 'query' | 'headers'>

/** The answer of any operation. Rejects with a Problem when the request prefers what is not documented. */
export async function mockAnswer(prism: Prism, operation: Operation, request: MockRequest): Promise<HandlerResponse> {
  const { prefer, accept } = request.headers as Record<string, string | undefined>
  const query = request.query as { limit?: number; delaySeconds?: number }
  const { code, exampleKey, dynamic } = choiceOf(operation, prism.examples(operation), prefer, query.delaySeconds)
  const { isBinary = false, content = {} } = operation.responses.get(code) ?? {}
  const named = isBinary ? mediaTypeOf(fileName(request)) : undefined
  // Whatever `Accept` says, it excludes neither problems nor answers without a body.
  const accepted = code < 300 && Object.keys(content).length > 0 ? accept : undefined
  const choice = {
    code,
    ...(exampleKey !== undefined && { exampleKey }),
    ...(named !== undefined && { mediaTypes: [named] }),
    // Of anything but JSON, what is made up would be a string of any words.
    dynamic: dynamic && 'application/json' in content,
  }
  const chosen = await prism.choose(operation, accepted, choice, query.limit)
  const answer = { status: code, headers: headersOf(operation, chosen, request) }
  return Object.keys(content).length === 0 ? answer : withContent(answer, chosen, isBinary, request)
}

async function withContent(
  answer: HandlerResponse,
  { mediaType = '', body }: Chosen,
  isBinary: boolean,
  { headers }: MockRequest,
): Promise<HandlerResponse> {
  if (isBinary) return { ...answer, bytes: await sampleFile(mediaType), mediaType }
  if (mediaType === 'text/event-stream') {
    const events = eventsIn(body as string).filter(({ id }) => Number(id) > Number(headers['last-event-id'] ?? 0))
    // As the service does when nothing is left to send; whoever resumes by Last-Event-ID would come back for ever.
    return events.length > 0 ? { ...answer, events: each(events) } : { ...answer, status: 204 }
  }
  if (mediaType === 'application/problem+json') {
    const { type, detail, errors } = body as { type: string; detail: string; errors?: ProblemMember[] }
    const kind = type.slice(type.indexOf('#') + 1)
    return { ...answer, problem: { kind, detail, ...(errors && { errors }) } }
  }
  return mediaType === 'text/plain' ? { ...answer, text: body as string } : { ...answer, body }
}

/** What the document requires, as its examples have it, but for what the request decides. */
function headersOf(operation: Operation, { status, headers }: Chosen, request: MockRequest): Record<string, string> {
  const required = operation.responses.get(status)?.requiredHeaders ?? []
  const sent = Object.entries(headers).filter(([name]) => required.includes(name) && !commonHeaders.includes(name))
  const wait =
    status < 300 && operation.responses.has(202)
      ? preferredWait(request.headers.prefer as string, waitSecondsMax)
      : undefined
  return {
    ...Object.fromEntries(sent),
    ...('Content-Disposition' in headers && { 'Content-Disposition': `attachment; filename="${fileName(request)}"` }),
    ...('WWW-Authenticate' in headers && {
      'WWW-Authenticate': credentialReader(operation.scheme, apiKeyRealm).challenge,
    }),
    ...(wait !== undefined && { 'Preference-Applied': `wait=${wait}` }),
  }
}

/** A file has the name that ends its path. */
function fileName({ path }: MockRequest): string {
  return String(Object.values(path).at(-1))
}

type SentEvent = NonNullable<ServerSentEvent>

/** The events of a whole event stream (HTML Standard, section 9.2). */
function eventsIn(text: string): SentEvent[] {
  const blocks = text.split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)))
    return { id: fields.id, event: fields.event, data: JSON.parse(fields.data) }
  })
}

async function* each<Item>(items: Item[]): AsyncGenerator<Item> {
  yield* items
}
