/** Stands between the program and a world: passes requests on, changes responses as a situation says, and keeps both. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { UseSituation } from './situation.ts'

/** What a request asks for, as far as situations distinguish it. */
export type Kind = 'queue' | 'read' | 'list' | 'events' | 'any'

export interface Exchange {
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  kind: Kind
  /** Milliseconds of a monotonic clock. */
  at: number
  answeredAt: number
  /** Of the response that the program got; `undefined` if the connection was cut. */
  status: number | undefined
  /** Of the response of the service; `undefined` if it got no request. */
  serviceStatus: number | undefined
  /** Of the JSON that the program got. */
  nextCursor: string | undefined
  isChanged: boolean
}

export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer
  /** How it is sent; by default as a whole. */
  sent?: 'cut' | 'half' | 'inPieces'
}

/** Where requests go to. */
export interface Target {
  executionUrl: string
  apiKey: string
  /** The key that the program has; requests with it get that of the world. */
  shownKey: string
}

/** In which a program reads what it has received. */
const readMilliseconds = 200

const hopByHop =
  /^(?:connection|keep-alive|transfer-encoding|content-length|content-encoding|accept-encoding|host|expect)$/

type Changes = Pick<UseSituation, 'change' | 'events' | 'withoutWait' | 'interfereAt'>

export class RecordingProxy {
  readonly exchanges: Exchange[] = []
  readonly runs = new Set<string>()
  applied = 0
  keyLeaked = false
  /** Called when the program asks for a run for the first time. */
  onFollowed: ((runId: string) => void) | undefined
  readonly #target: Target
  readonly #situation: Changes
  readonly #text: string
  readonly #server: Server
  readonly #elsewhere: Server
  readonly #counts = new Map<Kind, number>()
  #streams = 0

