/**
 * Random sequences of operations, generated from the documents, for two servers that should respond alike. What a response
 * names (IDs, cursors, entity tags) is used by later requests, as the pair of what each server has named.
 */
import { Agent } from 'node:http'
import { type DocumentedOperation, type Json, operations, type ReceivedResponse } from '../operations/document.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { addressOf, requestOf } from '../operations/requests.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { modifiedBodies, parameterValues } from './values.ts'

export interface Server {
  executionUrl: string
  browserContextUrl: string
  /** The key of an account that has nothing yet. */
  apiKey: string
}

/** An operation whose parameters and body follow from the seed, and from what earlier responses have named. */
export interface Step {
  id: string
  seed: number
}

export interface Mismatch {
  step: number
  requests: [string, string]
  responses: [unknown, unknown]
}

/** Operations that need more than a request: each with its reason. */
const excluded: Record<string, string> = {
  createDeployment: 'starts a process that loads the modules',
  streamRunEvents: 'never ends for a run that is queued; what it sends are the events of an attempt',
  getLiveViews: 'waits for a browser',
  updateLiveView: 'needs a browser',
}

const candidates = operations.filter(({ id }) => !(id in excluded))
const creating = candidates.filter(
  ({ method, path }) => ['POST', 'PUT'].includes(method) && !/\{(?!workflowId|name)/.test(path),
)

/** Two to six steps, of which the first creates something. */
export function sequenceOf(seed: number): Step[] {
  const random = seededRandom(seed)
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
  return Array.from({ length: 2 + Math.floor(random() * 5) }, (_, index) => {
    const { id } = pick(index === 0 ? creating : candidates)
    return { id, seed: Math.floor(random() * 2 ** 31) }
  })
}

/** Called around each step. */
interface Around {
  /** Sets the clocks of both servers to the same time. */
  before(): Promise<void>
  /** Lets both servers do what they do later, such as bulk actions. */
  after(id: string, response: ReceivedResponse): Promise<void>
}

type Pair = [string, string]

const fixed: Record<string, string[]> = {
  workflowId: ['count-words', 'greet', 'approve', 'hold', 'none-such'],
  name: ['SHOP_TOKEN', 'LIMITS', 'approval', 'discount'],
  stepName: ['process', 'charge'],
  artifactName: ['invoice.pdf', 'shot.png'],
  attempt: ['1', '2', '0'],
  version: ['1', '2'],
  workerId: ['00000000-0000-4000-8000-0000000000a1', '00000000-0000-4000-8000-0000000000a2'],
  viewId: ['0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'],
}
const unknownId = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

/** Members of bodies and parameters that name a resource of another kind. */
const kinds: Record<string, string> = { parentRunId: 'runId', rerunOf: 'runId' }

const takesFile = ({ body, bodySchema }: DocumentedOperation) => body !== undefined && bodySchema === undefined

/** Closed before the server closes them, which a request could meet. */
const connections = { keepAlive: true, timeout: 2000 }

const bodies = new Map<string, [what: string, value: unknown][]>()

function bodiesOf({ id, surface, body, bodySchema }: DocumentedOperation): [string, unknown][] {
  let known = bodies.get(id)
  if (!known) {
    const examples = Object.entries(body ?? {})
    known = modifiedBodies(surface, bodySchema, examples[0]?.[1]).filter(
      ([, value]) => JSON.stringify(value).length < 20_000,
    )
    bodies.set(id, known)
  }
  return known
}

/** Sends sequences to two servers, one step after the other, and compares what they respond. */
export class Comparison {
  readonly #servers: readonly [Server, Server]
  readonly #agents = [new Agent(connections), new Agent(connections)] as const
  /** By the name of the parameter. */
  readonly #pools = new Map<string, Pair[]>()
  readonly #names = [new Map<string, string>(), new Map<string, string>()] as const
  readonly #around: Around
  count = 0
  readonly statuses = new Map<string, number>()

  constructor(servers: readonly [Server, Server], around: Around) {
    this.#servers = servers
    this.#around = around
  }

  /** Returns the first step with different responses. */
  async run(steps: readonly Step[]): Promise<Mismatch | undefined> {
    for (const [index, { id, seed }] of steps.entries()) {
      const operation = operations.find((each) => each.id === id) as DocumentedOperation
      const filled = this.#fill(operation, seededRandom(seed))
      const requests = this.#servers.map(({ apiKey }, side) => {
        const { headers, ...request } = requestOf(operation, apiKey, filled(side as 0 | 1))
        return { ...request, headers: Object.entries(headers).flatMap(([name, value]) => [name, String(value)]) }
      })
      await this.#around.before()
      const [first, second] = (await Promise.all(
        requests.map((request, side) =>
          sendRaw(addressOf(this.#servers[side] as Server, operation), request, this.#agents[side]),
        ),
      )) as [ReceivedResponse, ReceivedResponse]
      this.count += 1
      const key = `${id} ${first.status}`
      this.statuses.set(key, (this.statuses.get(key) ?? 0) + 1)
      await this.#around.after(id, first)
      const responses = [this.#normalize(operation, first, 0), this.#normalize(operation, second, 1)] as const
      if (JSON.stringify(responses[0]) !== JSON.stringify(responses[1]) || first.status >= 500)
        return {
          step: index,
          requests: requests.map(({ method, path, body = '' }) => `${method} ${path} ${body}`) as [string, string],
          responses: [...responses],
        }
      this.#link(operation, first, second)
    }
    return undefined
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy()
  }

  /** Returns the request of each side. */
  #fill(operation: DocumentedOperation, random: () => number) {
    const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item
    const linked = (name: string): Pair => {
      const values = fixed[name]
      if (values) {
        const value = pick(values)
        return [value, value]
      }
      const pool = this.#pools.get(kinds[name] ?? name) ?? []
      return pool.length === 0 || random() < 0.05
        ? [unknownId, unknownId]
        : (pool[Math.floor(random() * pool.length)] as Pair)
    }
    const path = operation.parameters
      .filter((each) => each.in === 'path')
      .map(({ name }) => [name, linked(name)] as const)
    const isOfResource = (name: string) => /Id$|^cursor$/.test(name) && fixed[name] === undefined
    const query = operation.parameters
      .filter((each) => each.in === 'query' && (each.required || random() < 0.2))
      // The worker of the simulator has a place in its pages.
      .filter(({ name }) => operation.id !== 'listWorkers' || name !== 'limit')
      .map((parameter) => {
        const { name } = parameter
        if (isOfResource(name)) return [name, linked(name === 'cursor' ? `cursor ${operation.id}` : name)] as const
        const [, value] = pick(parameterValues(operation.surface, parameter))
        return [name, [value, value] as Pair] as const
      })
    const body = this.#body(operation, random, linked)
    const key =
      operation.parameters.some(({ name }) => name === 'Idempotency-Key') && random() < 0.2
        ? pick(['a', 'b'])
        : undefined
    const tag =
      operation.parameters.some(({ name }) => name === 'If-None-Match') && random() < 0.3 ? linked('ETag') : undefined
    const seed = random()
    return (side: 0 | 1) => ({
      path: Object.fromEntries(path.map(([name, pair]) => [name, encodeURIComponent(pair[side])])),
      query: query.map(([name, pair]) => `${name}=${encodeURIComponent(pair[side])}`).join('&'),
      headers: { ...(key && { 'Idempotency-Key': key }), ...(tag && { 'If-None-Match': tag[side] }) },
      ...(body && { body: body(side) }),
      ...(takesFile(operation) && { raw: Buffer.from(`file ${Math.floor(seed * 5)}`) }),
    })
  }

  #body(operation: DocumentedOperation, random: () => number, linked: (name: string) => Pair) {
    const examples = Object.values(operation.body ?? {})
    if (examples.length === 0 || takesFile(operation)) return undefined
    const chosen =
      random() < 0.7
        ? examples[Math.floor(random() * examples.length)]
        : bodiesOf(operation)[Math.floor(random() * bodiesOf(operation).length)]?.[1]
    // A claim waits for runs, in real time.
    const value = operation.id === 'claimRuns' ? { ...Object(chosen), waitSeconds: 0 } : chosen
    const pairs = new Map<string, Pair>()
    const visit = (part: unknown, at: string) => {
      if (typeof part !== 'object' || part === null) return
      for (const [name, member] of Object.entries(part)) {
        if (/^(?!apiKey|workflow|deployment)\w+Id$/.test(name) && typeof member === 'string')
          pairs.set(`${at}/${name}`, linked(name))
        else visit(member, `${at}/${name}`)
      }
    }
    visit(value, '')
    const fill = (part: unknown, at: string, side: 0 | 1): unknown => {
      if (typeof part !== 'object' || part === null) return part
      if (Array.isArray(part)) return part.map((item, index) => fill(item, `${at}/${index}`, side))
      return Object.fromEntries(
        Object.entries(part).map(([name, member]) => [
          name,
          pairs.get(`${at}/${name}`)?.[side] ?? fill(member, `${at}/${name}`, side),
        ]),
      )
    }
    return (side: 0 | 1) => fill(value, '', side)
  }

  /** Keeps what both responses name. */
  #link(operation: DocumentedOperation, first: ReceivedResponse, second: ReceivedResponse): void {
    if (first.status >= 300) return
    const add = (name: string, pair: unknown[]) => {
      if (pair.some((value) => typeof value !== 'string')) return
      const pool = this.#pools.get(name) ?? []
      if (!pool.some(([known]) => known === pair[0])) pool.push(pair as Pair)
      // The latest are the ones whose state changes most.
      this.#pools.set(name, pool.slice(-20))
    }
    add('ETag', [first.headers.etag, second.headers.etag])
    if (first.headers['content-type'] !== 'application/json') return
    const [one, two] = [JSON.parse(first.text), JSON.parse(second.text)] as [Json, Json]
    add(`cursor ${operation.id}`, [one.nextCursor, two.nextCursor])
    const kind = kindOf(operation)
    if (!kind) return
    const items = Array.isArray(one.data)
      ? one.data.map((item, index) => [item, (two.data as Json[])[index]])
      : [[one, two]]
    for (const [a, b] of items as [Json, Json][]) add(kind, [a?.id ?? a?.runId, b?.id ?? b?.runId])
  }

  /** Without IDs, times and secrets: each is replaced by its place among those that the server has named. */
  #normalize(operation: DocumentedOperation, { status, headers, text }: ReceivedResponse, side: 0 | 1): unknown {
    const names = Object.keys(headers)
      .filter((name) => !transport.has(name))
      .sort()
    const type = headers['content-type']
    const media = String(type)
    if (!media.includes('json') || text === '') return { status, media, names, text }
    const known = this.#names[side]
    const replaced = withoutWorker(operation, text)
      // The names of the API keys.
      .replaceAll('"name":"simulator"', '"name":"test"')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>')
      .replaceAll(/whsec_[A-Za-z0-9+/=_-]+|rt_[A-Za-z0-9_-]{91}|http:\/\/127\.0\.0\.1:\d+(?:\/[^"\s]*)?/g, '<own>')
      .replaceAll(/"context-[0-9a-f]{12}"/g, '"<name>"')
      // Digests of versions, which include the account.
      .replaceAll(/\([0-9a-f]{12}, and not [0-9a-f]{12}\)/g, '(<versions>)')
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}/gi, (id) => {
        const name = known.get(id.toLowerCase()) ?? `<id ${known.size}>`
        known.set(id.toLowerCase(), name)
        return name
      })
    const body = JSON.parse(replaced, (name, value) => {
      if (sendingOperations.has(operation.id) && ofAttempts.has(name)) return '<attempt>'
      return opaque.has(name) && value !== null ? '<opaque>' : value
    })
    return { status, media, names, body }
  }
}

