/** Responds to clients whose requests are malformed or late, and closes their connections. */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type HttpProblemKind, httpProblemTypes, problemBody } from './problem.ts'

interface RefusedConnection {
  socket: Socket
  /** The connection's latest response. */
  latest?: ServerResponse | undefined
  documentHash: string | undefined
}

/** Responds to a request that is malformed or late, if the connection can still take a response. */
export function refuseClient({ code = '' }: { code?: string | undefined }, connection: RefusedConnection): void {
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
  // Its target is another host, which has no methods here (RFC 9110, section 9.3.6).
  CONNECT: { kind: 'method-not-allowed', detail: 'This service is not a proxy.', headers: ['Allow: '] },
  ERR_HTTP_REQUEST_TIMEOUT: { kind: 'request-timeout', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: { kind: 'header-fields-too-large', detail: "The request's headers are larger than 16 KiB." },
}
