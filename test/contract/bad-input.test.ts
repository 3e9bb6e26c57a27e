/** Each wrong thing that a caller can put into a request is refused as documented, by the member at fault; nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import { sendRaw } from './http.ts'
import { credential, queueRun } from './requests.ts'
import {
  anyDetail,
  at,
  bearer,
  good,
  header,
  invalid,
  json,
  parameter,
  queueRequest,
  wrongRequests,
} from './wrong-requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { storingNothing, unstored, expectRefused, expectQueued } = wrongRequests(() => service)

/** The body with these variables, as they stand in JSON. */
const variables = (text: string) => `{"variableData":{${text}}}`
/** The body with another member before the good one. */
const beside = (text: string) => `{${text},${good.slice(1)}`
const latin1 = (text: string) => Buffer.from(text, 'latin1')
/** Objects and arrays inside each other, three of them the members that lead there. */
const nested = (depth: number) => {
  const arrays = '['.repeat(depth - 3) + ']'.repeat(depth - 3)
  return variables(`"token":"very secret","fails":true,"nested":{"x":${arrays}}`)
}

describe('a body', () => {
  test.each<[what: string, request: { body?: string }]>([
    ['that is absent', {}],
    ['that is empty', { body: '' }],
    ['of a byte order mark alone', { body: '\uFEFF' }],
  ])('%s is refused: one is required', async (_, request) => {
    await expectRefused(request, [at('', 'is required')])
  })

  test.each([
    ['white space alone', ' \r\n\t'],
    ['two values', good + good],
    ['half a value', good.slice(0, -1)],
    ['a comma too much', '{"variableData":{"name":"Ada"},}'],
    ['single quotes', "{'variableData':{}}"],
    ['a comment', `/**/${good}`],
    ['NaN', variables('"warmth":NaN')],
    ['a line break in a string', variables('"name":"A\nda"')],
    ['the byte 0 in a string', variables('"name":"A\0da"')],
  ])('of %s is refused: it is not JSON', async (_, body) => {
    await expectRefused({ body }, [at('', expect.stringContaining('is not JSON'))])
  })

  test.each([
    ['a byte that it does not have', latin1(variables('"name":"\xff"'))],
    ['an overlong form', latin1(variables('"name":"\xc0\x80"'))],
    ['an encoded surrogate', latin1(variables('"name":"\xed\xa0\x80"'))],
    ['a character that is cut off', latin1(variables('"name":"\xe2\x82"'))],
    ['UTF-16 instead', Buffer.from(`\uFEFF${good}`, 'utf16le')],
  ])('with %s is refused: it is not UTF-8', async (_, body) => {
    await expectRefused({ body }, [at('', 'must be UTF-8')])
  })

  test.each(['null', '[]', '"a"', '1', 'true'])('%s is refused: it is not an object', async (body) => {
    await expectRefused({ body }, [at('', 'must be object')])
  })

  test.each<[what: string, body: string, pointer: unknown, detail: string]>([
    ['U+0000 in a string', variables('"name":"A\\u0000da"'), '/variableData/name', 'must not contain U+0000'],
    ['U+0000 in a name', variables('"a\\u0000b":1'), '/variableData/a\0b', 'is a name that must not contain U+0000'],
    ['half a surrogate pair', variables('"name":"\\ud83d"'), '/variableData/name', 'must not contain a lone surrogate'],
    [
      'a pair the wrong way',
      variables('"tags":["\\udca1\\ud83d"]'),
      '/variableData/tags/0',
      'must not contain a lone surrogate',
    ],
    [
      'half a pair in a name',
      variables('"\\ud800":1'),
      expect.any(String),
      'is a name that must not contain a lone surrogate',
    ],
    [
      'a number beyond a double',
      variables('"warmth":1e400'),
      '/variableData/warmth',
      'must be within the range of a double',
    ],
    [
      'a number far below zero',
      variables('"warmth":-1e400'),
      '/variableData/warmth',
      'must be within the range of a double',
    ],
    ['a member __proto__', beside('"__proto__":{}'), '/__proto__', 'is not allowed'],
    ['a variable __proto__', variables('"__proto__":{"x":1}'), '/variableData/__proto__', 'is not allowed'],
    ['an escaped __proto__', variables('"\\u005f_proto__":1'), '/variableData/__proto__', 'is not allowed'],
    [
      'constructor.prototype',
      variables('"constructor":{"prototype":1}'),
      '/variableData/constructor',
      'must not have a member prototype',
    ],
    ['two members of one name', beside('"variableData":{}'), '', 'must not have two members of the same name'],
  ])('with %s is refused: it is not the JSON that is taken', async (_, body, pointer, detail) => {
    await expectRefused({ body }, [at(pointer as string, detail)])
  })

  test.each([
    ['another member', beside('"note":1'), '/note', 'is not a documented member'],
    ['a member with a slash in its name', beside('"a/b~c":1'), '/a~1b~0c', 'is not a documented member'],
    ['no variableData', '{}', '/variableData', 'is required'],
    ['variableData that is null', '{"variableData":null}', '/variableData', 'must be object'],
    ['variableData that is a list', '{"variableData":[]}', '/variableData', 'must be object'],
    ['variableData as JSON in a string', '{"variableData":"{}"}', '/variableData', 'must be object'],
  ])('with %s is refused: it does not fit the document', async (_, body, pointer, detail) => {
    await expectRefused({ body }, [at(pointer, detail)])
  })

  const ada = '"name":"Ada"'
  test.each<[what: string, text: string, pointer: string, detail: unknown]>([
    ['a missing one', '', '/name', 'is required'],
    ['an unknown one', `${ada},"a/b":1`, '/a~1b', 'is not a member that the schema names'],
    ['one of the wrong type', '"name":1', '/name', 'must be string'],
    ['null', '"name":null', '/name', 'must be string'],
    ['one that is too long', `"name":"${'a'.repeat(41)}"`, '/name', 'must NOT have more than 40 characters'],
    ['one below its bound', `${ada},"times":0`, '/times', 'must be >= 1'],
    ['one above its bound', `${ada},"times":4`, '/times', 'must be <= 3'],
    ['one at a bound that is excluded', `${ada},"warmth":0`, '/warmth', 'must be > 0'],
    ['a fraction for an integer', `${ada},"times":1.5`, '/times', 'must be integer'],
    ['a number in a string', `${ada},"times":"1"`, '/times', 'must be integer'],
    ['one that is not in the list', `${ada},"style":"rude"`, '/style', expect.stringContaining('"formal", "friendly"')],
    ['too many items', `${ada},"tags":["a","b","c","d"]`, '/tags', 'must NOT have more than 3 items'],
    ['an item of the wrong type', `${ada},"tags":["a",["b"]]`, '/tags/1', 'must be string'],
    ['an unknown member deep inside', `${ada},"address":{"zip":1}`, '/address/zip', anyDetail],
    ['a secret that is too short', `${ada},"token":"short"`, '/token', 'must NOT have fewer than 8 characters'],
  ])(
    'with a wrong variable (%s) is refused: it does not fit the schema of its workflow',
    async (_, text, pointer, detail) => {
      await expectRefused({ body: variables(text) }, [at(`/variableData${pointer}`, detail)])
    },
  )

  test.each([65, 5_000, 500_000])('that is nested %i levels deep is refused', async (depth) => {
    const pointer = `/variableData/nested/x${'/0'.repeat(61)}`
    await expectRefused({ path: 'betray', body: nested(depth) }, [
      at(pointer, 'must not be nested more than 64 levels deep'),
    ])
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
    const many = Array.from({ length: 1000 }, (_, index) => `"v${index}":${index}`).join(',')
    const request = queueRequest(await service.createAccount(), { body: variables(many) })
    const answer = await unstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    expect(JSON.parse(answer.text).errors).toHaveLength(20)
  })

  test.each([
    variables('"token":"canary"'),
    variables('"name":"canary","token":"canary"').slice(1),
    '"canary"',
    'canary',
  ])('%s is not quoted by the answer that refuses it', async (body) => {
    const answer = await unstored(service.executionUrl, queueRequest(await service.createAccount(), { body }))
    expect(answer.status).toBe(400)
    expect(answer.text).not.toContain('canary')
  })
})

