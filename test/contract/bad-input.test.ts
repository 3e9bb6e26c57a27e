/** Each wrong thing that a caller can send gets the documented answer, which names the member at fault; nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { type Answer, expectProblem, operationOf } from './document.ts'
import { type RawRequest, sendRaw, sendText } from './http.ts'
import { credential, queueRun } from './requests.ts'

let service: TestService
/** Sends half a request, and nothing more; it is answered while the other tests run. */
let slow: { answer: Promise<Answer>; startedAt: number }

beforeAll(async () => {
  service = await startTestService({ worker: false })
  slow = {
    answer: sendText(service.executionUrl, 'GET /v1/execution/runs HTTP/1.1\r\nHost: x\r\n'),
    startedAt: performance.now(),
  }
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const listRuns = operationOf('listRuns')
const mebibyte = 1024 * 1024

function rowsStored(): unknown {
  const tables = ['runs', 'run_events', 'idempotency_keys', 'browser_contexts']
  const counts = tables.map((table) => `(SELECT COUNT(*) FROM ${table}) AS ${table}`)
  return service.database.prepare(`SELECT ${counts.join(', ')}`).get()
}

/** The answer to a request, which must have stored nothing. */
async function unstored(url: string, request: RawRequest): Promise<Answer> {
  const before = rowsStored()
  const answer = await sendRaw(url, request)
  expect(rowsStored()).toEqual(before)
  return answer
}

const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }
const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: 'There is no such path.' }

interface QueueRequest {
  path?: string
  query?: string
  headers?: string[]
  body?: string | Buffer
  chunked?: boolean
}

const good = '{"variableData":{"name":"Ada"}}'

function queueRequest(
  account: TestAccount,
  { path = 'greet', query = '', headers, body, chunked }: QueueRequest,
): RawRequest {
  return {
    method: 'PUT',
    path: `/v1/execution/queue-remote/${path}${query}`,
    headers: ['Authorization', `Bearer ${account.key}`, ...(headers ?? ['Content-Type', 'application/json'])],
    ...(body !== undefined && { body }),
    ...(chunked && { chunked }),
  }
}

/** Queues with what is wrong; the answer must be 400 and name exactly these members, in any order. */
async function expectRefused(request: QueueRequest, errors: unknown[]): Promise<void> {
  const account = await service.createAccount()
  const answer = await unstored(service.executionUrl, queueRequest(account, request))
  expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
  const named = JSON.parse(answer.text).errors
  expect(named).toHaveLength(errors.length)
  expect(named).toEqual(expect.arrayContaining(errors))
}

async function expectQueued(request: QueueRequest): Promise<Answer> {
  const account = await service.createAccount()
  const answer = await sendRaw(service.executionUrl, queueRequest(account, request))
  expect(answer.status, answer.text).toBe(202)
  return answer
}

const anyDetail = expect.any(String)
const at = (pointer: string, detail: unknown = anyDetail) => [{ pointer, detail }]
const nested = (depth: number) =>
  `{"variableData":{"token":"very secret","fails":true,"nested":{"x":${'['.repeat(depth - 3)}${']'.repeat(depth - 3)}}}}`

