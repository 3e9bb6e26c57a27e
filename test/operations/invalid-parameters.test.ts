/** Invalid credentials, parameters and headers get the documented response, and nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import {
  at,
  bearer,
  buildQueueRequest,
  good,
  header,
  invalid,
  json,
  parameter,
  refusalHelpers,
} from './expect-refused.ts'
import { acceptedCredentials, badCredentials } from './malformed-requests.ts'
import { sendRaw } from './raw-http.ts'
import { queueRun } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { expectNothingStored, sendUnstored, expectRefused, expectQueued } = refusalHelpers(() => service)

describe('a credential', () => {
  const queueWith = (headers: string[], query = '') => {
    const path = `/v1/execution/queue-remote/greet${query}`
    return sendRaw(service.executionUrl, { method: 'PUT', path, headers: [...headers, ...json], body: good })
  }

  test.each(badCredentials)('%s is refused', async (_, headers) => {
    const { key } = await service.createAccount()
    const response = await expectNothingStored(() => queueWith(headers(key)))
    expect(response).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test('in the query is refused', async () => {
    const { key } = await service.createAccount()
    const response = await expectNothingStored(() => queueWith([], `?access_token=${key}`))
    expect(response).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test.each(acceptedCredentials)('%s is accepted', async (_, headers) => {
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
    'delaySeconds=%s is accepted: JSON allows this integer',
    async (value) => {
      await expectQueued({ query: `?delaySeconds=${value}`, body: good })
    },
  )

  test.each([
    ['expiresInSeconds', ['0', '31536001', '1e400', '']],
    ['priority', ['11', '-11', '0.1', '1e400', '-1e400']],
  ])('%s is refused outside its bounds', async (name, values) => {
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
  ])('?%s is refused: it is not documented', async (query, name) => {
    await expectRefused({ query: `?${query}`, body: good }, [parameter(name, 'is not a parameter of this operation')])
  })

  test.each(['delaySeconds=1&delaySeconds=1', 'delaySeconds=1&delaySeconds=2', 'delaySeconds=1&delay%53econds=1'])(
    '?%s is refused: a parameter must not repeat',
    async (query) => {
      await expectRefused({ query: `?${query}`, body: good }, [parameter('delaySeconds', 'is given more than once')])
    },
  )

  test('is refused with all errors at once, including those of the body', async () => {
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

describe('a filter of listRuns', () => {
  const list = async (query: string) => {
    const headers = bearer(await service.createAccount())
    return sendUnstored(service.executionUrl, { method: 'GET', path: `/v1/execution/runs?${query}`, headers })
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
  ])('%s is refused unless it is valid', async (name, values) => {
    for (const value of values) {
      const response = await list(`${name}=${value}`)
      expectProblem(operationOf('listRuns'), response, { ...invalid, errors: expect.any(Array) })
      for (const error of JSON.parse(response.text).errors) expect(error, value).toEqual(parameter(name))
    }
  })

  const withOffset = ['2026-01-01T00:00:00%2B01:00', '2026-01-01T00:00:00-23:59']
  test.each(['2024-02-29T00:00:00Z', '2026-01-01T00:00:00.123456789Z', '2026-01-01t00:00:00z', ...withOffset])(
    'createdAfter=%s is accepted',
    async (time) => {
      const response = await list(`createdAfter=${time}`)
      expect(response.status, response.text).toBe(200)
    },
  )
})

describe('an id in the path', () => {
  const wrongText = ['a'.repeat(129), 'a%20b', 'a%2Fb', 'a%00', 'a%0A', 'a+b', 'a;b', 'a:b', '%C3%A4', '%F0%9F%92%A1']
  const wrongEscapes = ['%', '%zz', '%E0%A4%A']

  test.each([...wrongText, ...wrongEscapes])('of the workflow %s is refused', async (path) => {
    const response = await sendUnstored(
      service.executionUrl,
      buildQueueRequest(await service.createAccount(), { path, body: good }),
    )
    expectProblem(queueRemoteRun, response, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(response.text).errors) expect(error).toEqual(parameter('workflowId'))
  })

  const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
  const almost = [id.slice(1), `${id}0`, id.replaceAll('-', ''), id.replace('0', 'g'), `${id}%0A`, `${id}%00`]
  test.each(['1', ...almost, `%7B${id}%7D`, `urn:uuid:${id}`, '%zz'])('of the run %s is refused', async (runId) => {
    const headers = bearer(await service.createAccount())
    const path = `/v1/execution/runs/${runId}`
    const response = await sendUnstored(service.executionUrl, { method: 'GET', path, headers })
    expectProblem(operationOf('getRun'), response, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(response.text).errors) expect(error).toEqual(parameter('runId'))
  })
})

describe('the header', () => {
  test.each<[what: string, values: string[]]>([
    ['that is empty', ['']],
    ['of 129 characters', ['a'.repeat(129)]],
    ['with a space', ['a b']],
    ['with a tab', ['a\tb']],
    ['with a letter outside ASCII', ['ä']],
    ['that is sent twice', ['a', 'a']],
  ])('Idempotency-Key %s is refused', async (_, values) => {
    const headers = [...json, ...values.flatMap((value) => ['Idempotency-Key', value])]
    const request = buildQueueRequest(await service.createAccount(), { headers, body: good })
    const response = await sendUnstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, response, { ...invalid, errors: expect.any(Array) })
    for (const error of JSON.parse(response.text).errors) expect(error).toEqual(header('Idempotency-Key'))
  })

  test('Prefer of 257 characters is refused', async () => {
    const errors = [header('Prefer', 'must NOT have more than 256 characters')]
    await expectRefused({ headers: [...json, 'Prefer', 'x'.repeat(257)], body: good }, errors)
  })

  test.each(['', 'x', '=', ';;;', '"', 'ä', 'wait', 'wait=', 'wait=x', 'wait=-1', 'wait=1e1', 'wait=9999999999'])(
    'Prefer: %s is ignored, as RFC 7240 asks',
    async (value) => {
      const response = await expectQueued({ headers: [...json, 'Prefer', value], body: good })
      expect(response.headers['preference-applied']).toBeUndefined()
    },
  )

  test('Last-Event-ID that is not a number is refused', async () => {
    const account = await service.createAccount()
    const path = `/v1/execution/runs/${await queueRun(service, account)}/events`
    const headers = [...bearer(account), 'Last-Event-ID', 'latest']
    const response = await sendUnstored(service.executionUrl, { method: 'GET', path, headers })
    expectProblem(operationOf('streamRunEvents'), response, { ...invalid, errors: [header('Last-Event-ID')] })
  })
})
