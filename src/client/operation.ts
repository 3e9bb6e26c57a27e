/** The types that generated clients are made of: an operation as a function, its result, and how it is called. */
import type { FetchOptions, ParseAs } from 'openapi-fetch'
import type { CallOptions } from './options.ts'
import type { Problem } from './problem.ts'

/**
 * The result of a call: `data` on success, `error` otherwise. Checking `error` narrows the type.
 * `response` has the status and headers; without a response from the service it is `Response.error()`, with status 0.
 */
export type Result<Data> =
  | { data: Data; error?: undefined; response: Response }
  | { data?: undefined; error: Problem; response: Response }

/** How to read a response body: `json`, `text`, `blob`, `arrayBuffer`, or `stream` to leave it unread. */
export type { ParseAs }

/**
 * The content of a file. Its media type is that of a Blob, or the header `Content-Type`, or `application/octet-stream`. A
 * stream is sent while it is read, and the call is not retried.
 */
export type RawBody = NonNullable<RequestInit['body']>

type Parameters<Operation> = Operation extends { requestBody: { content: { '*/*': unknown } } }
  ? Omit<FetchOptions<Operation>, 'body'> & { body: RawBody }
  : FetchOptions<Operation>

/** An operation's parameters and body, as in openapi-fetch, and the options of this call. */
export type OperationInit<Operations, Id extends keyof Operations, As extends ParseAs> = Parameters<Operations[Id]> &
  CallOptions & { parseAs?: As }

/** An operation as a function. It does not throw: failures are in `error` of the result. */
export type Operation<Operations, Id extends keyof Operations, Default extends ParseAs = 'json'> =
  object extends Parameters<Operations[Id]>
    ? <As extends ParseAs = Default>(
        init?: OperationInit<Operations, Id, As>,
      ) => Promise<Result<Data<Operations[Id], As>>>
    : <As extends ParseAs = Default>(
        init: OperationInit<Operations, Id, As>,
      ) => Promise<Result<Data<Operations[Id], As>>>

/** The body of a successful response; `undefined` when there is none (204). */
type Data<Operation, As extends ParseAs> = Operation extends { responses: infer Responses }
  ? Body<Responses[keyof Responses & Success], As>
  : never

type Success = 200 | 201 | 202 | 204 | 206

type Body<Response, As extends ParseAs> = Response extends { content: infer Content }
  ? Bodies<Content extends { 'application/json': infer Json } ? Json : Content[keyof Content]>[As]
  : undefined

interface Bodies<Json> {
  json: Json
  text: string
  blob: Blob
  arrayBuffer: ArrayBuffer
  stream: NonNullable<Response['body']>
}

/**
 * When a failed call may be sent again. `always`: the method is idempotent (RFC 9110, section 9.2.2) or the document says
 * the operation is. `withIdempotencyKey`: the client sends an Idempotency-Key, which makes it so. `ifRefused`: only after
 * a response that the service sends before it does anything.
 */
export type RetryRule = 'always' | 'withIdempotencyKey' | 'ifRefused'

export interface OperationDescription {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'PATCH'
  path: string
  retry: RetryRule
  /** Default: `json`. */
  parseAs?: ParseAs
  /** Default: JSON. */
  body?: 'raw'
}

/** The generated description of an OpenAPI document. */
export interface SurfaceDescription<Operations> {
  /** The document's name, such as `execution.v1`. */
  document: string
  documentHash: string
  /** The header that carries the API key. */
  credential(apiKey: string): Record<string, string>
  operations: Record<keyof Operations, OperationDescription>
}
