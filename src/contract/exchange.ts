/** One request and its response: the results that stages pass on, and the request that handlers receive. */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import type { Operation } from '../openapi/served-operations.ts'
import type { Body } from './body.ts'
import type { Mismatch } from './compiled-checks.ts'
import type { CredentialReader } from './credential.ts'
import type { CrossOrigin } from './cross-origin.ts'
import type { ByteStream, ServerSentEvent } from './handler.ts'
import { type ParameterReader, type Parameters, readHeaders } from './parameters.ts'
import { NotPermitted, type ProblemDetail, type ProblemTypes } from './problem.ts'
import type { RequestValidation } from './request-validation.ts'
import type { RateLimitStatus } from './response.ts'
import type { ResponseValidation } from './response-validation.ts'
import type { TenantRequest } from './tenant-limits.ts'

/** Everything that serves one operation; built at start. */
export interface ServedOperation {
  operation: Operation
  credential: CredentialReader
  /** The documented bodies of 401 and 403. */
  refusals: { 401: string; 403: string }
  readParameters: ParameterReader
  validateRequest: RequestValidation
  responses: ResponseValidation
  run: UntypedHandler
}

/** A handler of any operation; `Handler` in handler.ts has the types. */
export type UntypedHandler = (request: object) => Promise<HandlerResponse>

/** A response of any operation, with at most one of `body`, `problem`, `text`, `events`, `bytes` and `stream`. */
export interface HandlerResponse {
  status: number
  headers?: Record<string, unknown>
  body?: unknown
  problem?: ProblemDetail
  text?: string
  events?: AsyncIterable<ServerSentEvent>
  bytes?: Uint8Array
  stream?: ByteStream
  mediaType?: string
}

/** What all exchanges of a surface share. */
export interface ExchangeContext<P> {
  log: Logger
  /** Sent with every response as `X-Document-Hash`. */
  documentHash?: string
  problemTypes: ProblemTypes
  /** `Strict-Transport-Security` of every response (RFC 6797), for a document that is served by https. */
  strictTransportSecurity?: string | undefined
  /** Set if pages of other origins may call the surface. */
  crossOrigin?: CrossOrigin | undefined
  /** Whether a response that does not match the document is replaced by 500, as in tests. Otherwise it is sent. */
  refusesMismatches?: boolean | undefined
  /** Called for each response and event that does not match the document. */
  countMismatch?: (() => void) | undefined
  /** The fields of the principal that are logged. */
  describe?(principal: P): Record<string, string>
  /** Called once for each exchange; `operationId` is empty when the path is not documented. */
  observe?(operationId: string, method: string, status: number, seconds: number): void
}

/** In logs and metrics, the status of a request whose client closed the connection before the response, as in nginx. */
export const clientClosed = 499

export class Exchange<P = unknown> {
  readonly requestId = randomUUID()
  readonly request: Request
  readonly response: Response
  readonly context: ExchangeContext<P>
  /** As it was sent: stages see HEAD as GET. */
  readonly method: string
  /** Undefined until the operation is found. */
  served: ServedOperation | undefined = undefined
  /** Path parameters in their order, still percent-encoded. */
  pathValues: string[] = []
  credential = ''
  principal: P | undefined = undefined
  /** The credential's scopes; `null` permits everything. */
  scopes: readonly string[] | null = null
  /** Undefined until the request is counted. */
  rateLimit: RateLimitStatus | undefined = undefined
  tenant: TenantRequest | undefined = undefined
  body: Body | undefined = undefined
  parameters: Parameters = { path: {}, query: {}, errors: [] }
  /** Whether the connection is closed in place of the response, as when a network fails. */
  dropsResponse = false
  readonly #startedAt = performance.now()

  constructor(request: Request, response: Response, context: ExchangeContext<P>) {
    this.request = request
    this.response = response
    this.context = context
    this.method = request.method
  }

