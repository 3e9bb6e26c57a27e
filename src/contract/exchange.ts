/** One request and its answer on their way through the stages: what each stage has found out for the next ones. */
import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import type { Operation } from '../openapi/served-operations.ts'
import type { AnswerValidation } from './answer-validation.ts'
import type { Body } from './body.ts'
import type { CredentialReader } from './credential.ts'
import type { ServerSentEvent } from './handler.ts'
import type { ParameterReader, Parameters } from './parameters.ts'
import type { ProblemDetail } from './problem.ts'
import type { RequestValidation } from './request-validation.ts'

/** What serves one operation; built at start. */
export interface ServedOperation {
  operation: Operation
  credential: CredentialReader
  /** The bodies of 401 and 403, as the document has them. */
  refusals: { 401: string; 403: string }
  readParameters: ParameterReader
  validate: RequestValidation
  answers: AnswerValidation
  run: LooseHandler
}

/** A handler whose types are not told apart any more; callers have to do with `Handler` in handler.ts. */
export type LooseHandler = (request: object) => Promise<LooseAnswer>

/** An answer of any operation, with at most one of `body`, `problem`, `text`, `events` and `bytes`. */
export interface LooseAnswer {
  status: number
  headers?: Record<string, unknown>
  body?: unknown
  problem?: ProblemDetail
  text?: string
  events?: AsyncIterable<ServerSentEvent>
  bytes?: Uint8Array
  /** Of `bytes`. */
  mediaType?: string
}

/** What is told of an exchange when it has ended. */
export interface Reporting<P> {
  log: Logger
  /** Sent with every answer as `X-Document-Hash`. */
  documentHash?: string
  /** What of the principal stands in the log. */
  describe?(principal: P): Record<string, string>
  /** Called once for each exchange; `operationId` is empty when the path is not documented. */
  observe?(operationId: string, method: string, status: number, seconds: number): void
}

/** Stands in logs and metrics for a client that closed the connection before its answer, as in nginx. */
export const clientClosed = 499

export class Exchange<P = unknown> {
  readonly requestId = randomUUID()
  readonly request: Request
  readonly response: Response
  /** Undefined as long as, or when, the request has no operation. */
  served: ServedOperation | undefined = undefined
  /** Path parameters as they stand in the URL. */
  pathValues: string[] = []
  credential = ''
  principal: P | undefined = undefined
  body: Body | undefined = undefined
  parameters: Parameters | undefined = undefined
  readonly #reporting: Reporting<P>
  readonly #startedAt = performance.now()

  constructor(request: Request, response: Response, reporting: Reporting<P>) {
    this.request = request
    this.response = response
    this.#reporting = reporting
  }

  get documentHash(): string | undefined {
    return this.#reporting.documentHash
  }

  /** Logs and counts the exchange; to be called once, when nothing more will be sent. */
  end(status: number) {
    const { log, describe, observe } = this.#reporting
    const { method } = this.request
    const operationId = this.served?.operation.id ?? ''
    const milliseconds = performance.now() - this.#startedAt
    const described = this.principal !== undefined && describe?.(this.principal)
    const durationMs = Math.round(milliseconds * 1000) / 1000
    log.info({ requestId: this.requestId, operationId, method, status, durationMs, ...described }, 'request')
    observe?.(operationId, method, status, milliseconds / 1000)
  }

  /** Logs a fault of the service. */
  fault(message: string, details: object) {
    const operationId = this.served?.operation.id ?? ''
    this.#reporting.log.error({ requestId: this.requestId, operationId, ...details }, message)
  }
}