describe('a body', () => {
  test.each<[what: string, body: string | Buffer | undefined, errors: unknown[]]>([
    ['that is absent', undefined, at('', 'is required')],
    ['that is empty', '', at('', 'is required')],
    ['of a byte order mark alone', '\uFEFF', at('', 'is required')],
    ['of white space alone', ' \r\n\t', at('', expect.stringContaining('is not JSON'))],
    ['that is null', 'null', at('', 'must be object')],
    ['that is a list', '[]', at('', 'must be object')],
    ['that is a string', '"a"', at('', 'must be object')],
    ['that is a number', '1', at('', 'must be object')],
    ['that is true', 'true', at('', 'must be object')],
    ['of two values', `${good}${good}`, at('', expect.stringContaining('is not JSON'))],
    ['that is cut off', good.slice(0, -1), at('', expect.stringContaining('is not JSON'))],
    ['with a comma too much', '{"variableData":{"name":"Ada"},}', at('', expect.stringContaining('is not JSON'))],
    ['with single quotes', "{'variableData':{}}", at('', expect.stringContaining('is not JSON'))],
    ['with a comment', `/**/${good}`, at('', expect.stringContaining('is not JSON'))],
    ['with NaN', '{"variableData":{"warmth":NaN}}', at('', expect.stringContaining('is not JSON'))],
    [
      'with a line break in a string',
      '{"variableData":{"name":"A\nda"}}',
      at('', expect.stringContaining('is not JSON')),
    ],
    [
      'with the byte 0 in a string',
      '{"variableData":{"name":"A\0da"}}',
      at('', expect.stringContaining('is not JSON')),
    ],
    [
      'with U+0000 in a string',
      '{"variableData":{"name":"A\\u0000da"}}',
      at('/variableData/name', 'must not contain U+0000'),
    ],
    [
      'with U+0000 in a name',
      '{"variableData":{"na\\u0000me":"Ada"}}',
      at('/variableData/na\0me', 'is a name that must not contain U+0000'),
    ],
    [
      'with half of a surrogate pair in a string',
      '{"variableData":{"name":"Ada\\ud83d"}}',
      at('/variableData/name', 'must not contain a lone surrogate'),
    ],
    [
      'with a surrogate pair the wrong way round',
      '{"variableData":{"tags":["a","\\udca1\\ud83d"]}}',
      at('/variableData/tags/1', 'must not contain a lone surrogate'),
    ],
    [
      'with half of a surrogate pair in a name',
      '{"variableData":{"\\ud800":1}}',
      at(expect.stringMatching(/^\/variableData\//) as unknown as string),
    ],
    [
      'with a byte that UTF-8 does not have',
      Buffer.from('{"variableData":{"name":"\xff"}}', 'latin1'),
      at('', 'must be UTF-8'),
    ],
    ['with an overlong form', Buffer.from('{"variableData":{"name":"\xc0\x80"}}', 'latin1'), at('', 'must be UTF-8')],
    [
      'with an encoded surrogate',
      Buffer.from('{"variableData":{"name":"\xed\xa0\x80"}}', 'latin1'),
      at('', 'must be UTF-8'),
    ],
    ['in UTF-16', Buffer.from(`\uFEFF${good}`, 'utf16le'), at('', 'must be UTF-8')],
    [
      'with a number beyond a double',
      '{"variableData":{"name":"Ada","warmth":1e400}}',
      at('/variableData/warmth', 'must be within the range of a double'),
    ],
    ['with a member __proto__', `{"__proto__":{},${good.slice(1)}`, at('/__proto__', 'is not allowed')],
    [
      'with a variable __proto__',
      '{"variableData":{"name":"Ada","__proto__":{"x":1}}}',
      at('/variableData/__proto__', 'is not allowed'),
    ],
    [
      'with an escaped __proto__',
      '{"variableData":{"\\u005f_proto__":{"x":1}}}',
      at('/variableData/__proto__', 'is not allowed'),
    ],
    [
      'with constructor.prototype',
      '{"variableData":{"constructor":{"prototype":{"x":1}}}}',
      at('/variableData/constructor', 'must not have a member prototype'),
    ],
    [
      'with two members of one name',
      `{"variableData":{},${good.slice(1)}`,
      at('', 'must not have two members of the same name'),
    ],
    ['with another member', `{"note":1,${good.slice(1)}`, at('/note', 'is not a documented member')],
    [
      'with another member whose name has a slash',
      `{"a/b~c":1,${good.slice(1)}`,
      at('/a~1b~0c', 'is not a documented member'),
    ],
    ['without variableData', '{}', at('/variableData', 'is required')],
    ['with variableData that is null', '{"variableData":null}', at('/variableData', 'must be object')],
    ['with variableData that is a list', '{"variableData":[]}', at('/variableData', 'must be object')],
    ['with variableData that is JSON in a string', '{"variableData":"{}"}', at('/variableData', 'must be object')],
    ['without a required variable', '{"variableData":{}}', at('/variableData/name', 'is required')],
    [
      'with an unknown variable',
      '{"variableData":{"name":"Ada","a/b":1}}',
      at('/variableData/a~1b', 'is not a member that the schema names'),
    ],
    ['with a variable of the wrong type', '{"variableData":{"name":1}}', at('/variableData/name', 'must be string')],
    ['with a variable that is null', '{"variableData":{"name":null}}', at('/variableData/name', 'must be string')],
    ['with a variable that is too long', `{"variableData":{"name":"${'a'.repeat(41)}"}}`, at('/variableData/name')],
    [
      'with a variable below its bound',
      '{"variableData":{"name":"Ada","times":0}}',
      at('/variableData/times', 'must be >= 1'),
    ],
    [
      'with a variable above its bound',
      '{"variableData":{"name":"Ada","times":4}}',
      at('/variableData/times', 'must be <= 3'),
    ],
    [
      'with a fraction for an integer',
      '{"variableData":{"name":"Ada","times":1.5}}',
      at('/variableData/times', 'must be integer'),
    ],
    [
      'with a number in a string',
      '{"variableData":{"name":"Ada","times":"1"}}',
      at('/variableData/times', 'must be integer'),
    ],
    [
      'with a bound that is excluded',
      '{"variableData":{"name":"Ada","warmth":0}}',
      at('/variableData/warmth', 'must be > 0'),
    ],
    [
      'with a value that is not in the list',
      '{"variableData":{"name":"Ada","style":"rude"}}',
      at('/variableData/style', 'must be equal to one of the allowed values: "formal", "friendly"'),
    ],
    ['with too many items', '{"variableData":{"name":"Ada","tags":["a","b","c","d"]}}', at('/variableData/tags')],
    [
      'with an item of the wrong type',
      '{"variableData":{"name":"Ada","tags":["a",["b"]]}}',
      at('/variableData/tags/1', 'must be string'),
    ],
    [
      'with an unknown member deep inside',
      '{"variableData":{"name":"Ada","address":{"zip":1}}}',
      at('/variableData/address/zip'),
    ],
    ['with a secret that is too short', '{"variableData":{"name":"Ada","token":"short"}}', at('/variableData/token')],
  ])('%s is refused', (_, body, errors) => expectRefused(body === undefined ? {} : { body }, errors))

  test.each([65, 5_000, 500_000])('that is nested %i levels deep is refused', async (depth) => {
    const errors = at(`/variableData/nested/x${'/0'.repeat(61)}`, 'must not be nested more than 64 levels deep')
    await expectRefused({ path: 'betray', body: nested(depth) }, errors)
  })

  test('that is nested 64 levels deep is accepted', async () => {
    await expectQueued({ path: 'betray', body: nested(64) })
  })

  test('with a byte order mark before the JSON is accepted', async () => {
    await expectQueued({ body: `\uFEFF${good}` })
  })

  test('with any character that I-JSON has is kept as it is', async () => {
    const name = '\u0001\u007f\u2028\u{1F4A1}\uFFFF\\"'
    const answer = await expectQueued({ body: JSON.stringify({ variableData: { name } }) })
    expect(JSON.parse(answer.text).variableData.name).toBe(name)
  })

  test('with many wrong members is refused for the first 20 of them', async () => {
    const variables = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`v${index}`, index]))
    const account = await service.createAccount()
    const body = JSON.stringify({ variableData: variables })
    const answer = await unstored(service.executionUrl, queueRequest(account, { body }))
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    expect(JSON.parse(answer.text).errors).toHaveLength(20)
  })

  test('is never quoted in the answer that refuses it', async () => {
    const account = await service.createAccount()
    for (const body of [
      '{"variableData":{"name":"Ada","token":"canary"}',
      '{"variableData":{"token":"canary"}}',
      '"canary"',
      'canary',
    ]) {
      const answer = await unstored(service.executionUrl, queueRequest(account, { body }))
      expect(answer.status).toBe(400)
      expect(answer.text).not.toContain('canary')
    }
  })
})

