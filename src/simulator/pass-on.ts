/** Passes HTTP requests on to the thread of their world, and its responses back, as they are. */
import { Agent, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'

type PassOn = (request: IncomingMessage, response: ServerResponse, url: string) => void

/** Headers for one connection alone (RFC 9110, section 7.6.1), and what the server has done with the request already. */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'expect'])

/**
 * Idle connections are closed before a world closes them (`keepAliveTimeout` of its listeners): a request that was sent on one
 * at that moment would be reset. It could not be sent again, since a fault that was asked for may have dropped it.
 */
const idleMillisecondsDefault = 4000

/** @param idleMilliseconds how long a connection to a world is kept without a request. */
export function createPassOn(idleMilliseconds = idleMillisecondsDefault): { passOn: PassOn; close(): void } {
  const agent = new Agent({ keepAlive: true, timeout: idleMilliseconds })
  const passOn: PassOn = (request, response, url) => {
    const { hostname: host, port } = new URL(url)
    const options = { host, port, agent, setHost: false, method: request.method, path: request.url }
    const sent = sendRequest({ ...options, headers: requestHeaders(request, host) })
    // A request without a body stays one.
    sent.useChunkedEncodingByDefault = false
    sent.on('response', (received) => respond(received, response))
    // The connection was dropped, or the world has ended.
    sent.on('error', () => {
      if (!response.writableEnded) request.socket.destroy()
    })
    response.on('close', () => {
      if (!response.writableFinished) sent.destroy()
    })
    request.pipe(sent)
  }
  return { passOn, close: () => agent.destroy() }
}

function requestHeaders(
  { rawHeaders, headers: read }: IncomingMessage,
  host: string,
): Record<string, string | string[]> {
  const headers: Record<string, string[]> = {}
  for (const [name, value] of pairs(rawHeaders)) {
    const key = name.toLowerCase()
    if (ofConnection.has(key) || key === 'host') continue
    headers[key] ??= []
    headers[key].push(value)
  }
  // HTTP/1.0 has none.
  return { host: read.host ?? host, ...headers }
}

function respond(received: IncomingMessage, response: ServerResponse): void {
  const isKept = (name: string, value: string) =>
    name === 'connection' ? value === 'close' : name !== 'keep-alive' && name !== 'transfer-encoding'
  const headers = pairs(received.rawHeaders).filter(([name, value]) => isKept(name.toLowerCase(), value))
  response.writeHead(received.statusCode ?? 500, received.statusMessage, headers.flat())
  // A client that follows events waits for the head.
  if (received.headers['content-type'] === 'text/event-stream') response.flushHeaders()
  received.on('error', () => response.destroy())
  received.pipe(response)
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] as string] as [string, string]] : [],
  )
}
