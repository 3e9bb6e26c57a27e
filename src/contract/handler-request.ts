/** What a handler is given of an exchange: the `OperationRequest` of handler.ts, without an operation's types. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Exchange } from './exchange.ts'

export class HandlerRequest {
  readonly path: object
  readonly query: object
  readonly header: Record<string, unknown> = {}
  readonly body: unknown
  readonly principal: unknown
  readonly requestId: string
  readonly stillAuthenticated: () => Promise<boolean>
  readonly #exchange: Exchange
  #abort: AbortController | undefined = undefined

  constructor(exchange: Exchange, stillAuthenticated: () => Promise<boolean>) {
    const { parameters, served } = exchange
    this.#exchange = exchange
    this.path = parameters?.path ?? {}
    this.query = parameters?.query ?? {}
    for (const { in: place, name } of served?.operation.parameters ?? []) {
      const value = place === 'header' ? parameters?.header[name.toLowerCase()] : undefined
      if (value !== undefined) this.header[name] = value
    }
    this.body = exchange.body?.value
    this.principal = exchange.principal
    this.requestId = exchange.requestId
    this.stillAuthenticated = stillAuthenticated
  }

  /** As they were sent, for whoever serves more than the document names. */
  get headers(): IncomingHttpHeaders {
    return this.#exchange.request.headers
  }

  /** Made when it is first asked for: an AbortController and its listener cost 6 µs, and most handlers need none. */
  get signal(): AbortSignal {
    this.#abort ??= abortAtClose(this.#exchange)
    return this.#abort.signal
  }
}

function abortAtClose({ response }: Exchange): AbortController {
  const abort = new AbortController()
  if (response.destroyed) abort.abort()
  response.once('close', () => abort.abort())
  return abort
}