describe('a media type', () => {
  test.each([
    [[], 'that is absent'],
    [['Content-Type', ''], 'that is empty'],
    [['Content-Type', 'text/plain'], 'text/plain'],
    [['Content-Type', 'application/xml'], 'application/xml'],
    [['Content-Type', 'application/json; charset=utf-16'], 'in UTF-16'],
    [['Content-Type', 'application/json, text/plain'], 'beside another'],
    [['Content-Type', 'application/json', 'Content-Encoding', 'gzip'], 'with the content coding gzip'],
    [['Content-Type', 'application/json', 'Content-Encoding', 'identity, br'], 'with two content codings'],
  ])('%o is refused with 415', async (headers) => {
    const account = await service.createAccount()
    const answer = await unstored(service.executionUrl, queueRequest(account, { headers, body: good }))
    const title = 'Unsupported media type'
    expectProblem(queueRemoteRun, answer, { kind: 'unsupported-media-type', title, status: 415 })
  })
})

describe('a credential', () => {
  test.each<[what: string, headers: (key: string) => string[], status: number]>([
    ['in the scheme bearer in lower case', (key) => ['authorization', `bearer ${key}`], 202],
    ['in upper case', (key) => ['AUTHORIZATION', `BEARER ${key.toUpperCase()}`], 202],
    ['after two spaces', (key) => ['Authorization', `Bearer  ${key}`], 202],
    ['that is absent', () => [], 401],
    ['without a scheme', (key) => ['Authorization', key], 401],
    ['after a tab', (key) => ['Authorization', `Bearer\t${key}`], 401],
    ['with something behind it', (key) => ['Authorization', `Bearer ${key} ${key}`], 401],
    ['in a list', (key) => ['Authorization', `Bearer ${key}, Bearer ${key}`], 401],
    ['in another scheme', (key) => ['Authorization', `Token ${key}`], 401],
    ['in the header of the other surface', (key) => ['x-service-api-key', key], 401],
    ['in both headers, which is no fault', (key) => ['x-service-api-key', key, 'Authorization', `Bearer ${key}`], 202],
    ['given twice', (key) => ['Authorization', `Bearer ${key}`, 'Authorization', `Bearer ${key}`], 401],
    [
      'given twice, once in each case',
      (key) => ['Authorization', `Bearer ${key}`, 'authorization', `Bearer ${key}`],
      401,
    ],
    ['in the query', () => [], 401],
  ])('%s is answered with %s', async (what, headers, status) => {
    const account = await service.createAccount()
    const path = `/v1/execution/queue-remote/greet${what === 'in the query' ? `?access_token=${account.key}` : ''}`
    const all = [...headers(account.key), 'Content-Type', 'application/json']
    const send = () => sendRaw(service.executionUrl, { method: 'PUT', path, headers: all, body: good })
    const before = rowsStored()
    const answer = await send()
    expect(answer.status).toBe(status)
    if (status !== 401) return
    expect(answer.text).toBe('Unauthorized')
    expect(rowsStored()).toEqual(before)
  })
})

