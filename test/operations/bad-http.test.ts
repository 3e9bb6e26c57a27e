/** Paths and methods that do not exist, sizes beyond the limits, and what is not HTTP are answered as documented; nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { type Answer, expectProblem, operationOf } from './document.ts'
import { sendText } from './http.ts'
import { largeHeaders, notHttp, put, runs, unknownMethods, unknownPaths } from './malformed.ts'
import { bearer, good, invalid, json, queueRequest, wrongRequests } from './wrong-requests.ts'

let service: TestService
/** Half a request, and nothing more; it is answered while the other tests run. */
let slow: Promise<{ answer: Answer; seconds: number }>

beforeAll(async () => {
  service = await startTestService({ worker: false })
  const startedAt = performance.now()
  slow = sendText(service.executionUrl, runs).then((answer) => ({
    answer,
    seconds: (performance.now() - startedAt) / 1000,
  }))
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { storingNothing, unstored, expectQueued } = wrongRequests(() => service)
const mebibyte = 1024 * 1024

describe('a path that does not exist', () => {
  const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: 'There is no such path.' }

  test.each(unknownPaths)('%s is answered with 404', async (path) => {
    for (const method of ['GET', 'PUT']) {
      expectProblem(undefined, await unstored(service.executionUrl, { method, path }), notFound)
    }
  })

  test('of the other surface is answered with 404', async () => {
    const answer = await unstored(service.browserContextUrl, { method: 'GET', path: '/v1/execution/runs' })
    expectProblem(undefined, answer, notFound)
  })
})

describe('a method that a path does not have', () => {
  test.each(unknownMethods)('(%s %s) is answered with 405 and Allow: %s', async (method, path, allow) => {
    const url = path.startsWith('/alpha') ? service.browserContextUrl : service.executionUrl
    const answer = await unstored(url, { method, path })
    expectProblem(undefined, answer, { kind: 'method-not-allowed', title: 'Method not allowed', status: 405 })
    expect(String(answer.headers.allow).split(', ').sort()).toEqual(allow.split(', ').sort())
  })

  test('(HEAD) is answered so too, without a body', async () => {
    const answer = await unstored(service.executionUrl, { method: 'HEAD', path: '/v1/execution/runs' })
    const headers = { allow: 'GET', 'content-type': 'application/problem+json' }
    expect(answer).toMatchObject({ status: 405, text: '', headers })
    const unknown = await unstored(service.executionUrl, { method: 'HEAD', path: '/nothing' })
    expect(unknown).toMatchObject({ status: 404, text: '' })
  })
})

describe('a body', () => {
  const tooLarge = { kind: 'content-too-large', title: 'Content too large', status: 413 }
  const sizes = [mebibyte + 1, 2 * mebibyte]

  test.each(sizes.flatMap((bytes) => [false, true].map((chunked) => ({ bytes, chunked }))))(
    'of $bytes bytes is refused (in chunks: $chunked), and the connection is closed',
    async ({ bytes, chunked }) => {
      const request = queueRequest(await service.createAccount(), { body: good.padEnd(bytes), chunked })
      const answer = await unstored(service.executionUrl, request)
      expectProblem(queueRemoteRun, answer, tooLarge)
      expect(answer.headers.connection).toBe('close')
    },
  )

  test.each([false, true])('of exactly 1 MiB is accepted (in chunks: %s)', async (chunked) => {
    await expectQueued({ body: good.padEnd(mebibyte), chunked })
  })

  test('that is announced as too large is refused before it is sent, by one answer', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
    const announced = `${head}Content-Length: ${2 * mebibyte}\r\n\r\n`
    expectProblem(queueRemoteRun, await sendText(service.executionUrl, announced, 413), tooLarge)
  })

  test('that is too large is not looked at before the credential', async () => {
    const request = { method: 'PUT', path: '/v1/execution/queue-remote/greet', headers: json }
    const answer = await unstored(service.executionUrl, { ...request, body: good.padEnd(2 * mebibyte) })
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test('that ends before its length stores nothing, and the service goes on', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`
    await storingNothing(() => sendText(service.executionUrl, head + good, 'end'))
    await expectQueued({ body: good })
  })

  test('with a chunk of no known size stores nothing', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const answer = await storingNothing(() => sendText(service.executionUrl, `${head}zz\r\n`))
    expectProblem(undefined, answer, invalid)
  })

  test('that is refused is not taken for another request', async () => {
    const { key } = await service.createAccount()
    const inner = `GET /v1/execution/workflows HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const head = `${runs}Authorization: Bearer ${key}\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n`
    const answer = await sendText(service.executionUrl, head + inner)
    expect(answer.status).toBe(400)
    expect(answer.text).not.toContain('HTTP/1.1')
  })
})

describe('headers', () => {
  const headerFieldsTooLarge = { kind: 'header-fields-too-large', title: 'Header fields too large', status: 431 }
  test.each(largeHeaders)('of more than 16 KiB in %s are refused', async (_, request) => {
    const answer = await unstored(service.executionUrl, { method: 'GET', ...request })
    expectProblem(undefined, answer, headerFieldsTooLarge)
  })

  test('of less than 16 KiB are accepted', async () => {
    const headers = [...bearer(await service.createAccount()), 'X-Large', 'a'.repeat(15_000)]
    const answer = await unstored(service.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })
    expect(answer.status).toBe(200)
  })
})

describe('what is not HTTP', () => {
  test.each(notHttp)('(%s) is answered with 400, and the connection is closed', async (_, text) => {
    const answer = await storingNothing(() => sendText(service.executionUrl, text))
    expectProblem(undefined, answer, invalid)
  })

  test('but an expectation that is not known is: it is ignored (RFC 9110, section 10.1.1)', async () => {
    const answer = await sendText(service.executionUrl, `${runs}Expect: miracles\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(answer.headers['x-request-id']).toBeDefined()
  })
})

test('a request that does not arrive whole within 10 seconds is answered with 408, and the connection is closed', async () => {
  const { answer, seconds } = await slow
  expectProblem(undefined, answer, { kind: 'request-timeout', title: 'Request timeout', status: 408 })
  // Node's own limit is a minute.
  expect(seconds).toBeLessThan(30)
})