  /** Logs and counts the exchange. Call it once, when nothing more will be sent. */
  end(status: number) {
    const { log, describe, observe } = this.context
    const { method } = this
    const operationId = this.served?.operation.id ?? ''
    const milliseconds = performance.now() - this.#startedAt
    const described = this.principal !== undefined && describe?.(this.principal)
    const durationMs = Math.round(milliseconds * 1000) / 1000
    log.info({ requestId: this.requestId, operationId, method, status, durationMs, ...described }, 'request')
    observe?.(operationId, method, status, milliseconds / 1000)
  }

  /** Returns whether what does not match the document is sent nevertheless: a change that it confirms has been made. */
  acceptMismatch({ pointer, detail }: Mismatch, details: object): boolean {
    const { refusesMismatches = false, countMismatch } = this.context
    this.logError('response does not match the document', { ...details, pointer, detail })
    countMismatch?.()
    return !refusesMismatches
  }

  logError(message: string, details: object) {
    const operationId = this.served?.operation.id ?? ''
    this.context.log.error({ requestId: this.requestId, operationId, ...details }, message)
  }
}

interface Authentication {
  /** See `OperationRequest`. */
  stillAuthenticated(): Promise<boolean>
  /** Aborts the request when its credential has become invalid. Returns a function that ends the checks. */
  checkCredential(request: AbortController): () => void
}

/** The request that a handler receives: `OperationRequest` of handler.ts without the types of an operation. */
export class HandlerRequest {
  readonly path: object
  readonly query: object
  readonly header: Record<string, unknown>
  readonly body: unknown
  readonly principal: unknown
  readonly requestId: string
  readonly stillAuthenticated: () => Promise<boolean>
  readonly #exchange: Exchange
  readonly #checkCredential: Authentication['checkCredential']
  #abort: AbortController | undefined = undefined

  constructor(exchange: Exchange, operation: Operation, authentication: Authentication) {
    this.#exchange = exchange
    this.#checkCredential = authentication.checkCredential
    this.path = exchange.parameters.path
    this.query = exchange.parameters.query
    this.header = readHeaders(operation, exchange.request.headers)
    this.body = exchange.body?.value
    this.principal = exchange.principal
    this.requestId = exchange.requestId
    this.stillAuthenticated = authentication.stillAuthenticated
  }

  /** All headers, for handlers that do not serve one known operation. */
  get headers(): IncomingHttpHeaders {
    return this.#exchange.request.headers
  }

  /** See `OperationRequest`. The socket of a client that has gone has no address. */
  get clientAddress(): string | null {
    return this.#exchange.request.ip ?? null
  }

  /** See `OperationRequest`. A client that accepts none has been refused. */
  get preferredType(): string {
    const { request, served } = this.#exchange
    return request.accepts(served?.operation.successTypes ?? []) || ''
  }

  /** See `TenantRequest.reserve`. */
  get reserve(): (bytes: number) => Promise<void> | undefined {
    return (bytes) => this.#exchange.tenant?.reserve(bytes)
  }

  /** @throws {NotPermitted} unless the credential has the scope, one of the operation's `x-conditional-scopes`. */
  requireScope(scope: string): void {
    if (!this.hasScope(scope)) throw new NotPermitted()
  }

  hasScope(scope: string): boolean {
    const { scopes, served } = this.#exchange
    if (!served?.operation.conditionalScopes.includes(scope)) throw new Error(`The scope ${scope} is not documented.`)
    return scopes === null || scopes.includes(scope)
  }

  /** Lets other large requests continue while this one waits for something. */
  unlockProcessing(): void {
    this.#exchange.tenant?.unlockProcessing()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Call it once. See `OperationRequest`. */
  whileAuthenticated(): AbortSignal {
    const { response } = this.#exchange
    if (!response.destroyed) response.once('close', this.#checkCredential(this.#controller))
    return this.signal
  }

  /** Created on first use: an AbortController and its listener cost 6 µs, and most handlers need none. */
  get #controller(): AbortController {
    this.#abort ??= abortOnClose(this.#exchange)
    return this.#abort
  }
}

function abortOnClose({ response }: Exchange): AbortController {
  const abort = new AbortController()
  if (response.destroyed) abort.abort()
  response.once('close', () => abort.abort())
  return abort
}