const parameter = (name: string, detail: unknown = anyDetail) => ({ parameter: name, detail })

describe('an integer in the query', () => {
  test.each([
    '',
    '-1',
    '1.5',
    '1e400',
    '0x10',
    '%205',
    '5%20',
    '+5',
    '%2B5',
    '05',
    'five',
    'null',
    'true',
    '[5]',
    '5,6',
    '%EF%BC%95',
    '31536001',
    '1e-1',
    '%00',
    '%zz',
  ])('delaySeconds=%s is refused', async (value) => {
    const account = await service.createAccount()
    const request = queueRequest(account, { query: `?delaySeconds=${value}`, body: good })
    const answer = await unstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: [parameter('delaySeconds')] })
  })

  test.each(['0', '-0', '31536000', '1e1', '1E%2B1', '10.0'])(
    'delaySeconds=%s is accepted: JSON has this integer',
    async (value) => {
      await expectQueued({ query: `?delaySeconds=${value}`, body: good })
    },
  )

  test.each(['expiresInSeconds=0', 'expiresInSeconds=31536001', 'priority=11', 'priority=-11', 'priority=0.1'])(
    '%s is refused',
    async (query) => {
      await expectRefused({ query: `?${query}`, body: good }, [parameter(query.replace(/=.*/, ''))])
    },
  )
})

describe('the query', () => {
  test.each([
    ['colour=red', 'colour'],
    ['colour', 'colour'],
    ['=1', ''],
    ['delayseconds=1', 'delayseconds'],
    ['delaySeconds%20=1', 'delaySeconds '],
    ['delaySeconds[]=1', 'delaySeconds[]'],
    ['delaySeconds[=1', 'delaySeconds['],
    ['delaySeconds.x=1', 'delaySeconds.x'],
    ['__proto__=1', '__proto__'],
    ['constructor[prototype]=1', 'constructor[prototype]'],
    ['%F0%9F%92%A1=1', '💡'],
    ['%zz=1', '%zz'],
  ])('?%s is refused: no operation documents it', async (query, name) => {
    await expectRefused({ query: `?${query}`, body: good }, [parameter(name, 'is not a parameter of this operation')])
  })

  test.each(['delaySeconds=1&delaySeconds=1', 'delaySeconds=1&delaySeconds=2', 'delaySeconds=1&delay%53econds=1'])(
    '?%s is refused',
    async (query) => {
      await expectRefused({ query: `?${query}`, body: good }, [parameter('delaySeconds', 'is given more than once')])
    },
  )

  test('is refused for each of its faults at once', async () => {
    const query = '?delaySeconds=x&priority=99&colour=red'
    await expectRefused({ query, body: '{"variableData":[]}' }, [
      parameter('delaySeconds', 'must be integer'),
      parameter('priority', 'must be <= 10'),
      parameter('colour', 'is not a parameter of this operation'),
      ...at('/variableData', 'must be object'),
    ])
  })

  test.each(['?', '?&', '?delaySeconds=5&', '?&&delaySeconds=5'])('%s is accepted', async (query) => {
    await expectQueued({ query, body: good })
  })
})

