/** Sends requests byte by byte, including those that an ordinary client refuses to send or corrects. */
import { type Agent, request } from 'node:http'
import { connect } from 'node:net'
import type { ReceivedResponse } from './document.ts'

export interface RawRequest {
  method: string
  /** Exactly as in the request line. */
  path: string
  /** Alternating names and values; a name may repeat. */
  headers?: string[]
  body?: string | Buffer
  /** Sends the body in chunks, without a Content-Length. */
  chunked?: boolean
}

/** Sends the request, on a new connection unless an agent provides one, and reads the whole response. */
export function sendRaw(
  url: string,
  { method, path, headers = [], body, chunked = false }: RawRequest,
  agent: Agent | false = false,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url)
    // Without a length, Node announces a chunked body for some methods even if there is none.
    const length = chunked ? [] : ['Content-Length', String(Buffer.byteLength(body ?? ''))]
    const framing = chunked ? ['Transfer-Encoding', 'chunked'] : length
    const options = { hostname, port, method, path, agent, headers: ['Host', host, ...headers, ...framing] }
    const sent = request(options as object, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
    })
    sent.on('error', reject)
    if (body !== undefined) sent.write(body)
    sent.end()
  })
}

/**
 * Writes the text to a connection, and returns the response when the service has closed it. `until` closes the
 * connection earlier: right after the text, or after a response with that status.
 */
export function sendText(url: string, text: string, until?: 'end' | number): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => {
      // As bytes: malformed HTTP need not be text.
      if (until === 'end') socket.end(text, 'latin1')
      else socket.write(text, 'latin1')
    })
    let received = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      received += part
      if (received.startsWith(`HTTP/1.1 ${until} `) && received.endsWith('}')) socket.end()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(parsed(received)))
  })
}

function parsed(received: string): ReceivedResponse {
  const [head = '', ...rest] = received.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => line.split(/: (.*)/s).slice(0, 2)).map(([name, value]) => [name?.toLowerCase(), value]),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') }
}
