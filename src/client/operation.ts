/** What the generated part of the client is made of: an operation as a function, its answer, and how it is called. */
import type { FetchOptions, ParseAs } from 'openapi-fetch'
import type { CallOptions } from './options.ts'
import type { Problem } from './problem.ts'

/**
 * What a call resolves to: `data` when it succeeded, `error` when it did not. Looking at `error` tells TypeScript which.
 * `response` has status and headers; where there was no answer, its status is 0 (it is `Response.error()`).
 */
export type Answer<Data> =
  | { data: Data; error?: undefined; response: Response }
  | { data?: undefined; error: Problem; response: Response }

/** What an answer's body is read as: `json`, `text`, `blob`, `arrayBuffer`, or `stream` for a body that is not read. */
export type { ParseAs }

/**
 * What an operation takes: its parameters and its body, as openapi-fetch has them, and this call's own options. By the
 * operation's name, which editors can show, unlike its whole type.
 */
export type OperationInit<Operations, Id extends keyof Operations, As extends ParseAs> = FetchOptions<Operations[Id]> &
  CallOptions & { parseAs?: As }

/** An operation of a document as a function. It does not throw: what goes wrong is the answer's `error`. */
export type Operation<Operations, Id extends keyof Operations, Default extends ParseAs = 'json'> =
  object extends FetchOptions<Operations[Id]>
    ? <As extends ParseAs = Default>(
        init?: OperationInit<Operations, Id, As>,
      ) => Promise<Answer<Data<Operations[Id], As>>>
    : <As extends ParseAs = Default>(
        init: OperationInit<Operations, Id, As>,
      ) => Promise<Answer<Data<Operations[Id], As>>>

/** What a successful answer of an operation brings; `undefined` for one without content (204). */
type Data<Operation, As extends ParseAs> = Operation extends { responses: infer Responses }
  ? ContentOf<Responses[keyof Responses & Success], As>
  : never

type Success = 200 | 201 | 202 | 204

type ContentOf<Answered, As extends ParseAs> = Answered extends { content: infer Content }
  ? Bodies<Content[keyof Content]>[As]
  : undefined

interface Bodies<Json> {
  json: Json
  text: string
  blob: Blob
  arrayBuffer: ArrayBuffer
  stream: NonNullable<Response['body']>
}

/**
 * When a call may be sent again although its answer is not known: `always` where the method is idempotent (RFC 9110,
 * section 9.2.2) or the document says that repeating changes nothing; `withIdempotencyKey` where a key makes it so, which
 * the client then sends; `ifRefused` where only an answer before anything was done permits it.
 */
export type RetryRule = 'always' | 'withIdempotencyKey' | 'ifRefused'

/** What the client must know of an operation to call it. */
export interface OperationDescription {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'PATCH'
  path: string
  retry: RetryRule
  /** What its answer is read as, unless the caller says otherwise; `json` where nothing is said. */
  parseAs?: ParseAs
}

/** What the client must know of a document to be its client. */
export interface SurfaceDescription<Operations> {
  /** The document's name, such as `execution.v1`. */
  document: string
  documentHash: string
  /** The header that carries the API key. */
  credential(apiKey: string): Record<string, string>
  operations: Record<keyof Operations, OperationDescription>
}
