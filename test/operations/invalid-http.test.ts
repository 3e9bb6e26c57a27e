/** Unknown paths and methods, oversized requests and malformed HTTP get the documented response, and nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf, type ReceivedResponse } from './document.ts'
import { bearer, buildQueueRequest, good, invalid, json, refusalHelpers } from './expect-refused.ts'
import { largeHeaders, notHttp, put, runs, unknownMethods, unknownPaths } from './malformed-requests.ts'
import { sendText } from './raw-http.ts'

let service: TestService
/** An incomplete request, whose response arrives while the other tests run. */
let slow: Promise<{ response: ReceivedResponse; seconds: number }>

beforeAll(async () => {
  service = await startTestService({ worker: false })
  const startedAt = performance.now()
  slow = sendText(service.executionUrl, runs).then((response) => ({
    response,
    seconds: (performance.now() - startedAt) / 1000,
  }))
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { expectNothingStored, sendUnstored, expectQueued } = refusalHelpers(() => service)
const mebibyte = 1024 * 1024

describe('an unknown path', () => {
  const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: 'There is no such path.' }

  test.each(unknownPaths)('%s gets 404', async (path) => {
    for (const method of ['GET', 'PUT']) {
      expectProblem(undefined, await sendUnstored(service.executionUrl, { method, path }), notFound)
    }
  })

  test('of the other API gets 404', async () => {
    const response = await sendUnstored(service.browserContextUrl, { method: 'GET', path: '/v1/execution/runs' })
    expectProblem(undefined, response, notFound)
  })
})

describe('a method that the path lacks', () => {
  test.each(unknownMethods)('(%s %s) gets 405 and Allow: %s', async (method, path, allow) => {
    const url = path.startsWith('/alpha') ? service.browserContextUrl : service.executionUrl
    const response = await sendUnstored(url, { method, path })
    expectProblem(undefined, response, { kind: 'method-not-allowed', title: 'Method not allowed', status: 405 })
    expect(String(response.headers.allow).split(', ').sort()).toEqual(allow.split(', ').sort())
  })

  test('(HEAD) gets 405 without a body', async () => {
    const path = '/v1/execution/queue-remote/greet'
    const response = await sendUnstored(service.executionUrl, { method: 'HEAD', path })
    const headers = { allow: 'PUT', 'content-type': 'application/problem+json' }
    expect(response).toMatchObject({ status: 405, text: '', headers })
    const unknown = await sendUnstored(service.executionUrl, { method: 'HEAD', path: '/nothing' })
    expect(unknown).toMatchObject({ status: 404, text: '' })
  })
})

describe('a body', () => {
  const tooLarge = { kind: 'content-too-large', title: 'Content too large', status: 413 }
  const sizes = [mebibyte + 1, 2 * mebibyte]

  test.each(sizes.flatMap((bytes) => [false, true].map((chunked) => ({ bytes, chunked }))))(
    'of $bytes bytes is refused and the connection closed (in chunks: $chunked)',
    async ({ bytes, chunked }) => {
      const request = buildQueueRequest(await service.createAccount(), { body: good.padEnd(bytes), chunked })
      const response = await sendUnstored(service.executionUrl, request)
      expectProblem(queueRemoteRun, response, tooLarge)
      expect(response.headers.connection).toBe('close')
    },
  )

  test.each([false, true])('of exactly 1 MiB is accepted (in chunks: %s)', async (chunked) => {
    await expectQueued({ body: good.padEnd(mebibyte), chunked })
  })

  test('with a declared length that is too large is refused before it is sent', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
    const announced = `${head}Content-Length: ${2 * mebibyte}\r\n\r\n`
    expectProblem(queueRemoteRun, await sendText(service.executionUrl, announced, 413), tooLarge)
  })

  test('that is too large is refused only after the credential is checked', async () => {
    const request = { method: 'PUT', path: '/v1/execution/queue-remote/greet', headers: json }
    const response = await sendUnstored(service.executionUrl, { ...request, body: good.padEnd(2 * mebibyte) })
    expect(response).toMatchObject({ status: 401, text: 'Unauthorized' })
  })

  test('that ends before its declared length stores nothing', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`
    await expectNothingStored(() => sendText(service.executionUrl, head + good, 'end'))
    await expectQueued({ body: good })
  })

  test('with an invalid chunk size stores nothing', async () => {
    const { key } = await service.createAccount()
    const head = `${put}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const response = await expectNothingStored(() => sendText(service.executionUrl, `${head}zz\r\n`))
    expectProblem(undefined, response, invalid)
  })

  test('that is refused is not parsed as another request', async () => {
    const { key } = await service.createAccount()
    const inner = `GET /v1/execution/workflows HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const head = `${runs}Authorization: Bearer ${key}\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n`
    const response = await sendText(service.executionUrl, head + inner)
    expect(response.status).toBe(400)
    expect(response.text).not.toContain('HTTP/1.1')
  })
})

describe('headers', () => {
  const headerFieldsTooLarge = { kind: 'header-fields-too-large', title: 'Header fields too large', status: 431 }
  test.each(largeHeaders)('of more than 16 KiB in %s are refused', async (_, request) => {
    const response = await sendUnstored(service.executionUrl, { method: 'GET', ...request })
    expectProblem(undefined, response, headerFieldsTooLarge)
  })

  test('of less than 16 KiB are accepted', async () => {
    const headers = [...bearer(await service.createAccount()), 'X-Large', 'a'.repeat(15_000)]
    const response = await sendUnstored(service.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })
    expect(response.status).toBe(200)
  })
})

describe('malformed HTTP', () => {
  test.each(notHttp)('(%s) gets 400 and a closed connection', async (_, text) => {
    const response = await expectNothingStored(() => sendText(service.executionUrl, text))
    expectProblem(undefined, response, invalid)
  })

  test('does not include an unknown expectation, which is ignored (RFC 9110, section 10.1.1)', async () => {
    const response = await sendText(service.executionUrl, `${runs}Expect: miracles\r\nConnection: close\r\n\r\n`)
    expect(response).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(response.headers['x-request-id']).toBeDefined()
  })
})

test('a request that does not arrive within 10 seconds gets 408 and a closed connection', async () => {
  const { response, seconds } = await slow
  expectProblem(undefined, response, { kind: 'request-timeout', title: 'Request timeout', status: 408 })
  // Node's own limit is a minute.
  expect(seconds).toBeLessThan(30)
})
