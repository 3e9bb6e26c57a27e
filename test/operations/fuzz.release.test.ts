/** Randomly altered requests, the same in every run, always get a documented response and never a 5xx. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../support/seeded-random.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { expectDocumented, expectProblem, operations, type ReceivedResponse } from './document.ts'
import { type RawRequest, sendRaw } from './raw-http.ts'
import { addressOf, type SentRequest, send, validRequest } from './requests.ts'

const requestsPerOperation = 200

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

type Pick = <Item>(items: readonly Item[]) => Item

function pickFrom(seed: number): Pick {
  const number = seededRandom(seed)
  return (items) => items[Math.floor(number() * items.length)] as (typeof items)[number]
}

const texts = [
  ...[
    '',
    ' ',
    'null',
    'true',
    '-1',
    '0',
    '1.5',
    '1e400',
    '9'.repeat(30),
    'x',
    'x'.repeat(300),
    '%00',
    '%zz',
    '%F0%9F%92%A1',
    '%2F',
  ],
  ...[
    '../..',
    '..',
    '$&',
    "'--",
    '{}',
    '[]',
    '2026-02-30T00:00:00Z',
    '+05:00',
    'a,b',
    'a;b=c',
    '"',
    '*',
    'wait=0',
    '__proto__',
  ],
]
const values: unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e308, '', ' ', '\u0000', '\ud800', 'x'.repeat(200), '💡', '__proto__', [], {}, [[]]],
  ...[
    { length: -1 },
    { constructor: { prototype: {} } },
    { name: null },
    { $ref: '#' },
    ['a', 1, null],
    'Infinity',
    '0x10',
  ],
]
const headers = [
  'Accept',
  'Content-Type',
  'Content-Encoding',
  'Idempotency-Key',
  'Prefer',
  'Last-Event-ID',
  'Authorization',
  'x-service-api-key',
  'X-Request-Id',
  'Cookie',
  'Range',
  'If-None-Match',
  'X-HTTP-Method-Override',
  'Forwarded',
  'Origin',
  'Connection',
]
const methods = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND']

/** @param names query parameters, including those of the operation. */
type Mutation = (request: SentRequest, pick: Pick, names: string[]) => SentRequest

const mutations: Mutation[] = [
  (request, pick) => ({ ...request, method: pick(methods) }),
  (request, pick) => {
    const segments = request.path.split('/')
    // The first segment is the empty string before the first slash.
    segments[pick([...segments.keys()].slice(1))] = encodeURI(pick(texts)).replaceAll('%25', '%')
    return { ...request, path: segments.join('/') }
  },
  (request, pick, names) => {
    const value = encodeURI(pick(texts)).replaceAll('%25', '%')
    return { ...request, path: `${request.path}${request.path.includes('?') ? '&' : '?'}${pick(names)}=${value}` }
  },
  (request, pick) => ({ ...request, headers: { ...request.headers, [pick(headers)]: pick(texts).replace('💡', '') } }),
  (request, pick) => {
    const { [pick(Object.keys(request.headers))]: _, ...others } = request.headers
    return { ...request, headers: others }
  },
  (request, pick) => ({ ...request, body: JSON.stringify(pick(values)) }),
  (request, pick) => (request.body === undefined ? request : { ...request, body: withOtherMember(request.body, pick) }),
  (request, pick) => {
    const bytes = Buffer.from(request.body ?? '{}')
    bytes[pick([...bytes.keys()])] = pick([0, 0x22, 0x5c, 0x7b, 0x7d, 0x2c, 0x80, 0xff])
    return { ...request, body: bytes }
  },
]

/** Replaces the value of one member somewhere in the JSON. */
function withOtherMember(body: string | Buffer, pick: Pick): string | Buffer {
  let root: unknown
  try {
    root = JSON.parse(String(body))
  } catch {
    return body
  }
  const holders: Record<string, unknown>[] = []
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    holders.push(value as Record<string, unknown>)
    for (const each of Object.values(value)) visit(each)
  }
  visit(root)
  if (holders.length === 0) return body
  const holder = pick(holders)
  holder[pick(['variableData', 'name', 'times', 'tags', 'address', 'token', 'x', ...Object.keys(holder)])] =
    pick(values)
  return JSON.stringify(root)
}

function rawOf({ method, path, headers: named, body }: SentRequest): RawRequest {
  const list = Object.entries(named).flatMap(([name, value]) => [value].flat().flatMap((each) => [name, each]))
  return { method, path, headers: list, ...(body !== undefined && { body }) }
}

/** The documented operation of the request, if there is one. */
function operationFor(surface: string, { method, path }: SentRequest) {
  const [beforeQuery = ''] = path.split('?')
  // A path without parameters comes first (OpenAPI 3.1, Paths Object).
  const isConcrete = operations.some((operation) => operation.path === beforeQuery)
  return operations.find((operation) => {
    if (isConcrete && operation.path !== beforeQuery) return false
    const pattern = new RegExp(`^${operation.path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`)
    return operation.surface === surface && operation.method === method && pattern.test(beforeQuery)
  })
}

function expectAnyDocumented(surface: string, request: SentRequest, response: ReceivedResponse): void {
  const operation = operationFor(surface, request)
  expect(response.status).toBeLessThan(500)
  if (operation) return void expectDocumented(operation, response)
  // Of GET without its body, which the document would require.
  if (request.method === 'HEAD') return expect(response.text).toBe('')
  expect([404, 405]).toContain(response.status)
  const { title } = JSON.parse(response.text)
  const kind = response.status === 404 ? 'not-found' : 'method-not-allowed'
  expectProblem(undefined, response, { kind, title, status: response.status })
}

test.each(operations.map((operation, index) => ({ operation, id: operation.id, seed: index + 1 })))(
  'every altered request of $id gets a documented response',
  async ({ operation, seed }) => {
    const account = await service.createAccount()
    const pick = pickFrom(seed)
    const documented = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    const names = ['x', '__proto__', ...documented]
    const valid = await validRequest(service, operation.id, account)
    for (let count = 0; count < requestsPerOperation; count++) {
      let request = valid
      for (const mutate of [pick(mutations), pick([...mutations, (it: SentRequest) => it])])
        request = mutate(request, pick, names)
      const response = await sendRaw(addressOf(service, operation), rawOf(request))
      try {
        expectAnyDocumented(operation.surface, request, response)
      } catch (error) {
        const sent = JSON.stringify({ ...request, body: request.body?.toString('latin1') })
        throw new Error(`${sent} received ${response.status} ${response.text}`, { cause: error })
      }
    }
    // Nothing that these requests stored breaks later responses.
    for (const list of ['listRuns', 'listBrowserContexts'] as const) {
      await send(service, list, account.key, { query: 'limit=100' }).expect(200)
    }
  },
)
