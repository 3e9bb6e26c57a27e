/**
 * The types of a handler, derived from an operation as openapi-typescript writes it: the request that it receives, and
 * the responses that it may return. A status, body or header that the document lacks does not compile.
 */
import type { ProblemDetail } from './problem.ts'
import type { Reserve } from './tenant-limits.ts'

/** An entry of openapi-typescript's `operations`. */
interface OperationTypes {
  parameters: { query?: unknown; header?: unknown; path?: unknown }
  requestBody?: unknown
  responses: object
}

type Of<T, Key extends PropertyKey> = T extends { [K in Key]?: infer Value } ? Value : undefined

/** The validated request that a handler receives. */
export interface OperationRequest<Operation extends OperationTypes, Filled extends string, Principal> {
  path: Of<Operation['parameters'], 'path'>
  /** Query parameters; those with a default are always present. */
  query: QueryOf<Operation['parameters']['query'], Filled>
  header: NonNullable<Operation['parameters']['header']>
  /** `undefined` when the document makes the body optional and none was sent. */
  body: BodyOf<Operation>
  principal: Principal
  requestId: string
  /** As the proxies in front report it; `null` if it is unknown. */
  clientAddress: string | null
  /** Aborted when the connection closes. */
  signal: AbortSignal
  /** Of the media types of the operation's successful responses, the one that the client prefers, as `Accept` says. */
  preferredType: string
  /**
   * Bounds the large responses that the caller's account has in memory. Call it before reading a response of this many
   * bytes, and await what it returns: nothing when the bytes may be read at once. @throws {Problem}
   */
  reserve: Reserve
  /** Requires one of the operation's `x-conditional-scopes`. @throws {NotPermitted} which becomes 403. */
  requireScope(scope: string): void
  /** Whether the credential has the scope, one of the operation's `x-conditional-scopes`. */
  hasScope(scope: string): boolean
  /** Lets other large requests continue while this one waits for something. */
  unlockProcessing(): void
  /** Whether the credential of this request would be accepted now; for responses that take long. */
  stillAuthenticated(): Promise<boolean>
  /** From now on, `signal` is also aborted within about a second after the credential has become invalid. Call it once. */
  whileAuthenticated(): AbortSignal
}

type QueryOf<Query, Filled extends string> = NonNullable<Query> &
  Required<Pick<NonNullable<Query>, Filled & keyof NonNullable<Query>>>

/** A body of any media type, in the pieces in which it arrives. Reading it throws a Problem beyond its maximum size. */
export interface RawBody extends AsyncIterable<Uint8Array> {
  /** Of the header `Content-Type`, with its parameters; `application/octet-stream` without one. */
  mediaType: string
  /** The size that the client has announced, if it has. */
  declaredBytes: number | undefined
}

type Content<T> = T extends { content: { 'application/json': infer Body } }
  ? Body
  : T extends { content: { '*/*': unknown } }
    ? RawBody
    : never

type BodyOf<Operation> = Operation extends { requestBody: infer Body }
  ? Content<Body>
  : Operation extends { requestBody?: infer Body }
    ? Content<NonNullable<Body>> | undefined
    : undefined

/** Headers that the framework sends by itself. */
type FrameworkHeader =
  | 'X-Request-Id'
  | 'X-Document-Hash'
  | 'RateLimit'
  | 'RateLimit-Policy'
  | 'WWW-Authenticate'
  | 'Cache-Control'

type KnownHeaders<Headers> = {
  [Name in keyof Headers as string extends Name ? never : Name extends FrameworkHeader ? never : Name]: Headers[Name]
}

type WithHeaders<Response> = Response extends { headers: infer Headers }
  ? [keyof KnownHeaders<Headers>] extends [never]
    ? { headers?: never }
    : Record<never, never> extends KnownHeaders<Headers>
      ? { headers?: KnownHeaders<Headers> }
      : { headers: KnownHeaders<Headers> }
  : never

/** The same rule as `isBinaryType` in openapi/served-operations.ts, which has the reason. */
type BinaryType<MediaType> = Exclude<
  MediaType,
  'application/json' | `application/${string}+json` | 'text/plain' | 'text/csv' | 'text/event-stream'
>

/** Bytes whose number is known, which are read while they are sent. */
export interface ByteStream {
  bytes: number
  chunks: AsyncIterable<Uint8Array>
}

/** A response of bytes, which are sent unchanged. */
type WithBytes<MediaType> = { mediaType: MediaType } & ({ bytes: Uint8Array } | { stream: ByteStream })

type WithContent<Response> = Response extends { content: infer Content }
  ? [BinaryType<keyof Content>] extends [never]
    ? WithText<Response>
    : WithBytes<keyof Content>
  : WithText<Response>

type WithText<Response> = Response extends { content: { 'application/json': infer Body } }
  ?
      | { body: Body }
      | (Response extends { content: { 'text/csv': string } } ? { text: string; mediaType: 'text/csv' } : never)
  : Response extends { content: { 'application/problem+json': unknown } }
    ? { problem: ProblemDetail }
    : Response extends { content: { 'text/event-stream': unknown } }
      ? { events: AsyncIterable<ServerSentEvent> }
      : Record<never, never>

/** The framework sends 401, 403, 406, 413, 415 and 5xx by itself. */
type HandlerStatus = 200 | 201 | 202 | 204 | 206 | 304 | 400 | 404 | 409 | 412 | 416 | 429

/** The responses that the document gives the operation, except those of the framework. */
export type OperationResponse<Operation extends OperationTypes> = {
  [Status in keyof Operation['responses'] & HandlerStatus]: { status: Status } & WithHeaders<
    Operation['responses'][Status]
  > &
    WithContent<Operation['responses'][Status]>
}[keyof Operation['responses'] & HandlerStatus]

/** A server-sent event whose `data` fits the `contentSchema` of the operation's event stream; `null` is a heartbeat. */
export type ServerSentEvent = { id: string; event: string; data: unknown } | null

/** Implements one operation. An error that it throws becomes 503 when the store is unavailable, otherwise 500. */
export type Handler<Operation extends OperationTypes, Filled extends string, Principal> = (
  request: OperationRequest<Operation, Filled, Principal>,
) => Promise<OperationResponse<Operation>>
