/**
 * The types of a handler, derived from an operation as openapi-typescript writes it: what a handler is given, and
 * which answers it may return. A status, body or header that the document does not have does not compile.
 */
import type { ProblemDetail } from './problem.ts'

/** An entry of openapi-typescript's `operations`. */
interface OperationTypes {
  parameters: { query?: unknown; header?: unknown; path?: unknown }
  requestBody?: unknown
  responses: object
}

type Of<T, Key extends PropertyKey> = T extends { [K in Key]?: infer Value } ? Value : undefined

/** What a handler is given. All of it fits the document. */
export interface OperationRequest<Operation extends OperationTypes, Filled extends string, Principal> {
  path: Of<Operation['parameters'], 'path'>
  /** Query parameters; those with a default are always there. */
  query: QueryOf<Operation['parameters']['query'], Filled>
  header: NonNullable<Operation['parameters']['header']>
  /** The parsed body; `undefined` when the document makes it optional and none was sent. */
  body: BodyOf<Operation>
  principal: Principal
  requestId: string
  /** Aborted when the connection closes. */
  signal: AbortSignal
  /** Whether the credential of this request would be accepted now; for answers that take long. */
  stillAuthenticated(): Promise<boolean>
}

type QueryOf<Query, Filled extends string> = NonNullable<Query> &
  Required<Pick<NonNullable<Query>, Filled & keyof NonNullable<Query>>>

type JsonContent<T> = T extends { content: { 'application/json': infer Body } } ? Body : never

type BodyOf<Operation> = Operation extends { requestBody: infer Body }
  ? JsonContent<Body>
  : Operation extends { requestBody?: infer Body }
    ? JsonContent<NonNullable<Body>> | undefined
    : undefined

/** Headers that the machinery itself sends. */
type SentByMachinery = 'X-Request-Id' | 'X-Document-Hash' | 'WWW-Authenticate' | 'Cache-Control'

type KnownHeaders<Headers> = {
  [Name in keyof Headers as string extends Name ? never : Name extends SentByMachinery ? never : Name]: Headers[Name]
}

type WithHeaders<Response> = Response extends { headers: infer Headers }
  ? [keyof KnownHeaders<Headers>] extends [never]
    ? { headers?: never }
    : Record<never, never> extends KnownHeaders<Headers>
      ? { headers?: KnownHeaders<Headers> }
      : { headers: KnownHeaders<Headers> }
  : never

/** `isBinaryType` in operations.ts says why. */
type BinaryType<MediaType> = Exclude<
  MediaType,
  'application/json' | `application/${string}+json` | 'text/plain' | 'text/event-stream'
>

/** An answer of bytes, which are sent as they are. */
type WithBytes<MediaType> = { bytes: Uint8Array; mediaType: MediaType }

type WithContent<Response> = Response extends { content: infer Content }
  ? [BinaryType<keyof Content>] extends [never]
    ? WithText<Response>
    : WithBytes<keyof Content>
  : WithText<Response>

type WithText<Response> = Response extends { content: { 'application/json': infer Body } }
  ? { body: Body }
  : Response extends { content: { 'application/problem+json': unknown } }
    ? { problem: ProblemDetail }
    : Response extends { content: { 'text/event-stream': unknown } }
      ? { events: AsyncIterable<ServerSentEvent> }
      : Record<never, never>

/** 401, 403, 406, 413, 415 and 5xx are the machinery's; a handler neither returns nor needs them. */
type Returned = 200 | 201 | 202 | 204 | 400 | 404 | 409 | 429

/** The answers that the document gives this operation. */
export type Answer<Operation extends OperationTypes> = {
  [Status in keyof Operation['responses'] & Returned]: { status: Status } & WithHeaders<
    Operation['responses'][Status]
  > &
    WithContent<Operation['responses'][Status]>
}[keyof Operation['responses'] & Returned]

/** A server-sent event; `data` must fit the `contentSchema` of the operation's event stream, `null` is a heartbeat. */
export type ServerSentEvent = { id: string; event: string; data: unknown } | null

/** Implements one operation. Whatever it throws becomes 503 when the store is unavailable, otherwise 500. */
export type Handler<Operation extends OperationTypes, Filled extends string, Principal> = (
  request: OperationRequest<Operation, Filled, Principal>,
) => Promise<Answer<Operation>>
