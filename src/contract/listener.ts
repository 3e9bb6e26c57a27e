/** Listens for HTTP on one port, cuts off slow and malformed clients, and stops without losing a request. */

import { randomUUID } from 'node:crypto'
import { createServer, IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { hasRawBody } from './body.ts'
import { type HttpProblemKind, httpProblemTypes, problemBody } from './problem.ts'

export interface ListenOptions {
  host: string
  /** 0 for any free port. */
  port: number
  /** The settings that change the port and the address, for error messages. */
  name: string
  hostName?: string
  limits?: Partial<typeof limits>
}

export interface Listener {
  url: string
  /** Makes all further responses ask clients to close their connections. Requests are still served. */
  drain(): void
  /**
   * Drains, accepts no more connections, ends event streams, and waits for requests in flight and on their way.
   * Connections that remain after `graceSeconds` are cut.
   */
  stop(graceSeconds: number): Promise<void>
}

/** The address cannot be listened on; the message names it and the reason. */
export class ListenError extends Error {}

/** With Node's defaults of 60 and 300 seconds, slow clients held 200 connections to the end of a test. */
const limits = {
  headersTimeout: 10_000,
  /** For a request with its body. A raw body has one more second for each `bytesPerSecondMin`. */
  requestTimeout: 20_000,
  keepAliveTimeout: 10_000,
  /** How long a client may read nothing of a response that waits for it. */
  timeout: 30_000,
  /** How often Node checks for requests that have timed out. */
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  /** Node's own response to a request without Host has no body. */
  requireHostHeader: false,
  /** Joins several Host headers, which makes them invalid, instead of ignoring all but the first. */
  joinDuplicateHeaders: true,
}

/** A raw body that arrives more slowly is cut off, after the time of other requests. */
const bytesPerSecondMin = 64 * 1024

/** RFC 3986, section 3.2: a name, an IPv4 or a bracketed IPv6 address, with an optional port. May be empty. */
const hostPattern = /^(?:\[[0-9a-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*)(?::[0-9]*)?$/i

/** When the service stops, how long a new connection may take to begin its first request. */
const firstRequestMilliseconds = 1000

/** When the service stops, how long a connection that has had a request may take to deliver the next one. */
const nextRequestMilliseconds = 100

/** The member of `app.locals` with the hash of its document, if it serves one. */
export const documentHashLocal = 'documentHash'

/** An application of Express, or what has these members of one. */
export type Served = RequestListener & { locals: Record<string, unknown>; request: object; response: object }

/** @throws {ListenError} */
export async function listen(
  app: Served,
  { host, port, name, hostName = 'HOST', ...options }: ListenOptions,
): Promise<Listener> {
  const stopping = new AbortController()
  app.locals.stopping = stopping.signal
  /** Every open connection with its latest response. */
  const connections = new Map<Socket, ServerResponse | undefined>()
  const refuse = (error: { code?: string | undefined }, socket: Socket, latest?: ServerResponse) =>
    refuseClient(error, { socket, latest, documentHash: app.locals[documentHashLocal] as string | undefined })
  let isDraining = false
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const { socket, headers, httpVersion, url = '/' } = request
    // RFC 9112, section 3.2.
    const isValidHost = headers.host === undefined ? httpVersion !== '1.1' : hostPattern.test(headers.host)
    if (!isValidHost) return refuse({ code: 'INVALID_HOST' }, socket)
    // Node decodes `chunked` only, and would pass on the rest as if it were not encoded (RFC 9112, section 6.1).
    const encoding = headers['transfer-encoding']
    if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked')
      return refuse({ code: 'TRANSFER_ENCODING' }, socket)
    connections.set(socket, response)
    if (isDraining) response.setHeader('Connection', 'close')
    request.url = toOriginForm(url)
    app(request, response)
  }
  const { timeout, requestTimeout, ...serverOptions } = { ...limits, ...expressMessages(app), ...options.limits }
  // Node's own limit is the same for all requests.
  const server = createServer({ ...serverOptions, requestTimeout: 0 }, serve)
  const slow = new SlowRequests(requestTimeout, serverOptions.connectionsCheckingInterval)
  slow.watch(connections, (socket, response) => refuse({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket, response))
  // Node calls it after this time without any activity; the client's reading counts as activity.
  server.setTimeout(timeout, (socket: Socket) => {
    const response = connections.get(socket)
    const isWaitingForService = response && !response.writableFinished && socket.writableLength === 0
    if (!isWaitingForService) socket.destroy()
  })
  // Expectations other than 100-continue may be ignored (RFC 9110, section 10.1.1); Node would send 417 by itself.
  server.on('checkExpectation', serve)
  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket
    refuse(error, socket, connections.get(socket))
  })
  server.on('connect', (_request, socket) => {
    refuse({ code: 'CONNECT' }, socket as Socket, connections.get(socket as Socket))
  })
  await open(server, host, port, { name, hostName })
  const bound = server.address() as AddressInfo
  const drain = () => {
    isDraining = true
    for (const response of connections.values()) if (!response?.headersSent) response?.setHeader('Connection', 'close')
  }
  return {
    url: urlOf(bound.address, bound.port),
    drain,
    stop: async (graceSeconds) => {
      drain()
      await acceptPending()
      const closed = close(server, connections)
      stopping.abort()
      const cut = setTimeout(() => server.closeAllConnections(), graceSeconds * 1000)
      await closed
      clearTimeout(cut)
      slow.stop()
    },
  }
}

/** Finds requests that do not arrive in time. The time in which the service has bytes to read does not count. */
class SlowRequests {
  readonly #limit: number
  readonly #interval: number
  /** Milliseconds that the service has waited for each request, and what its connection had received before. */
  readonly #waits = new WeakMap<ServerResponse, { milliseconds: number; bytesBefore: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(limit: number, interval: number) {
    this.#limit = limit
    this.#interval = interval
  }

  watch(
    connections: ReadonlyMap<Socket, ServerResponse | undefined>,
    onLate: (socket: Socket, response: ServerResponse) => void,
  ): void {
    const check = () => {
      for (const [socket, response] of connections)
        if (response && !response.req.complete && this.#isLate(socket, response)) onLate(socket, response)
    }
    this.#timer = setInterval(check, this.#interval).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #isLate({ bytesRead }: Socket, response: ServerResponse): boolean {
    const { req: request } = response
    const wait = this.#waits.get(response) ?? { milliseconds: 0, bytesBefore: bytesRead }
    this.#waits.set(response, wait)
    if (request.readableLength === 0) wait.milliseconds += this.#interval
    const more = hasRawBody(request) ? ((bytesRead - wait.bytesBefore) / bytesPerSecondMin) * 1000 : 0
    return wait.milliseconds > this.#limit + more
  }
}

/** Resolves when all connected clients are accepted: the others are reset together with the listening socket. */
async function acceptPending(): Promise<void> {
  // The first turn may begin before the event loop has polled for connections.
  await nextTurn()
  await nextTurn()
}

/**
 * Stops accepting connections and closes idle ones. It waits briefly first, because closing a connection while a
 * request is in transit resets it. Resolves when no connection is left.
 */
async function close(server: Server, connections: ReadonlyMap<Socket, ServerResponse | undefined>): Promise<void> {
  // The HTTP server's own `close` closes idle connections at once.
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  const closeIdleSoon = () => runAfter(nextRequestMilliseconds, () => server.closeIdleConnections())
  closeIdleSoon()
  for (const [socket, response] of connections) {
    // Node does not count it as idle, because its first request has more time.
    if (!response) runAfter(firstRequestMilliseconds, () => connections.get(socket) ?? socket.destroy())
    // The head of the response was sent before draining, so the client keeps the connection.
    else if (response.headersSent && !response.closed) response.once('close', closeIdleSoon)
  }
  await closed
  // Ends Node's check for slow requests.
  server.close()
}

/** Runs the action after reading what has arrived: a busy process may have requests that it has not read. */
function runAfter(milliseconds: number, action: () => void): void {
  setTimeout(() => setImmediate(action), milliseconds).unref()
}

/** Wildcard addresses are reached by loopback. */
const loopbackOf: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** The URL by which this machine reaches a listener. */
export function urlOf(host: string, port: number | string): string {
  const reached = loopbackOf[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

const listenErrors: Record<string, string> = {
  EADDRINUSE: 'is in use by another program',
  EACCES: 'may not be used by this user',
  EADDRNOTAVAIL: 'is not an address of this machine',
  ENOTFOUND: 'is not an address of this machine',
}

function open(
  server: Server,
  host: string,
  port: number,
  { name, hostName }: { name: string; hostName: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = listenErrors[error.code ?? ''] ?? `cannot be used (${error.message})`
      reject(
        new ListenError(`${host}:${port} ${reason}: set ${name} to another port, or ${hostName} to another address.`),
      )
    })
    server.listen(port, host, resolve)
  })
}