describe('a filter of the list', () => {
  test.each([
    ['limit', ['', '0', '101', '-5', '1.5', '0x10', '%205', 'x']],
    ['status', ['', 'done', 'Queued', 'queued,running', 'queued%00']],
    ['workflowId', ['', 'a%20b', 'a%2Fb', '%C3%A4', 'a'.repeat(129)]],
    [
      'cursor',
      ['', 'x', '.', 'a.b', '%20', 'a'.repeat(513), '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07.AAAAAAAAAAAAAAAAAAAAAA'],
    ],
    [
      'createdAfter',
      [
        ...[
          '',
          'yesterday',
          '1767225600',
          '2026-01-01',
          '2026-01-01T00:00:00',
          '2026-02-30T00:00:00Z',
          '2026-13-01T00:00:00Z',
        ],
        ...[
          '2026-01-01T24:00:00Z',
          '2026-12-31T23:59:60Z',
          '2026-01-01T00:00:00+01:00',
          '2026-01-01%2000:00:00Z',
          '26-01-01T00:00:00Z',
        ],
        ...['2026-01-01T00:00:00Z%00', '2026-01-01T00:00:00%2B1:00', '2023-02-29T00:00:00Z'],
      ],
    ],
    ['createdBefore', ['2026-02-30T00:00:00Z', '2026-01-01T00:00:00']],
  ])('%s is refused unless it is as documented', async (name, values) => {
    const account = await service.createAccount()
    const headers = ['Authorization', `Bearer ${account.key}`]
    for (const value of values) {
      const answer = await unstored(service.executionUrl, {
        method: 'GET',
        path: `/v1/execution/runs?${name}=${value}`,
        headers,
      })
      expectProblem(listRuns, answer, { ...invalid, errors: expect.any(Array) })
      for (const error of JSON.parse(answer.text).errors) expect(error, value).toEqual(parameter(name))
    }
  })

  test.each([
    '2024-02-29T00:00:00Z',
    '2026-01-01T00:00:00.123456789Z',
    '2026-01-01t00:00:00z',
    '2026-01-01T00:00:00%2B01:00',
    '2026-01-01T00:00:00-23:59',
  ])('createdAfter=%s is accepted', async (moment) => {
    const account = await service.createAccount()
    const headers = ['Authorization', `Bearer ${account.key}`]
    const answer = await sendRaw(service.executionUrl, {
      method: 'GET',
      path: `/v1/execution/runs?createdAfter=${moment}`,
      headers,
    })
    expect(answer.status, answer.text).toBe(200)
  })
})

describe('an id in the path', () => {
  test.each([
    'a'.repeat(129),
    'a%20b',
    'a%2Fb',
    'a%00',
    '%zz',
    '%E0%A4%A',
    '%',
    'a+b',
    'a%0A',
    '%C3%A4',
    '%F0%9F%92%A1',
    'a;b',
    'a:b',
  ])('of the workflow %s is refused', async (path) => {
    const account = await service.createAccount()
    const answer = await unstored(service.executionUrl, queueRequest(account, { path, body: good }))
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors) expect(error).toEqual(parameter('workflowId'))
  })

  test.each([
    '1',
    'x',
    '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c0',
    '0198f2c57a107c3e9d512f6b8a4e1c07',
    '%7B0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07%7D',
    'urn:uuid:0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07',
    '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07%0A',
    '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07%00',
    '%zz',
    'g198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07',
  ])('of the run %s is refused', async (id) => {
    const account = await service.createAccount()
    const headers = ['Authorization', `Bearer ${account.key}`]
    const answer = await unstored(service.executionUrl, { method: 'GET', path: `/v1/execution/runs/${id}`, headers })
    expectProblem(operationOf('getRun'), answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors) expect(error).toEqual(parameter('runId'))
  })
})

