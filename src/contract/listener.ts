/** Listens for HTTP on one port, cuts off clients that are slow or do not speak HTTP, and stops without losing a request. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Express } from 'express'
import { type ProblemKind, problemBody, problemKinds } from './problem.ts'

export interface ListenOptions {
  host: string
  /** 0 for any free port. */
  port: number
  /** What the port is for, in words that tell a person where to change it. */
  name: string
  /** Other limits than the service's own. */
  limits?: Partial<typeof limits>
}

export interface Listener {
  url: string
  /** From now on each answer tells its client to use its connection no more; everything is still served. */
  drain(): void
  /**
   * Drains, accepts no more connections, ends event streams, and waits for requests in flight and those on their way;
   * connections that remain after `graceSeconds` are cut.
   */
  stop(graceSeconds: number): Promise<void>
}

/** An address that cannot be listened on; the message says which, and why. */
export class ListenError extends Error {}

/** Slow clients held 200 connections to the end of a test with Node's own limits of 60 and 300 seconds. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 10_000,
  /** How often Node looks for requests beyond their time. */
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  /** Node's own refusal of a request without Host has no body. */
  requireHostHeader: false,
}

/** Then act, when what has arrived has been read: a process that was busy for so long has not read it yet. */
function afterMilliseconds(milliseconds: number, act: () => void): void {
  setTimeout(() => setImmediate(act), milliseconds).unref()
}

/** How long a connection that has had no request may still begin its first when the service stops. */
const firstRequestMilliseconds = 1000

/** How long a request may be on its way, on a connection that has been used, when the service stops. */
const nextRequestMilliseconds = 100

/** Where an app has the hash of its document (`Reporting.documentHash`), if it has one. */
export const documentHashLocal = 'documentHash'

export async function listen(app: Express, { host, port, name, ...options }: ListenOptions): Promise<Listener> {
  const stopping = new AbortController()
  app.locals.stopping = stopping.signal
  /** Every open connection, with its latest answer. */
  const connections = new Map<Socket, ServerResponse | undefined>()
  const documentHash: string | undefined = app.locals[documentHashLocal]
  let isDraining = false
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const { socket, headers, httpVersion, url = '/' } = request
    // RFC 9112, section 3.2.
    if (headers.host === undefined && httpVersion === '1.1')
      return refuseClient({ code: 'NO_HOST' }, { socket, documentHash })
    connections.set(socket, response)
    if (isDraining) response.setHeader('Connection', 'close')
    request.url = originForm(url)
    app(request, response)
  }
  const server = createServer({ ...limits, ...options.limits }, serve)
  // Expectations other than 100-continue may be ignored (RFC 9110, section 10.1.1); Node would answer 417 by itself.
  server.on('checkExpectation', serve)
  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket
    refuseClient(error, { socket, latest: connections.get(socket), documentHash })
  })
  await opened(server, host, port, name)
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
      await accepted()
      const closed = closing(server, connections)
      stopping.abort()
      const cut = setTimeout(() => server.closeAllConnections(), graceSeconds * 1000)
      await closed
      clearTimeout(cut)
    },
  }
}

/** Resolves when whoever has connected is known: those whom nobody has accepted are reset with the listening socket. */
async function accepted(): Promise<void> {
  // The first may come before the event loop has looked for connections.
  await nextTurn()
  await nextTurn()
}

/**
 * Accepts no more connections, and closes those that are idle: not at once, because a request may be on its way, which
 * a connection that is closed under it answers with a reset. Resolves when none is left.
 */
async function closing(server: Server, connections: ReadonlyMap<Socket, ServerResponse | undefined>): Promise<void> {
  // The HTTP server's own `close` begins with closing idle connections.
  const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve))
  const closeIdleSoon = () => afterMilliseconds(nextRequestMilliseconds, () => server.closeIdleConnections())
  closeIdleSoon()
  for (const [socket, response] of connections) {
    // Not idle for Node, which gives a first request more time.
    if (!response) afterMilliseconds(firstRequestMilliseconds, () => connections.get(socket) ?? socket.destroy())
    // Its head has promised to keep the connection.
    else if (response.headersSent && !response.closed) response.once('close', closeIdleSoon)
  }
  await closed
  // Node looks for slow requests until it is closed by this.
  server.close()
}

/** What listens on all addresses is reached on this machine's own. */
const ownAddress: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Where this machine reaches what listens on the host and port. */
export function urlOf(host: string, port: number | string): string {
  const reached = ownAddress[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

function opened(server: Server, host: string, port: number, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reasons: Record<string, string> = {
        EADDRINUSE: 'is in use by another program',
        EACCES: 'may not be used by this user',
        EADDRNOTAVAIL: 'is not an address of this machine',
        ENOTFOUND: 'is not an address of this machine',
      }
      const reason = reasons[error.code ?? ''] ?? `cannot be used (${error.message})`
      reject(new ListenError(`${host}:${port} ${reason}: set ${name} to another port, or HOST to another address.`))
    })
    server.listen(port, host, resolve)
  })
}

/** The absolute form, which servers must take (RFC 9112, section 3.2.2), as the origin form, which Express takes. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const url = URL.parse(target)
  return url ? url.pathname + url.search : '/'
}

interface Refused {
  socket: Socket
  /** The connection's latest answer. */
  latest?: ServerResponse | undefined
  documentHash: string | undefined
}

/** Answers what is not HTTP, or not in time, as far as the connection still takes an answer. */
function refuseClient({ code = '' }: { code?: string | undefined }, { socket, latest, documentHash }: Refused): void {
  const isAnswering = latest?.headersSent && !latest.writableFinished
  if (!socket.writable || code === 'ECONNRESET' || isAnswering) {
    socket.destroy()
    return
  }
  const kinds: Record<string, ProblemKind> = {
    ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
    HPE_HEADER_OVERFLOW: 'header-fields-too-large',
  }
  const kind = kinds[code] ?? 'invalid-request'
  const requestId = randomUUID()
  const { status, title } = problemKinds[kind]
  const body = JSON.stringify(problemBody({ kind, detail: details[kind] ?? title }, requestId))
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `X-Request-Id: ${requestId}`,
    ...(documentHash ? [`X-Document-Hash: ${documentHash}`] : []),
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  // Not `end`, which leaves it to the client when the connection is closed.
  socket.destroySoon()
}

const details: Partial<Record<ProblemKind, string>> = {
  'request-timeout': 'The request did not arrive whole in time.',
  'header-fields-too-large': "The request's headers are larger than 16 KiB.",
  'invalid-request': 'The request does not follow HTTP/1.1 (RFC 9112).',
}