/** Servers must accept the absolute form (RFC 9112, section 3.2.2); Express expects the origin form. */
function toOriginForm(target: string): string {
  if (target.startsWith('/')) return target
  const url = URL.parse(target)
  return url ? url.pathname + url.search : '/'
}

// Responds to clients whose requests are malformed or late, and closes their connections.

interface RefusedConnection {
  socket: Socket
  /** The connection's latest response. */
  latest?: ServerResponse | undefined
  documentHash: string | undefined
}

/** Responds to a request that is malformed or late, if the connection can still take a response. */
function refuseClient({ code = '' }: { code?: string | undefined }, connection: RefusedConnection): void {
  const { socket, latest, documentHash } = connection
  const isResponding = latest?.headersSent && !latest.writableFinished
  if (!socket.writable || code === 'ECONNRESET' || isResponding) {
    socket.destroy()
    return
  }
  const { kind, detail, headers = [] } = clientErrors[code] ?? malformed
  const requestId = randomUUID()
  const { status, title } = httpProblemTypes[kind]
  const body = JSON.stringify(problemBody(httpProblemTypes, { kind, detail }, requestId))
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `X-Request-Id: ${requestId}`,
    ...(documentHash ? [`X-Document-Hash: ${documentHash}`] : []),
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
    ...headers,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  // `end` would leave closing the connection to the client.
  socket.destroySoon()
}