describe('the header', () => {
  const json = ['Content-Type', 'application/json']

  test.each<[what: string, headers: string[]]>([
    ['that is empty', ['Idempotency-Key', '']],
    ['of 129 characters', ['Idempotency-Key', 'a'.repeat(129)]],
    ['with a space', ['Idempotency-Key', 'a b']],
    ['with a letter that ASCII does not have', ['Idempotency-Key', 'ä']],
    ['with a tab', ['Idempotency-Key', 'a\tb']],
    ['given twice', ['Idempotency-Key', 'a', 'Idempotency-Key', 'a']],
  ])('Idempotency-Key %s is refused', async (_, headers) => {
    const account = await service.createAccount()
    const answer = await unstored(
      service.executionUrl,
      queueRequest(account, { headers: [...json, ...headers], body: good }),
    )
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors)
      expect(error).toEqual({ header: 'Idempotency-Key', detail: anyDetail })
  })

  test('Prefer of 257 characters is refused', async () => {
    const errors = [{ header: 'Prefer', detail: 'must NOT have more than 256 characters' }]
    await expectRefused({ headers: [...json, 'Prefer', 'x'.repeat(257)], body: good }, errors)
  })

  test.each(['', 'x', '=', ';;;', 'wait', 'wait=', 'wait=x', 'wait=-1', 'wait=9999999999', '"', 'ä', 'wait=1e1'])(
    'Prefer: %s is ignored, as RFC 7240 asks',
    async (value) => {
      const answer = await expectQueued({ headers: [...json, 'Prefer', value], body: good })
      expect(answer.headers['preference-applied']).toBeUndefined()
    },
  )

  test('Last-Event-ID that is not a number is refused', async () => {
    const account = await service.createAccount()
    const path = `/v1/execution/runs/${await queueRun(service, account)}/events`
    const headers = ['Authorization', `Bearer ${account.key}`, 'Last-Event-ID', 'latest']
    const answer = await unstored(service.executionUrl, { method: 'GET', path, headers })
    const errors = [{ header: 'Last-Event-ID', detail: anyDetail }]
    expectProblem(operationOf('streamRunEvents'), answer, { ...invalid, errors })
  })
})

describe('a body where none is expected', () => {
  test.each<[method: string, path: string, surface: 'execution' | 'browserContext']>([
    ['GET', '/v1/execution/runs', 'execution'],
    ['GET', '/v1/execution/workflows/greet', 'execution'],
    ['POST', '/v1/execution/runs/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07/cancel', 'execution'],
    ['GET', '/alpha/browser-contexts', 'browserContext'],
    ['DELETE', '/alpha/browser-contexts/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07', 'browserContext'],
  ])('of %s %s is refused', async (method, path, surface) => {
    const account = await service.createAccount()
    const headers = [...Object.entries(credential({ surface }, account.key)).flat(), 'Content-Type', 'application/json']
    const url = surface === 'execution' ? service.executionUrl : service.browserContextUrl
    for (const chunked of [false, true]) {
      const answer = await unstored(url, { method, path, headers, body: '{}', chunked })
      expectProblem(undefined, answer, { ...invalid, errors: at('', 'This operation takes no body.') })
    }
  })
})

