/** Reads the body of a request: its media type, its size, its bytes, and the JSON in them. */
import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import type { Operation } from '../openapi/served-operations.ts'
import { parseJson, refused } from './json.ts'
import { Problem } from './problem.ts'

export interface Body {
  /** One of the operation's media types. */
  mediaType: string
  value: unknown
  /** How many there were. */
  bytes: number
}

/** The client closed the connection before it had sent the whole body. */
export class ClientGone extends Error {}

/** The body, or `undefined` when there is none and the document allows that. Rejects with a Problem or ClientGone. */
export async function readBody({ body }: Operation, request: IncomingMessage): Promise<Body | undefined> {
  const { headers } = request
  const declaredBytes = Number(headers['content-length'] ?? 0)
  const isSent = declaredBytes > 0 || headers['transfer-encoding'] !== undefined
  if (!body) {
    if (isSent) throw refused({ pointer: '', detail: 'This operation takes no body.' })
    return undefined
  }
  if (isSent) {
    const mediaType = documentedType(body.mediaTypes, headers['content-type'])
    if (!mediaType || (headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupported(body.mediaTypes)
    if (declaredBytes > body.bytesMax) throw tooLarge(body.bytesMax)
    const bytes = await bytesOf(request, body.bytesMax)
    const value = parseJson(bytes)
    if (value !== undefined) return { mediaType, value, bytes: bytes.length }
  }
  // Emptiness is decided here, from the contract: EOV decides it from the schema.
  if (body.required) throw refused({ pointer: '', detail: 'is required' })
  return undefined
}

/** The documented media type that the header names. Of its parameters only `charset` matters, and must be UTF-8. */
function documentedType(mediaTypes: string[], header: string | undefined): string | undefined {
  if (header === undefined || mediaTypes.includes(header)) return header
  try {
    const { essence, params } = new MIMEType(header)
    const isUtf8 = /^utf-?8$/i.test(params.get('charset') ?? 'utf-8')
    return isUtf8 && mediaTypes.includes(essence) ? essence : undefined
  } catch {
    return undefined
  }
}

/** Not express.raw, which reads a body that is too large to its end before it says so. */
function bytesOf(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes <= bytesMax) return
      request.off('data', take)
      reject(tooLarge(bytesMax))
    }
    request.on('data', take)
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes)))
    request.on('error', () => reject(new ClientGone()))
  })
}

/** The connection is closed because the rest of the body would otherwise have to be read before the next request. */
function tooLarge(bytesMax: number): Problem {
  const detail = `The body may have at most ${bytesMax} bytes.`
  return new Problem({ kind: 'content-too-large', detail }, { Connection: 'close' })
}

function unsupported(mediaTypes: string[]): Problem {
  const detail = `Send the body as ${mediaTypes.join(' or ')}, in UTF-8 and without a content coding.`
  return new Problem({ kind: 'unsupported-media-type', detail })
}
