/** Sends webhooks to a receiver as situations say, about runs that exist, and judges its responses and its work. */

import { randomUUID } from 'node:crypto'
import { request as sendRequest } from 'node:http'
import { request as sendSecurely } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import type { World } from '../simulator/simulator.ts'
import type { Receiver } from './check-consumer-api.ts'
import type { Delivery, WebhookBody, WebhookRequest, WebhookSituation } from './situation.ts'

/** As the service waits. */
const responseSeconds = 10
/** How long work may continue after the response. */
const workSeconds = 3
/** In which a second time would show. */
const settleMilliseconds = 300
const otherSecret = `whsec_${Buffer.alloc(24, 'another secret').toString('base64')}`

interface Sent {
  /** `undefined`: no response in time. */
  status: number | undefined
  isAbandoned: boolean
}

type Queue = { workflowId: string; variableData: unknown }

export class WebhookDriver {
  readonly #receiver: Receiver
  readonly #world: World
  readonly #queue: Queue | undefined

  private constructor(receiver: Receiver, world: World, queue: Queue | undefined) {
    this.#receiver = receiver
    this.#world = world
    this.#queue = queue
  }

  static async create(receiver: Receiver, world: World): Promise<WebhookDriver> {
    return new WebhookDriver(receiver, world, await findExample(world))
  }

  /** Waits for the receiver to listen. */
  async isReached(): Promise<boolean> {
    for (const until = performance.now() + responseSeconds * 1000; performance.now() < until; await delay(100)) {
      const { status } = await this.#send({ headers: { 'content-type': 'application/json' }, body: '{}' })
      if (status !== undefined) return true
    }
    return false
  }

  /** Returns what the receiver did wrong. */
  async drive(situation: WebhookSituation): Promise<string[]> {
    const { deliveries, atOnce = false, done } = situation
    const event = await this.#eventOf(situation)
    const id = `msg_${randomUUID()}`
    const sent: Sent[] = []
    const send = async (delivery: Delivery, index: number) => {
      sent[index] = await this.#deliver(delivery, event, delivery.hasOtherId ? `${id}_${index}` : id)
    }
    if (atOnce) await Promise.all(deliveries.map(send))
    else for (const [index, delivery] of deliveries.entries()) await send(delivery, index)
    const did = deliveries.map(({ expect }, index) => judgeResponse(expect, sent[index] as Sent))
    const work = done === undefined ? undefined : await this.#judgeWork(event, done)
    return [...new Set([...did, work])].filter((text) => text !== undefined)
  }