describe('a path or method that does not exist', () => {
  const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

  test.each([
    '/',
    '/v1',
    '/v1/execution',
    '/v1/execution/runs/',
    '/V1/execution/runs',
    '/v1/Execution/runs',
    '//v1/execution/runs',
    '/v1//execution/runs',
    '/v1/execution/./runs',
    '/v1/execution/x/../runs',
    '/v1/execution/runs%2F',
    '/v1/execution/%72uns',
    `/v1/execution/runs/${id}/`,
    `/v1/execution/runs/${id}/events/`,
    '/v1/execution/runs//events',
    '/v1/execution/queue-remote',
    '/v1/execution/queue-remote/',
    '/v1/execution/queue-remote/a/b',
    '/v2/execution/runs',
    '/alpha/browser-contexts',
    '/metrics',
    '/livez',
    '/docs/errors',
  ])('%s is answered with 404', async (path) => {
    for (const method of ['GET', 'PUT']) {
      expectProblem(undefined, await unstored(service.executionUrl, { method, path }), notFound)
    }
  })

  test('the surfaces do not serve each other', async () => {
    const answer = await unstored(service.browserContextUrl, { method: 'GET', path: '/v1/execution/runs' })
    expectProblem(undefined, answer, notFound)
  })

  test.each([
    ['POST', '/v1/execution/queue-remote/greet', 'PUT'],
    ['GET', '/v1/execution/queue-remote/greet', 'PUT'],
    ['OPTIONS', '/v1/execution/queue-remote/greet', 'PUT'],
    ['POST', '/v1/execution/runs', 'GET'],
    ['DELETE', `/v1/execution/runs/${id}`, 'GET'],
    ['GET', `/v1/execution/runs/${id}/cancel`, 'POST'],
    ['POST', `/v1/execution/runs/${id}/events`, 'GET'],
    ['PATCH', '/v1/execution/workflows', 'GET'],
    ['TRACE', '/v1/execution/workflows', 'GET'],
    ['PROPFIND', '/v1/execution/workflows', 'GET'],
    ['QUERY', '/v1/execution/workflows/greet', 'GET'],
    ['PUT', '/alpha/browser-contexts', 'GET, POST'],
    ['OPTIONS', '/alpha/browser-contexts', 'GET, POST'],
    ['POST', `/alpha/browser-contexts/${id}`, 'GET, PATCH, DELETE'],
  ])('%s %s is answered with 405 and Allow: %s', async (method, path, allow) => {
    const url = path.startsWith('/alpha') ? service.browserContextUrl : service.executionUrl
    const answer = await unstored(url, { method, path })
    const detail = expect.stringContaining(allow.split(', ')[0] as string)
    expectProblem(undefined, answer, { kind: 'method-not-allowed', title: 'Method not allowed', status: 405, detail })
    expect(String(answer.headers.allow).split(', ').sort()).toEqual(allow.split(', ').sort())
  })

  test('HEAD is answered as any other method that a path does not have, without a body', async () => {
    const answer = await unstored(service.executionUrl, { method: 'HEAD', path: '/v1/execution/runs' })
    expect(answer).toMatchObject({
      status: 405,
      text: '',
      headers: { allow: 'GET', 'content-type': 'application/problem+json' },
    })
    const unknown = await unstored(service.executionUrl, { method: 'HEAD', path: '/nothing' })
    expect(unknown).toMatchObject({ status: 404, text: '' })
  })
})

