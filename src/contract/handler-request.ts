/** What a handler is given of an exchange: the `OperationRequest` of handler.ts, without an operation's types. */
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

  /** Made when it is first asked for: an AbortController and its listener cost 3 µs, and most handlers need none. */
  get signal(): AbortSignal {
    this.#abort ??= this.#connectionAbort()
    return this.#abort.signal
  }

  #connectionAbort(): AbortController {
    const abort = new AbortController()
    const { response, served } = this.#exchange
    const onAbort = () => abort.abort()
    if (response.destroyed) onAbort()
    response.once('close', onAbort)
    // Other answers are waited for when the service stops; a stream would not end by itself.
    const stopping = response.app.locals.stopping as AbortSignal | undefined
    if (stopping && served?.operation.successTypes.includes('text/event-stream')) {
      if (stopping.aborted) onAbort()
      stopping.addEventListener('abort', onAbort)
      response.once('close', () => stopping.removeEventListener('abort', onAbort))
    }
    return abort
  }
}