  async #judgeWork({ data: { runId } }: WebhookBody, expected: 0 | 1): Promise<string | undefined> {
    const { done } = this.#receiver
    if (!done) return undefined
    const until = performance.now() + workSeconds * 1000
    while (expected === 1 && (await done(String(runId))) < 1 && performance.now() < until) await delay(50)
    await delay(settleMilliseconds)
    const count = await done(String(runId))
    if (count === expected) return undefined
    if (expected === 0) return 'It did the work.'
    return count === 0 ? 'It did not do the work.' : 'It did the work more than once.'
  }

  async #deliver(delivery: Delivery, event: WebhookBody, id: string): Promise<Sent> {
    const { event: change, format = JSON.stringify, tamper = (request) => request, by = ['current'] } = delivery
    const body = format(change ? change(event) : event)
    const at = new Date(Date.now() + (delivery.shiftSeconds ?? 0) * 1000)
    const secrets = by.map((name) => (name === 'current' ? this.#receiver.secret : otherSecret))
    const headers = {
      ...{ 'content-type': 'application/json', 'user-agent': 'execution-service', 'webhook-id': id },
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
    }
    return this.#send(tamper({ headers, body }), delivery.isAbandoned)
  }

  #send({ headers, body, isChunked = false }: WebhookRequest, isAbandoned = false): Promise<Sent> {
    const { url } = this.#receiver
    return new Promise((resolve) => {
      const open = url.startsWith('https:') ? sendSecurely : sendRequest
      const length = isChunked ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const signal = AbortSignal.timeout(responseSeconds * 1000)
      const request = open(url, { method: 'POST', headers: { ...headers, ...length }, agent: false, signal })
      request.on('response', (response) => {
        resolve({ status: response.statusCode, isAbandoned })
        response.resume()
      })
      request.on('error', () => resolve({ status: undefined, isAbandoned }))
      const half = Math.ceil(body.length / 2)
      if (isChunked) request.write(body.slice(0, half))
      request.end(isChunked ? body.slice(half) : body, () => {
        // What was sent reaches the receiver before the end of the connection.
        if (isAbandoned) request.socket?.end(() => resolve({ status: undefined, isAbandoned }))
      })
    })
  }

  async #eventOf({ run = 'succeeded' }: WebhookSituation): Promise<WebhookBody> {
    const found = run === 'unknown' ? undefined : await this.#makeRun(run)
    const now = new Date().toISOString()
    const status = run === 'unknown' ? 'succeeded' : run
    const data = {
      ...{ runId: found?.id ?? randomUUID(), workflowId: this.#queue?.workflowId ?? 'check', status },
      ...{ reason: found?.reason ?? null, attempts: 1, tags: [], createdAt: found?.createdAt ?? now, finishedAt: now },
    }
    return { type: `run.${status}`, timestamp: now, data }
  }

  async #makeRun(end: 'succeeded' | 'failed' | 'cancelled'): Promise<Members | undefined> {
    if (!this.#queue) return undefined
    const { workflowId, variableData } = this.#queue
    const { id } = await this.#call('PUT', `queue-remote/${workflowId}`, { variableData })
    if (end === 'cancelled') await this.#call('POST', `runs/${id}/cancel`)
    if (end === 'failed') await this.#world.decide(String(id), { status: 'failed' })
    for (;;) {
      const run = await this.#call('GET', `runs/${id}`)
      if (run.finishedAt !== null) return run
      await delay(50)
    }
  }

  #call(method: string, path: string, body?: object): Promise<Members> {
    return call(this.#world, method, path, body)
  }
}

type Members = Record<string, unknown>

async function call({ executionUrl, apiKey }: World, method: string, path: string, body?: object): Promise<Members> {
  const response = await fetch(`${executionUrl}/v1/execution/${path}`, {
    method,
    headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return (await response.json()) as Members
}

/** A workflow with variables that fit it: the examples of its schema, or none. */
async function findExample(world: World): Promise<Queue | undefined> {
  const { data } = (await call(world, 'GET', 'workflows?limit=100')) as {
    data: { id: string; variablesSchema: Members }[]
  }
  for (const { id, variablesSchema } of data) {
    const properties = Object.entries((variablesSchema.properties ?? {}) as Record<string, { examples?: unknown[] }>)
    const examples = properties.flatMap(([name, { examples = [] }]) =>
      examples.length === 0 ? [] : [[name, examples[0]]],
    )
    const [whole] = (variablesSchema.examples ?? []) as unknown[]
    const variableData = whole ?? Object.fromEntries(examples)
    const queued = await call(world, 'PUT', `queue-remote/${id}`, { variableData })
    if (queued.id) return { workflowId: id, variableData }
  }
  return undefined
}

function judgeResponse(expect: Delivery['expect'], { status, isAbandoned }: Sent): string | undefined {
  if (isAbandoned) return undefined
  if (status === undefined) return `It did not answer within ${responseSeconds} s.`
  const isAccepted = status >= 200 && status < 300
  if (expect === 'accepted' && !isAccepted) return `It answered with ${status}.`
  if (expect === 'refused' && isAccepted) return `It accepted the request with ${status}.`
  return expect === 'refused' && status >= 500 ? `It answered with ${status}, as if it had failed itself.` : undefined
}