/** A list of workers without that of the simulator, whose ID has no place among those that both servers have named. */
function withoutWorker({ id }: DocumentedOperation, text: string): string {
  if (id !== 'listWorkers') return text
  const body: Json = JSON.parse(text)
  // Those that have registered in the same millisecond are in the order of IDs; the simulator's clock stands still.
  const data = (body.data as Json[] | undefined)
    ?.filter(({ host }) => host !== 'simulator')
    .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
  return JSON.stringify({ ...body, data })
}

const transport = new Set([
  ...['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding', 'vary', 'ratelimit'],
  ...['access-control-allow-origin', 'access-control-expose-headers'],
])

/** Members whose values are those of a moment, or of a server. Runs of the same millisecond are in the order of their IDs. */
const opaque = new Set(['requestId', 'nextCursor', 'etag', 'token', 'url', 'seenSecondsAgo', 'queuePosition'])

const sendingOperations = new Set(['listWebhookDeliveries', 'redeliverWebhook', 'sendTestWebhook'])

/** Of deliveries: the service sends them by itself, the simulator when its clock is advanced. */
const ofAttempts = new Set([
  ...['attempts', 'nextAttemptAt', 'lastAttemptAt', 'latencyMilliseconds', 'requestUrl', 'requestBody'],
  ...['responseStatus', 'responseBody', 'error'],
])

function kindOf({ id, path }: DocumentedOperation): string | undefined {
  if (/rerunRun|queueRemoteRun|triggerSchedule|cancelRun|claimRuns/.test(id) || path.endsWith('/runs')) return 'runId'
  const [, collection = ''] = /^\/\w+(?:\/execution)?\/([a-z-]+)(?:\/\{\w+\})?$/.exec(path) ?? []
  return (
    {
      schedules: 'scheduleId',
      'browser-contexts': 'browserContextId',
      'webhook-endpoints': 'endpointId',
      'bulk-actions': 'bulkActionId',
      deployments: 'deploymentId',
    }[collection] ??
    (id.startsWith('bulk') ? 'bulkActionId' : id === 'listWebhookDeliveries' ? 'deliveryId' : undefined)
  )
}