describe('the size', () => {
  const tooLarge = { kind: 'content-too-large', title: 'Content too large', status: 413 }

  test.each([false, true])('of 2 MiB is refused (in chunks: %s)', async (chunked) => {
    const account = await service.createAccount()
    const body = good.padEnd(2 * mebibyte)
    const answer = await unstored(service.executionUrl, queueRequest(account, { body, chunked }))
    expectProblem(queueRemoteRun, answer, tooLarge)
    expect(answer.headers.connection).toBe('close')
  })

  test.each([false, true])('of exactly 1 MiB is accepted (in chunks: %s)', async (chunked) => {
    await expectQueued({ body: good.padEnd(mebibyte), chunked })
  })

  test.each([false, true])('of one byte more is refused (in chunks: %s)', async (chunked) => {
    const account = await service.createAccount()
    const answer = await unstored(
      service.executionUrl,
      queueRequest(account, { body: good.padEnd(mebibyte + 1), chunked }),
    )
    expectProblem(queueRemoteRun, answer, tooLarge)
  })

  test('that is announced is refused before the body is sent, by one answer', async () => {
    const { key } = await service.createAccount()
    const head = `PUT /v1/execution/queue-remote/greet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`
    const answer = await sendText(
      service.executionUrl,
      `${head}Content-Type: application/json\r\nContent-Length: ${2 * mebibyte}\r\n\r\n`,
      413,
    )
    expectProblem(queueRemoteRun, answer, tooLarge)
  })

  test('is not looked at before the credential', async () => {
    const path = '/v1/execution/queue-remote/greet'
    const headers = ['Content-Type', 'application/json']
    const answer = await unstored(service.executionUrl, {
      method: 'PUT',
      path,
      headers,
      body: good.padEnd(2 * mebibyte),
    })
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test.each([
    ['one header', (bytes: number) => ['X-Large', 'a'.repeat(bytes)]],
    [
      'many headers',
      (bytes: number) => Array.from({ length: bytes / 16 }, (_, index) => [`X-${index}`, 'a'.repeat(8)]).flat(),
    ],
  ])('of more than 16 KiB in %s is refused', async (_, headersOf) => {
    const answer = await unstored(service.executionUrl, {
      method: 'GET',
      path: '/v1/execution/runs',
      headers: headersOf(20_480),
    })
    const title = 'Header fields too large'
    expectProblem(undefined, answer, { kind: 'header-fields-too-large', title, status: 431 })
  })

  test('of more than 16 KiB in the path is refused', async () => {
    const answer = await unstored(service.executionUrl, { method: 'GET', path: `/${'a'.repeat(20_480)}` })
    expect([431, 404]).toContain(answer.status)
    expect(answer.headers['content-type']).toBe('application/problem+json')
  })
})

describe('what is not HTTP', () => {
  const runs = 'GET /v1/execution/runs HTTP/1.1\r\nHost: x\r\n'
  const put = 'PUT /v1/execution/queue-remote/greet HTTP/1.1\r\nHost: x\r\n'

  test.each<[what: string, text: string]>([
    ['words', 'Good morning!\r\n\r\n'],
    ['a TLS handshake', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['an unknown method', 'BREW /v1/execution/runs HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a method in lower case', 'get /v1/execution/runs HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET /v1/execution/runs HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a request without Host', 'GET /v1/execution/runs HTTP/1.1\r\n\r\n'],
    ['a space in the path', 'GET /v1/execution/runs x HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a letter in the path that ASCII does not have', 'GET /v1/execution/workflows/\xe4 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a colon', `${runs}Nonsense\r\n\r\n`],
    ['a space before the colon', `${runs}X-Y : z\r\n\r\n`],
    ['the byte 0 in a header', `${runs}X-Y: a\0b\r\n\r\n`],
    ['a folded header', `${runs}X-Y: a\r\n b\r\n\r\n`],
    ['a length that is no number', `${put}Content-Length: five\r\n\r\n`],
    ['a length below 0', `${put}Content-Length: -1\r\n\r\n`],
    ['two lengths', `${put}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ['a length beside chunks', `${put}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks and something else', `${put}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
  ])('%s: is answered with a problem, and the connection is closed', async (_, text) => {
    const before = rowsStored()
    const answer = await sendText(service.executionUrl, text)
    expect(answer.headers['content-type'], answer.text).toBe('application/problem+json')
    const { type, title, status } = JSON.parse(answer.text)
    expect({ status: answer.status, type, title }).toEqual({
      status,
      type: '/docs/errors#invalid-request',
      title: 'Invalid request',
    })
    expectProblem(undefined, answer, invalid)
    expect(rowsStored()).toEqual(before)
  })

  test('an expectation that is not known is ignored (RFC 9110, section 10.1.1)', async () => {
    const answer = await sendText(service.executionUrl, `${runs}Expect: miracles\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(answer.headers['x-request-id']).toBeDefined()
  })

  test('a chunk of no known size ends the request, which stores nothing', async () => {
    const { key } = await service.createAccount()
    const before = rowsStored()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const answer = await sendText(service.executionUrl, `${head}zz\r\n`)
    expectProblem(undefined, answer, invalid)
    expect(rowsStored()).toEqual(before)
  })

  test('a body that ends before its length stores nothing, and the service goes on', async () => {
    const account = await service.createAccount()
    const before = rowsStored()
    const head = `${put}Authorization: Bearer ${account.key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`
    await sendText(service.executionUrl, `${head}${good}`, 'end')
    expect(rowsStored()).toEqual(before)
    await expectQueued({ body: good })
  })

  test('what follows a refused body is not taken for another request', async () => {
    const { key } = await service.createAccount()
    const inner = `GET /v1/execution/workflows HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const outer = `${runs}Authorization: Bearer ${key}\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`
    const answer = await sendText(service.executionUrl, outer)
    expect(answer.status).toBe(400)
    expect(answer.text.match(/HTTP\/1\.1/g)).toBeNull()
  })
})

test('a request that does not arrive whole within 10 seconds is answered with 408, and the connection is closed', async () => {
  const answer = await slow.answer
  expectProblem(undefined, answer, { kind: 'request-timeout', title: 'Request timeout', status: 408 })
  expect(performance.now() - slow.startedAt).toBeLessThan(13_000)
})
