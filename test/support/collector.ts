/** A collector of traces for tests: OTLP over HTTP, in JSON. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'vitest'

export interface CollectedSpan {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  /** OTLP's number: 1 internal, 2 server, 4 producer, 5 consumer. */
  kind: number
  attributes: Record<string, unknown>
  links: { traceId: string; spanId: string }[]
  status: { code?: number; message?: string }
  events: { name: string; attributes: Record<string, unknown> }[]
  /** Resource attributes of the process that created the span. */
  resource: Record<string, unknown>
  startMilliseconds: number
  endMilliseconds: number
}

export interface Collector {
  url: string
  spans: CollectedSpan[]
  /** Request bodies as received. */
  bodies: string[]
  /** Number of requests, accepted or not. */
  requests(): number
}

/** @param status of every response; with a status other than 200, the collector rejects all spans. */
export async function startCollector(test: Pick<TestContext, 'onTestFinished'>, status = 200): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const bodies: string[] = []
  let requests = 0
  const server = createServer(async (request, response) => {
    const body = await readBody(request)
    requests += 1
    if (status === 200 && request.method === 'POST' && request.url === '/v1/traces') {
      bodies.push(body)
      spans.push(...parseSpans(JSON.parse(body)))
    }
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, bodies, requests: () => requests }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request.setEncoding('utf8')) text += piece
  return text
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

interface Sent {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[]
}

interface SentSpan extends Pick<CollectedSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'name' | 'kind' | 'status'> {
  attributes: Attribute[]
  links?: CollectedSpan['links']
  events?: { name: string; attributes: Attribute[] }[]
  startTimeUnixNano: string
  endTimeUnixNano: string
}

function parseSpans({ resourceSpans }: Sent): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, ...span }) => ({
        ...span,
        attributes: toRecord(span.attributes),
        links: span.links ?? [],
        events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: toRecord(attributes) })),
        resource: toRecord(resource.attributes),
        startMilliseconds: Number(startTimeUnixNano) / 1e6,
        endMilliseconds: Number(endTimeUnixNano) / 1e6,
      })),
    ),
  )
}

function toRecord(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