describe('a body of another kind', () => {
  test.each<[what: string, headers: string[]]>([
    ['without a Content-Type', []],
    ['with an empty Content-Type', ['Content-Type', '']],
    ['of text', ['Content-Type', 'text/plain']],
    ['of XML', ['Content-Type', 'application/xml']],
    ['in UTF-16', ['Content-Type', 'application/json; charset=utf-16']],
    ['of two kinds', ['Content-Type', 'application/json, text/plain']],
    ['with the content coding gzip', [...json, 'Content-Encoding', 'gzip']],
    ['with two content codings', [...json, 'Content-Encoding', 'identity, br']],
  ])('%s is refused with 415', async (_, headers) => {
    const request = queueRequest(await service.createAccount(), { headers, body: good })
    const title = 'Unsupported media type'
    const problem = { kind: 'unsupported-media-type', title, status: 415 }
    expectProblem(queueRemoteRun, await unstored(service.executionUrl, request), problem)
  })

  test.each<[method: string, path: string, surface: 'execution' | 'browserContext']>([
    ['GET', '/v1/execution/runs', 'execution'],
    ['GET', '/v1/execution/workflows/greet', 'execution'],
    ['POST', '/v1/execution/runs/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07/cancel', 'execution'],
    ['GET', '/alpha/browser-contexts', 'browserContext'],
    ['DELETE', '/alpha/browser-contexts/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07', 'browserContext'],
  ])('that %s %s does not take is refused', async (method, path, surface) => {
    const account = await service.createAccount()
    const headers = [...Object.entries(credential({ surface }, account.key)).flat(), ...json]
    const url = surface === 'execution' ? service.executionUrl : service.browserContextUrl
    for (const chunked of [false, true]) {
      const answer = await unstored(url, { method, path, headers, body: '{}', chunked })
      expectProblem(undefined, answer, { ...invalid, errors: [at('', 'This operation takes no body.')] })
    }
  })
})