type ClientError = { kind: HttpProblemKind; detail: string; headers?: string[] }

const malformed: ClientError = { kind: 'invalid-request', detail: 'The request does not follow HTTP/1.1 (RFC 9112).' }

/** By the code of Node's error, or of `listen`. */
const clientErrors: Record<string, ClientError> = {
  INVALID_HOST: { kind: 'invalid-request', detail: 'The request must have exactly one Host header, and a valid one.' },
  TRANSFER_ENCODING: { kind: 'invalid-request', detail: 'The only Transfer-Encoding that is accepted is chunked.' },
  // Its target is another host, which has no methods here (RFC 9110, section 9.3.6).
  CONNECT: { kind: 'method-not-allowed', detail: 'This service is not a proxy.', headers: ['Allow: '] },
  ERR_HTTP_REQUEST_TIMEOUT: { kind: 'request-timeout', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: { kind: 'header-fields-too-large', detail: "The request's headers are larger than 16 KiB." },
}

// Requests and responses that have Express's prototypes from the start. Express sets the prototypes of both at each request,
// after which V8 accesses their members more slowly: 3 µs of CPU per request. Setting the prototype that an object has
// changes nothing (ECMA-262, OrdinarySetPrototypeOf). The options of `createServer` for other classes are documented.

type Messages = typeof IncomingMessage | typeof ServerResponse

/** Options of `createServer`. */
function expressMessages(app: Served) {
  return {
    IncomingMessage: withPrototype(IncomingMessage, app.request),
    ServerResponse: withPrototype(ServerResponse, app.response),
  }
}

function withPrototype<Message extends Messages>(base: Message, prototype: object): Message {
  const derived = function (this: object, ...values: unknown[]) {
    return Reflect.construct(base, values, derived)
  } as unknown as Message
  return Object.defineProperty(derived, 'prototype', { value: prototype })
}
