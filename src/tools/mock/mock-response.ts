/** Turns Prism's choice into a response of `src/contract/`, which validates and sends it like the service's. */

import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { credentialReader } from '../../contract/credential.ts'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import type { ServerSentEvent } from '../../contract/handler.ts'
import { preferredWait } from '../../contract/prefer.ts'
import type { ProblemMember } from '../../contract/problem.ts'
import { commonHeaders } from '../../contract/response-validation.ts'
import { apiKeyRealm } from '../../domain/api-keys/api-key.ts'
import { waitSecondsMax } from '../../domain/run-api/queue-operations.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import { agree } from './agreement.ts'
import { chooseResponse } from './preferences.ts'
import type { ChosenResponse, Prism } from './prism.ts'

export interface Clock {
  now(): number
  /** Resolves early if the signal is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: Date.now,
  // An aborted wait ends the stream.
  sleep: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
}

// The mock's artifacts: a small valid file of each documented media type.

const files: Record<string, { extension: string; content: string | Uint8Array | URL }> = {
  'application/json': { extension: '.json', content: '{ "words": 812 }\n' },
  'application/octet-stream': { extension: '.bin', content: Uint8Array.from({ length: 256 }, (_, byte) => byte) },
  'application/pdf': { extension: '.pdf', content: createPdf('A sample file of the mock.') },
  // The end record of an empty archive.
  'application/zip': { extension: '.zip', content: Buffer.from('PK\x05\x06'.padEnd(22, '\0')) },
  'image/jpeg': { extension: '.jpg', content: new URL('files/sample.jpg', import.meta.url) },
  'image/png': { extension: '.png', content: new URL('files/sample.png', import.meta.url) },
  'image/webp': { extension: '.webp', content: new URL('files/sample.webp', import.meta.url) },
  'text/csv': { extension: '.csv', content: 'word,count\nthe,41\n' },
  'text/plain': { extension: '.txt', content: 'A sample file of the mock.\n' },
}

/** The media type of a file name's extension, or `undefined` for an unknown one. */
function mediaTypeByName(name: string): string | undefined {
  return Object.keys(files).find((type) => name.toLowerCase().endsWith(files[type]?.extension ?? ''))
}

async function readSampleFile(mediaType: string): Promise<Uint8Array> {
  const file = files[mediaType]
  if (!file) throw new Error(`src/tools/mock/mock-response.ts has no file of the media type ${mediaType}.`)
  const { content } = file
  if (content instanceof URL) return readFile(content)
  return typeof content === 'string' ? Buffer.from(content) : content
}

/** A PDF of one page with one line of text. */
function createPdf(text: string): string {
  const stream = `BT /F1 12 Tf 24 96 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 240 120] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let pdf = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = pdf.length
    pdf += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  return `${pdf}${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
}

type MockRequest = Pick<HandlerRequest, 'path' | 'query' | 'headers' | 'signal'> & { body?: unknown }

/** @throws {Problem} if the request prefers a response that is not documented. */
export async function mockResponse(
  prism: Prism,
  operation: Operation,
  request: MockRequest,
  clock: Clock,
): Promise<HandlerResponse> {
  const { prefer, accept } = request.headers as Record<string, string | undefined>
  const query = request.query as { limit?: number; delaySeconds?: number }
  const { code, exampleKey, dynamic, seed } = chooseResponse(
    operation,
    prism.listExamples(operation),
    prefer,
    query.delaySeconds,
  )
  const { isBinary = false, content = {} } = operation.responses.get(code) ?? {}
  const hasBody = Object.keys(content).length > 0
  const mediaType = isBinary ? mediaTypeByName(fileName(request)) : undefined
  const isOffered = mediaType !== undefined && mediaType in content
  const choice = {
    code,
    ...(exampleKey !== undefined && { exampleKey }),
    ...(isOffered && { mediaTypes: [mediaType] }),
    // For other media types, Prism would make up a random string.
    dynamic: dynamic && 'application/json' in content,
    ...(seed !== undefined && { seed }),
  }
  // `Accept` applies neither to problems nor to responses without a body.
  const chosen = await prism.choose(operation, code < 300 && hasBody ? accept : undefined, choice, query.limit)
  const response = { status: code, headers: toHeaders(operation, chosen, request) }
  if (!hasBody) return response
  const answer = await withBody(response, chosen, isBinary, request, clock)
  return 'body' in answer ? { ...answer, body: agree(operation, request, answer.body, clock.now()) } : answer
}

async function withBody(
  response: HandlerResponse,
  { mediaType = '', body }: ChosenResponse,
  isBinary: boolean,
  request: MockRequest,
  clock: Clock,
): Promise<HandlerResponse> {
  if (isBinary) return { ...response, bytes: await readSampleFile(mediaType), mediaType }
  if (mediaType === 'text/event-stream') {
    const events = parseEvents(body as string).filter(
      ({ id }) => Number(id) > Number(request.headers['last-event-id'] ?? 0),
    )
    // Like the service when no event is left; otherwise clients would reconnect forever.
    return events.length > 0
      ? { ...response, events: pace(events, clock, request.signal) }
      : { ...response, status: 204 }
  }
  if (mediaType === 'application/problem+json') {
    const { type, detail, errors } = body as { type: string; detail: string; errors?: ProblemMember[] }
    const kind = type.slice(type.indexOf('#') + 1)
    return { ...response, problem: { kind, detail, ...(errors && { errors }) } }
  }
  if (mediaType === 'text/plain' || mediaType === 'text/csv') return { ...response, text: body as string, mediaType }
  // Every list has one page.
  const isPage = body !== null && typeof body === 'object' && 'data' in body && 'nextCursor' in body
  return { ...response, body: isPage ? { ...body, nextCursor: null } : body }
}

/** The required headers of the document with their examples, except those that depend on the request. */
function toHeaders(
  operation: Operation,
  { status, headers }: ChosenResponse,
  request: MockRequest,
): Record<string, string> {
  const required = operation.responses.get(status)?.requiredHeaders ?? []
  const sent = Object.entries(headers).filter(([name]) => required.includes(name) && !commonHeaders.includes(name))
  const mayWait = status < 300 && operation.responses.has(200) && operation.responses.has(202)
  const wait = mayWait ? preferredWait(request.headers.prefer as string, waitSecondsMax) : undefined
  return {
    ...Object.fromEntries(sent),
    ...(status === 429 && { RateLimit: `"api-key";r=0;t=${headers['Retry-After']}` }),
    ...('Content-Disposition' in headers && { 'Content-Disposition': `attachment; filename="${fileName(request)}"` }),
    ...('WWW-Authenticate' in headers && {
      'WWW-Authenticate': credentialReader(operation.scheme, apiKeyRealm).challenge,
    }),
    ...(wait !== undefined && { 'Preference-Applied': `wait=${wait}` }),
  }
}

/** The path of an artifact has its name. Every other file is the one of the document's examples. */
function fileName({ path }: MockRequest): string {
  return 'artifactName' in path ? String(path.artifactName) : 'invoice.pdf'
}

type SentEvent = NonNullable<ServerSentEvent>

/** Parses an event stream (HTML Standard, section 9.2) in the form of the document's example. */
function parseEvents(text: string): SentEvent[] {
  const blocks = text.split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)))
    return { id: fields.id, event: fields.event, data: JSON.parse(fields.data) }
  })
}

/** With the pauses between the events. */
async function* pace(events: SentEvent[], clock: Clock, signal: AbortSignal): AsyncGenerator<SentEvent> {
  let last: number | undefined
  for (const event of events) {
    const at = Date.parse((event.data as { at: string }).at)
    if (last !== undefined && at > last) await clock.sleep(at - last, signal)
    if (signal.aborted) return
    last = at
    yield event
  }
}
