/** Listens for HTTP on one port, cuts off clients that are slow or do not speak HTTP, and stops without losing a request. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Express } from 'express'
import { type ProblemKind, problemBody, problemKinds } from './problem.ts'

export interface ListenOptions {
  host: string
  /** 0 for any free port. */
  port: number
  /** What the port is for, in words that tell a person where to change it. */
  name: string
}

export interface Listener {
  url: string
  /**
   * Accepts nothing more, ends event streams, and waits for requests in flight; connections that remain after
   * `graceSeconds` are cut.
   */
  stop(graceSeconds: number): Promise<void>
}

/** An address that cannot be listened on; the message says which, and why. */
export class ListenRefused extends Error {}

/** Slow clients held 200 connections to the end of a test with Node's own limits of 60 and 300 seconds. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 10_000,
  /** How often Node looks for requests beyond their time. */
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
}

export async function listen(app: Express, { host, port, name }: ListenOptions): Promise<Listener> {
  const stopping = new AbortController()
  app.locals.stopping = stopping.signal
  const server = createServer(limits, app)
  server.on('clientError', refuseClient)
  await opened(server, host, port, name)
  server.on('request', (_request, response: ServerResponse) => {
    if (stopping.signal.aborted) response.setHeader('Connection', 'close')
  })
  const address = server.address() as AddressInfo
  const urlHost = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    url: `http://${urlHost}:${address.port}`,
    stop: async (graceSeconds) => {
      stopping.abort()
      const closed = new Promise((resolve) => server.close(resolve))
      const cut = setTimeout(() => server.closeAllConnections(), graceSeconds * 1000)
      await closed
      clearTimeout(cut)
    },
  }
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
      reject(new ListenRefused(`${host}:${port} ${reason}: set ${name} to another port, or HOST to another address.`))
    })
    server.listen(port, host, resolve)
  })
}

/** Answers what is not HTTP, or not in time, as far as the connection still takes an answer. */
function refuseClient(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const kinds: Record<string, ProblemKind> = {
    ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
    HPE_HEADER_OVERFLOW: 'header-fields-too-large',
  }
  const kind = kinds[error.code ?? ''] ?? 'invalid-request'
  const requestId = randomUUID()
  const { status, title } = problemKinds[kind]
  const body = JSON.stringify(problemBody({ kind, detail: details[kind] ?? title }, requestId))
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const details: Partial<Record<ProblemKind, string>> = {
  'request-timeout': 'The request did not arrive whole in time.',
  'header-fields-too-large': "The request's headers are larger than 16 KiB.",
  'invalid-request': 'The request is not HTTP.',
}