describe('a credential', () => {
  const queueWith = (headers: string[], query = '') => {
    const path = `/v1/execution/queue-remote/greet${query}`
    return sendRaw(service.executionUrl, { method: 'PUT', path, headers: [...headers, ...json], body: good })
  }

  test.each<[what: string, headers: (key: string) => string[]]>([
    ['that is absent', () => []],
    ['without a scheme', (key) => ['Authorization', key]],
    ['after a tab', (key) => ['Authorization', `Bearer\t${key}`]],
    ['with something behind it', (key) => ['Authorization', `Bearer ${key} ${key}`]],
    ['in a list', (key) => ['Authorization', `Bearer ${key}, Bearer ${key}`]],
    ['in another scheme', (key) => ['Authorization', `Token ${key}`]],
    ['in Basic authentication', (key) => ['Authorization', `Basic ${btoa(`${key}:${key}`)}`]],
    ['in the header of the other surface', (key) => ['x-service-api-key', key]],
    ['that is given twice', (key) => ['Authorization', `Bearer ${key}`, 'Authorization', `Bearer ${key}`]],
    [
      'that is given twice, under one name',
      (key) => ['Authorization', `Bearer ${key}`, 'authorization', `Bearer ${key}`],
    ],
  ])('%s is refused', async (_, headers) => {
    const { key } = await service.createAccount()
    const answer = await storingNothing(() => queueWith(headers(key)))
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test('in the query is refused', async () => {
    const { key } = await service.createAccount()
    const answer = await storingNothing(() => queueWith([], `?access_token=${key}`))
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test.each<[what: string, headers: (key: string) => string[]]>([
    ['with its scheme in lower case', (key) => ['authorization', `bearer ${key}`]],
    ['in upper case', (key) => ['AUTHORIZATION', `BEARER ${key.toUpperCase()}`]],
    ['after two spaces', (key) => ['Authorization', `Bearer  ${key}`]],
    ['beside the header of the other surface', (key) => ['x-service-api-key', key, 'Authorization', `Bearer ${key}`]],
  ])('%s is accepted', async (_, headers) => {
    const { key } = await service.createAccount()
    expect((await queueWith(headers(key))).status).toBe(202)
  })
})

describe('a number in the query', () => {
  const notIntegers = [
    '',
    '-1',
    '1.5',
    '1e400',
    '-1e400',
    '1e-1',
    '0x10',
    '%205',
    '5%20',
    '+5',
    '%2B5',
    '05',
    '5,6',
    '[5]',
  ]
  const notNumbers = ['five', 'null', 'true', 'Infinity', 'NaN', '%EF%BC%95', '%00', '%zz', '31536001']

  test.each([...notIntegers, ...notNumbers])('delaySeconds=%s is refused', async (value) => {
    await expectRefused({ query: `?delaySeconds=${value}`, body: good }, [parameter('delaySeconds')])
  })

  test.each(['0', '-0', '31536000', '1e1', '1E%2B1', '10.0'])(
    'delaySeconds=%s is accepted: it is an integer as JSON writes it',
    async (value) => {
      await expectQueued({ query: `?delaySeconds=${value}`, body: good })
    },
  )

  test.each([
    ['expiresInSeconds', ['0', '31536001', '1e400', '']],
    ['priority', ['11', '-11', '0.1', '1e400', '-1e400']],
  ])('%s is refused beyond its bounds', async (name, values) => {
    for (const value of values) await expectRefused({ query: `?${name}=${value}`, body: good }, [parameter(name)])
  })

  test.each(['delaySeconds=5&expiresInSeconds=5', 'delaySeconds=5&expiresInSeconds=1'])(
    '%s is refused: the run could never start',
    async (query) => {
      const errors = [parameter('expiresInSeconds', 'must be longer than delaySeconds')]
      await expectRefused({ query: `?${query}`, body: good }, errors)
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
    '?%s is refused: a parameter is given once',
    async (query) => {
      await expectRefused({ query: `?${query}`, body: good }, [parameter('delaySeconds', 'is given more than once')])
    },
  )

  test('is refused for each of its faults at once, and for those of the body', async () => {
    const query = '?delaySeconds=x&priority=99&colour=red'
    await expectRefused({ query, body: '{"variableData":[]}' }, [
      parameter('delaySeconds', 'must be integer'),
      parameter('priority', 'must be <= 10'),
      parameter('colour', 'is not a parameter of this operation'),
      at('/variableData', 'must be object'),
    ])
  })

  test.each(['?', '?&', '?delaySeconds=5&', '?&&delaySeconds=5'])('%s is accepted', async (query) => {
    await expectQueued({ query, body: good })
  })
})

describe('a filter of the list', () => {
  const list = async (query: string) => {
    const headers = bearer(await service.createAccount())
    return unstored(service.executionUrl, { method: 'GET', path: `/v1/execution/runs?${query}`, headers })
  }

  const notMoments = ['', 'yesterday', '1767225600', '2026-01-01', '26-01-01T00:00:00Z', '2026-01-01T00:00:00']
  const noSuchMoments = ['2026-02-30T00:00:00Z', '2023-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01T24:00:00Z']
  const otherwiseWritten = [
    '2026-12-31T23:59:60Z',
    '2026-01-01%2000:00:00Z',
    '2026-01-01T00:00:00%2B1:00',
    '2026-01-01T00:00:00Z%00',
  ]
  const unescapedPlus = '2026-01-01T00:00:00+01:00'
  const forged = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07.AAAAAAAAAAAAAAAAAAAAAA'

  test.each([
    ['limit', ['', '0', '101', '-5', '1.5', '0x10', '1e400', '%205', 'x']],
    ['status', ['', 'done', 'Queued', 'queued,running', 'queued%00']],
    ['workflowId', ['', 'a%20b', 'a%2Fb', '%C3%A4', 'a'.repeat(129)]],
    ['cursor', ['', 'x', '.', 'a.b', '%20', 'a'.repeat(513), forged]],
    ['createdAfter', [...notMoments, ...noSuchMoments, ...otherwiseWritten, unescapedPlus]],
    ['createdBefore', [...notMoments, ...noSuchMoments]],
  ])('%s is refused unless it is as documented', async (name, values) => {
    for (const value of values) {
      const answer = await list(`${name}=${value}`)
      expectProblem(operationOf('listRuns'), answer, { ...invalid, errors: expect.any(Array) })
      for (const error of JSON.parse(answer.text).errors) expect(error, value).toEqual(parameter(name))
    }
  })

  const withOffset = ['2026-01-01T00:00:00%2B01:00', '2026-01-01T00:00:00-23:59']
  test.each(['2024-02-29T00:00:00Z', '2026-01-01T00:00:00.123456789Z', '2026-01-01t00:00:00z', ...withOffset])(
    'createdAfter=%s is accepted',
    async (moment) => {
      const answer = await list(`createdAfter=${moment}`)
      expect(answer.status, answer.text).toBe(200)
    },
  )
})

describe('an id in the path', () => {
  const wrongText = ['a'.repeat(129), 'a%20b', 'a%2Fb', 'a%00', 'a%0A', 'a+b', 'a;b', 'a:b', '%C3%A4', '%F0%9F%92%A1']
  const wrongEscapes = ['%', '%zz', '%E0%A4%A']

  test.each([...wrongText, ...wrongEscapes])('of the workflow %s is refused', async (path) => {
    const answer = await unstored(
      service.executionUrl,
      queueRequest(await service.createAccount(), { path, body: good }),
    )
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors) expect(error).toEqual(parameter('workflowId'))
  })

  const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
  const almost = [id.slice(1), `${id}0`, id.replaceAll('-', ''), id.replace('0', 'g'), `${id}%0A`, `${id}%00`]
  test.each(['1', ...almost, `%7B${id}%7D`, `urn:uuid:${id}`, '%zz'])('of the run %s is refused', async (runId) => {
    const headers = bearer(await service.createAccount())
    const path = `/v1/execution/runs/${runId}`
    const answer = await unstored(service.executionUrl, { method: 'GET', path, headers })
    expectProblem(operationOf('getRun'), answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors) expect(error).toEqual(parameter('runId'))
  })
})

describe('the header', () => {
  test.each<[what: string, values: string[]]>([
    ['that is empty', ['']],
    ['of 129 characters', ['a'.repeat(129)]],
    ['with a space', ['a b']],
    ['with a tab', ['a\tb']],
    ['with a letter that ASCII does not have', ['ä']],
    ['that is given twice', ['a', 'a']],
  ])('Idempotency-Key %s is refused', async (_, values) => {
    const headers = [...json, ...values.flatMap((value) => ['Idempotency-Key', value])]
    const request = queueRequest(await service.createAccount(), { headers, body: good })
    const answer = await unstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(answer.text).errors) expect(error).toEqual(header('Idempotency-Key'))
  })

  test('Prefer of 257 characters is refused', async () => {
    const errors = [header('Prefer', 'must NOT have more than 256 characters')]
    await expectRefused({ headers: [...json, 'Prefer', 'x'.repeat(257)], body: good }, errors)
  })

  test.each(['', 'x', '=', ';;;', '"', 'ä', 'wait', 'wait=', 'wait=x', 'wait=-1', 'wait=1e1', 'wait=9999999999'])(
    'Prefer: %s is ignored, as RFC 7240 asks',
    async (value) => {
      const answer = await expectQueued({ headers: [...json, 'Prefer', value], body: good })
      expect(answer.headers['preference-applied']).toBeUndefined()
    },
  )

  test('Last-Event-ID that is not a number is refused', async () => {
    const account = await service.createAccount()
    const path = `/v1/execution/runs/${await queueRun(service, account)}/events`
    const headers = [...bearer(account), 'Last-Event-ID', 'latest']
    const answer = await unstored(service.executionUrl, { method: 'GET', path, headers })
    expectProblem(operationOf('streamRunEvents'), answer, { ...invalid, errors: [header('Last-Event-ID')] })
  })
})
