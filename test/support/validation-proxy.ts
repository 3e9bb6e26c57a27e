/**
 * Prism as a validation proxy between a test and a service: it looks at every request and every answer with the
 * document in its hand. Bytes are passed on as they come, which Prism's own forwarding does not do, so that event
 * streams stay live: Prism is given each exchange when it is over.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInstance, getHttpOperationsFromSpec, type IHttpRequest, type IHttpResponse } from '@stoplight/prism-http'
import type { Logger } from 'pino'

export interface Violation {
  /** Method and path, and the status of the answer. */
  exchange: string
  /** Begins with `request` or `response`. */
  location: string[]
  message: string
}

export interface ValidationProxy {
  url: string
  /** What Prism has found in the exchanges that are over, since it was asked last. */
  violations(): Promise<Violation[]>
  stop(): void
}

type Validate = (request: IHttpRequest, response: IHttpResponse) => Promise<Violation[]>

export async function startValidationProxy(document: string, upstream: string): Promise<ValidationProxy> {
  const validate = await validation(document, upstream)
  const inFlight = new Set<Promise<void>>()
  let found: Promise<Violation[]>[] = []
  // Clients go by the service's Keep-Alive, which is passed on.
  const server = createServer({ requireHostHeader: false, keepAliveTimeout: 3_600_000 }, (incoming, outgoing) => {
    const answered = passOn(incoming, outgoing, upstream, (exchange) => found.push(validate(...exchange)))
    inFlight.add(answered)
    answered.then(() => inFlight.delete(answered))
  })
  // As the service has it; Node would answer an unknown expectation by itself.
  server.on('checkExpectation', (...exchange) => server.emit('request', ...exchange))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async violations() {
      await Promise.all(inFlight)
      const all = await Promise.all(found)
      found = []
      return all.flat()
    },
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/**
 * Passes both bodies on as they come. Resolves when there is nothing more to wait for: the answer is whole or was cut,
 * or it is an event stream, which goes on for as long as somebody follows it.
 *
 * @param over is called with what was sent and answered, when it is known.
 */
function passOn(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  upstream: string,
  over: (exchange: [IHttpRequest, IHttpResponse]) => void,
): Promise<void> {
  const { hostname, port } = new URL(upstream)
  const { method, url = '', rawHeaders: headers } = incoming
  const sent = collected(incoming)
  return new Promise((resolve) => {
    const forwarded = request({ hostname, port, method, path: url, headers: headers as never, agent: false })
    forwarded.on('response', (answer) => {
      const isStream = answer.headers['content-type'] === 'text/event-stream'
      if (isStream) resolve()
      const received = collected(answer)
      outgoing.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
      outgoing.flushHeaders()
      answer.on('data', (part) => outgoing.write(part))
      answer.on('close', () => {
        if (answer.complete || isStream) over([requestOf(incoming, sent()), responseOf(answer, received())])
        resolve()
        if (answer.complete) outgoing.end()
        else outgoing.destroy()
      })
    })
    forwarded.on('error', () => {
      outgoing.destroy()
      resolve()
    })
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
}

function collected(message: IncomingMessage): () => Buffer {
  const parts: Buffer[] = []
  message.on('data', (part) => parts.push(part))
  return () => Buffer.concat(parts)
}

function requestOf({ method = '', url = '', headers }: IncomingMessage, body: Buffer): IHttpRequest {
  const { pathname: path, searchParams } = new URL(url, 'http://service')
  const query = Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => [name, oneOrAll(searchParams.getAll(name))]),
  )
  const content = body.length > 0 ? { body: parsed(body, headers['content-type']) } : {}
  return { method: method.toLowerCase() as 'get', url: { path, query }, headers: flat(headers), ...content }
}

function responseOf({ statusCode = 0, headers }: IncomingMessage, body: Buffer): IHttpResponse {
  return { statusCode, headers: flat(headers), body: parsed(body, headers['content-type']) }
}

const oneOrAll = ([first = '', ...others]: string[]) => (others.length === 0 ? first : [first, ...others])

function flat(headers: IncomingMessage['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}

/** As Prism's own server reads a body. */
function parsed(body: Buffer, mediaType = ''): unknown {
  if (body.length === 0 || !/^application\/(.+\+)?json/.test(mediaType)) return body.toString()
  try {
    return JSON.parse(body.toString())
  } catch {
    return body.toString()
  }
}

const silent = () => {}
const logger = {
  ...{ trace: silent, debug: silent, info: silent, success: silent, warn: silent, error: silent },
  child: () => logger,
} as unknown as Logger

async function validation(document: string, upstream: string): Promise<Validate> {
  const operations = await getHttpOperationsFromSpec(`generated/${document}/document.json`)
  const checks = { checkSecurity: true, validateRequest: true, validateResponse: true, errors: false }
  const config = {
    ...checks,
    isProxy: true,
    upstream: new URL(upstream),
    upstreamProxy: undefined,
    mock: { dynamic: false },
  }
  const answers = new WeakMap<IHttpRequest, IHttpResponse>()
  const prism = createInstance(config as never, {
    logger: logger as never,
    // Where Prism would call the service, there is an answer already.
    forward:
      ({ data }) =>
      () =>
      async () => ({ _tag: 'Right', right: answers.get(data) as IHttpResponse }),
  })
  return async (request, response) => {
    answers.set(request, response)
    const result = await prism.request(request, operations)()
    const exchange = `${request.method.toUpperCase()} ${request.url.path} ${response.statusCode}`
    if (result._tag === 'Left') return [{ exchange, location: ['prism'], message: result.left.message }]
    const { input, output } = result.right.validations
    return [
      ...input.map(({ path = [], message }) => ({ exchange, location: ['request', ...path.map(String)], message })),
      ...output.map(({ path = [], message }) => ({ exchange, location: ['response', ...path.map(String)], message })),
    ]
  }
}