  /** @param text seeded, for names and values that no document has. */
  constructor(target: Target, situation: Changes, text: string) {
    this.#target = target
    this.#situation = situation
    this.#text = text
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
    this.#elsewhere = createServer((request, response) => {
      this.keyLeaked ||= JSON.stringify(request.headers).includes(target.shownKey)
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>Sign in</title>')
    })
  }

  /** @param port 0 for a free one. */
  async open(port: number): Promise<string> {
    await Promise.all([
      once(this.#server.listen(port, '127.0.0.1'), 'listening'),
      once(this.#elsewhere.listen(0, '127.0.0.1'), 'listening'),
    ])
    return this.url
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Another origin, to which redirects lead. */
  get otherUrl(): string {
    return `http://127.0.0.1:${(this.#elsewhere.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    const servers = [this.#server, this.#elsewhere]
    const closed = servers.map((server) => once(server, 'close'))
    for (const server of servers) server.close().closeAllConnections()
    await Promise.all(closed)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = describe(request)
    const body = await buffer(request)
    this.exchanges.push(exchange)
    const pass = () => this.#pass(exchange, body)
    const nth = this.#count(exchange.kind)
    const { change, events } = this.#situation
    const { to = 'any', skip = 0, times = 1, respond } = change ?? {}
    const isConcerned = to === 'any' || to === exchange.kind
    const index = to === 'any' ? this.exchanges.length - 1 : nth
    if (respond && isConcerned && index >= skip && index < skip + times) {
      exchange.isChanged = true
      this.applied += 1
      return this.#send(exchange, response, await respond(exchange, pass, this.#text))
    }
    if (exchange.kind === 'events') return this.#stream(exchange, response, events)
    return this.#send(exchange, response, await pass())
  }

  #count(kind: Kind): number {
    const count = this.#counts.get(kind) ?? 0
    this.#counts.set(kind, count + 1)
    return count
  }

  #fetch(exchange: Exchange, body?: Buffer): Promise<Response> {
    const headers = { ...exchange.headers }
    for (const name of Object.keys(headers)) if (hopByHop.test(name)) delete headers[name]
    if (this.#situation.withoutWait) delete headers.prefer
    const { shownKey, apiKey } = this.#target
    if (headers.authorization) headers.authorization = headers.authorization.replace(shownKey, apiKey)
    return fetch(`${this.#target.executionUrl}${exchange.path}`, {
      ...{ method: exchange.method, headers, redirect: 'manual' },
      ...(body && body.length > 0 && { body: new Uint8Array(body) }),
    })
  }

  async #pass(exchange: Exchange, body: Buffer): Promise<Answer> {
    const response = await this.#fetch(exchange, body)
    exchange.serviceStatus = response.status
    const answer = {
      status: response.status,
      headers: plainHeaders(response),
      body: Buffer.from(await response.arrayBuffer()),
    }
    if (exchange.kind === 'queue' && response.ok) {
      const { id, data = [] } = JSON.parse(answer.body.toString()) as { id?: string; data?: { id: string }[] }
      for (const run of id ? [{ id }] : data) this.runs.add(run.id)
    }
    return answer
  }

  async #send(exchange: Exchange, response: ServerResponse, answer: Answer): Promise<void> {
    const { status, headers, body, sent } = answer
    exchange.answeredAt = performance.now()
    if (sent === 'cut') return void response.destroy()
    exchange.status = status
    exchange.nextCursor = readCursor(body)
    const location = headers.location?.replace('{elsewhere}', this.otherUrl)
    const isChunked = sent === 'inPieces'
    response.writeHead(status, {
      ...headers,
      ...(location && { location }),
      ...(!isChunked && status !== 204 && { 'content-length': String(body.length) }),
    })
    if (sent === 'half') return void response.write(body.subarray(0, body.length / 2), () => response.destroy())
    if (isChunked) await writeInPieces(response, body)
    response.end(isChunked ? undefined : body)
    const [, runId] = /\/runs\/([^/]+)$/.exec(exchange.path) ?? []
    const isAwaited = body.includes(this.#situation.interfereAt ?? '')
    if (exchange.kind === 'read' && status === 200 && runId && isAwaited) this.#follow(runId)
  }

  #follow(runId: string): void {
    this.onFollowed?.(runId)
    this.onFollowed = undefined
  }

  async #stream(exchange: Exchange, response: ServerResponse, change: UseSituation['events']): Promise<void> {
    const connection = this.#streams
    this.#streams += 1
    const upstream = await this.#fetch(exchange)
    exchange.serviceStatus = upstream.status
    exchange.status = upstream.status
    exchange.answeredAt = performance.now()
    response.on('close', () => void upstream.body?.cancel().catch(() => {}))
    response.writeHead(upstream.status, plainHeaders(upstream))
    this.#follow(/\/runs\/([^/]+)\/events/.exec(exchange.path)?.[1] ?? '')
    let text = ''
    let index = 0
    const decoder = new TextDecoder()
    for await (const chunk of upstream.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const changed = change ? change(block, index, connection, this.#text) : block
        if (changed !== block) this.applied += 1
        if (changed === undefined) {
          // No signal says when the program has read the events before.
          await delay(readMilliseconds)
          return void response.destroy()
        }
        response.write(`${changed}\n\n`)
        index += 1
      }
    }
    response.end(text)
  }
}

function describe(request: IncomingMessage): Exchange {
  const { method = 'GET', url: path = '/' } = request
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  const seen = { status: undefined, serviceStatus: undefined, nextCursor: undefined, isChanged: false }
  return { method, path, headers, kind: kindOf(method, path), at: performance.now(), answeredAt: 0, ...seen }
}

function kindOf(method: string, url: string): Kind {
  const path = url.split('?')[0] ?? ''
  if (/\/queue-remote(?:-batch$|\/)/.test(path)) return 'queue'
  if (method !== 'GET') return 'any'
  if (/\/runs\/[^/]+\/events$/.test(path)) return 'events'
  if (/\/runs\/[^/]+$/.test(path)) return 'read'
  return /\/(?:runs|workflows|waits|workers|schedules|deployments)$/.test(path) ? 'list' : 'any'
}

function plainHeaders({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !hopByHop.test(name)))
}

function readCursor(body: Buffer): string | undefined {
  try {
    return (JSON.parse(body.toString()) as { nextCursor?: string }).nextCursor ?? undefined
  } catch {
    return undefined
  }
}

/** So small that characters of several bytes are divided. */
async function writeInPieces(response: ServerResponse, body: Buffer): Promise<void> {
  const size = Math.max(1, Math.ceil(body.length / 8))
  for (let start = 0; start < body.length; start += size) {
    response.write(body.subarray(start, start + size))
    await delay(5)
  }
}
