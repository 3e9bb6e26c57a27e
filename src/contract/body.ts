/** Reads the body of a request: media type, size, and JSON. A raw body is left to the handler. */
import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import type { Operation } from '../openapi/served-operations.ts'
import type { RawBody } from './handler.ts'
import { parseJson } from './i-json.ts'
import { invalidBody, Problem } from './problem.ts'
import type { TenantRequest } from './tenant-limits.ts'

export interface Body {
  /** One of the operation's media types. */
  mediaType: string
  /** The JSON value, or a `RawBody`. */
  value: unknown
  /** Size as sent; 0 for a raw body. */
  bytes: number
}

/** Bodies and responses from this size on are large; see tenant-limits.ts. */
export const largeBytesMin = 32 * 1024

/** The client closed the connection before it had sent the whole body. */
export class ClientGone extends Error {}

/** Reads the body; `undefined` when there is none and the document allows that. @throws {Problem | ClientGone} */
export async function readBody(
  { body }: Operation,
  request: IncomingMessage,
  tenant?: TenantRequest,
): Promise<Body | undefined> {
  const { headers } = request
  const declaredBytes = Number(headers['content-length'] ?? 0)
  if (body?.isRaw) return { mediaType: '*/*', value: openRawBody(request, body.bytesMax), bytes: 0 }
  const isSent = declaredBytes > 0 || (headers['transfer-encoding'] !== undefined && (await hasContent(request)))
  if (!body) {
    if (isSent) throw invalidBody('', 'This operation takes no body.')
    return undefined
  }
  if (isSent) {
    const mediaType = documentedType(body.mediaTypes, headers['content-type'])
    if (!mediaType || (headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupported(body.mediaTypes)
    if (declaredBytes > body.bytesMax) throw tooLarge(body.bytesMax)
    const bytes = await readBytes(request, body.bytesMax, declaredBytes || body.bytesMax, tenant)
    if (tenant?.hasReservedBytes) await tenant.lockProcessing()
    const value = parseJson(bytes)
    if (value !== undefined) return { mediaType, value, bytes: bytes.length }
  }
  if (body.required) throw invalidBody('', 'is required')
  return undefined
}

const mediaTypeLengthMax = 255
const rawRequests = new WeakSet<IncomingMessage>()

/** Whether the body is read while it arrives, so that it may take longer than others. */
export function hasRawBody(request: IncomingMessage): boolean {
  return rawRequests.has(request)
}

/** The body, which is read while it arrives. @throws {Problem} */
export function openRawBody(request: IncomingMessage, bytesMax: number): RawBody {
  const { 'content-type': type = 'application/octet-stream', 'content-encoding': coding, ...headers } = request.headers
  const mediaType = parseMediaType(type)
  if (!mediaType || (coding ?? 'identity') !== 'identity') {
    const detail = 'Send the body with a valid media type, and without a content coding.'
    throw new Problem({ kind: 'unsupported-media-type', detail }, { Connection: 'close' })
  }
  if (mediaType.startsWith('multipart/form-data')) {
    const detail =
      'Send the file itself as the body, with its own media type: with curl, --data-binary @file and not -F.'
    throw new Problem({ kind: 'unsupported-media-type', detail }, { Connection: 'close' })
  }
  const length = headers['content-length']
  const declaredBytes = length === undefined ? undefined : Number(length)
  if (declaredBytes !== undefined && declaredBytes > bytesMax) throw tooLarge(bytesMax)
  rawRequests.add(request)
  return { mediaType, declaredBytes, [Symbol.asyncIterator]: () => readChunks(request, bytesMax) }
}

function parseMediaType(header: string): string | undefined {
  try {
    const parsed = new MIMEType(header).toString()
    return parsed.length <= mediaTypeLengthMax ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Reads no faster than the consumer takes the chunks. @throws {Problem | ClientGone} */
async function* readChunks(request: IncomingMessage, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    // A consumer that stops earlier still sends a response.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length
      if (bytes > bytesMax) throw tooLarge(bytesMax)
      yield chunk
    }
  } catch (error) {
    throw error instanceof Problem ? error : new ClientGone()
  }
}

/** Whether a chunked body has any bytes. Some clients send an empty one when they have no body. */
function hasContent(request: IncomingMessage): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const answer = () => resolve(request.readableLength > 0)
    const leave = () => reject(new ClientGone())
    if (request.destroyed) leave()
    request.once('readable', answer).once('end', answer).once('error', leave)
  })
}

/** The documented media type that the header names. Its only parameter that counts is `charset`, which must be UTF-8. */
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

/**
 * Unlike `express.raw`, stops reading at the limit instead of reading an oversized body to its end.
 *
 * @param expected bytes to reserve for the tenant if the body is large.
 */
function readBytes(
  request: IncomingMessage,
  bytesMax: number,
  expected: number,
  tenant: TenantRequest | undefined,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let isLarge = false
    const append = (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > bytesMax) refuse(tooLarge(bytesMax))
      else if (bytes >= largeBytesMin && !isLarge) {
        isLarge = true
        const reserved = tenant?.reserveBytes(expected)
        if (!reserved) return
        // Until then the client waits: what it sends stays outside the process.
        request.pause()
        reserved.then(() => request.resume(), refuse)
      }
    }
    const refuse = (error: unknown) => {
      // The rest is discarded.
      request.off('data', append).resume()
      reject(error)
    }
    request.on('data', append)
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes)))
    request.on('error', () => reject(new ClientGone()))
  })
}

/** Closes the connection: otherwise the rest of the body would have to be read before the next request. */
function tooLarge(bytesMax: number): Problem {
  const detail = `The body may have at most ${bytesMax} bytes.`
  return new Problem({ kind: 'content-too-large', detail }, { Connection: 'close' })
}

function unsupported(mediaTypes: string[]): Problem {
  const detail = `Send the body as ${mediaTypes.join(' or ')}, in UTF-8 and without a content coding.`
  return new Problem({ kind: 'unsupported-media-type', detail })
}
