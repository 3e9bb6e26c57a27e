import { connect } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import type { HandlerResponse } from '../../src/contract/exchange.ts'
import { Problem } from '../../src/contract/problem.ts'
import { Down, jsonType, key, readerKey, serve } from './served.ts'

const put = { headers: [key, jsonType], body: '{"title":"A"}' }
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The response to PUT /books/a when its handler returns this, and the log. */
async function respondWith(response: unknown) {
  const { call, logged } = await serve({ handlers: { putBook: async () => response as HandlerResponse } })
  return { response: await call('PUT', '/books/a', put), logged }
}

const created = { status: 201, headers: { Location: '/books/a' }, body: { title: 'A' } }

describe('a response', () => {
  test('is sent as the handler returns it', async () => {
    const body = { title: 'Ä', printedAt: '2026-11-20T09:30:00.000Z', notes: { constructor: null } }
    const { response } = await respondWith({ ...created, body })
    expect(response).toMatchObject({ status: 201, text: JSON.stringify(body) })
    expect(response.headers).toMatchObject({
      location: '/books/a',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON.stringify(body))),
    })
  })

  test('does not change the handler’s own object', async () => {
    const body = Object.freeze({ title: 'A', notes: Object.freeze({}) })
    expect((await respondWith({ ...created, body })).response.status).toBe(201)
    expect(body).toEqual({ title: 'A', notes: {} })
  })

  test('of 204 has no body and no media type', async () => {
    const { call } = await serve()
    const response = await call('DELETE', '/books/a', { headers: [key, ['Accept', 'image/png']] })
    expect(response).toMatchObject({ status: 204, text: '' })
    expect(response.headers['content-type']).toBeUndefined()
  })

  test.each([
    ['GET', '/books/a', 200, [key]],
    ['GET', '/books/a', 401, []],
    ['DELETE', '/books/a', 403, [['Authorization', `Bearer ${readerKey}`]]],
    ['GET', '/books/A', 400, [key]],
    ['GET', '/nothing', 404, []],
    ['PATCH', '/books', 405, []],
  ] as [string, string, number, [string, string][]][])(
    'of %s %s (%i) has its own request id and is not cached',
    async (method, path, status, headers) => {
      const { call, logged } = await serve()
      const responses = [await call(method, path, { headers }), await call(method, path, { headers })]
      for (const response of responses) {
        expect(response.status).toBe(status)
        expect(response.headers['x-request-id']).toMatch(uuid)
        expect(response.headers['cache-control']).toBe('no-store')
        if (response.json?.requestId) expect(response.json.requestId).toBe(response.headers['x-request-id'])
      }
      const ids = responses.map((response) => response.headers['x-request-id'])
      expect(ids[0]).not.toBe(ids[1])
      expect(logged.map(({ requestId }) => requestId)).toEqual(ids)
    },
  )

  test('does not reveal the server software', async () => {
    const { headers } = (await respondWith(created)).response
    expect(headers['x-powered-by'] ?? headers.server ?? headers.etag).toBeUndefined()
  })
})

describe('a response that does not match the document is logged with its place', () => {
  const mismatches: [string, object, string, string][] = [
    ['an undocumented status', { status: 202, body: { title: 'A' } }, '', 'status 202 is not documented'],
    ['a missing header', { ...created, headers: {} }, '', 'the header Location is missing'],
    ['a missing body', { ...created, body: undefined }, '', 'the body is missing'],
    [
      'another media type',
      { ...created, body: undefined, text: 'canary' },
      '',
      'the media type text/plain is not documented',
    ],
    ['a missing member', { ...created, body: {} }, '/title', 'is required'],
    [
      'an undocumented member',
      { ...created, body: { title: 'A', more: 'canary' } },
      '/more',
      'is not a documented member',
    ],
    ['a value of another type', { ...created, body: { title: 7 } }, '/title', 'must be string'],
    [
      'a value that is too long',
      { ...created, body: { title: 'canary canary' } },
      '/title',
      'must NOT have more than 10',
    ],
    [
      'a Date, which JSON does not have',
      { ...created, body: { title: 'A', printedAt: new Date() } },
      '/printedAt',
      'must be string',
    ],
    [
      'an invalid time',
      { ...created, body: { title: 'A', printedAt: '2026-02-31T00:00:00Z' } },
      '/printedAt',
      'must match format',
    ],
    [
      'a problem of another shape',
      { status: 404, problem: { kind: 'not-found', detail: 7 } },
      '/detail',
      'must be string',
    ],
  ]

  test.each(mismatches)('and sent, as the change is made: %s', async (_what, given, pointer, detail) => {
    const countMismatch = vi.fn()
    const handlers = { putBook: async () => given as HandlerResponse }
    const { call, logged } = await serve({ handlers, refusesMismatches: false, countMismatch })
    const response = await call('PUT', '/books/a', put)
    const { status, body, text } = given as HandlerResponse
    expect(response.status).toBe(status)
    if (body ?? text) expect(response.text).toBe(text ?? JSON.stringify(body))
    expect(countMismatch).toHaveBeenCalledOnce()
    const msg = 'response does not match the document'
    expect(logged[0]).toMatchObject({ level: 50, operationId: 'putBook', msg, status, pointer })
    expect(logged[0]?.detail).toContain(detail)
    expect(JSON.stringify(logged)).not.toContain('canary')
  })

  test.each(mismatches)('and replaced by 500 where that is set, as in tests: %s', async (_what, given, pointer) => {
    const { response, logged } = await respondWith(given)
    expect(response.json).toMatchObject({ status: 500, detail: 'The service failed. Report the request id.' })
    expect(logged[0]).toMatchObject({ level: 50, pointer })
    expect(JSON.stringify([response, logged])).not.toContain('canary')
  })
})

describe('an error of a handler', () => {
  const throwing = (error: unknown) => serve({ handlers: { getBook: () => Promise.reject(error) } })

  test('is sent when it is a Problem', async () => {
    const { call } = await throwing(new Problem({ kind: 'not-found', detail: 'No such book.' }))
    expect((await call('GET', '/books/a')).json).toMatchObject({ status: 404, detail: 'No such book.' })
  })

  test('is 503 with Retry-After when the store is unavailable', async () => {
    const { call } = await throwing(new Down('canary'))
    const response = await call('GET', '/books/a')
    expect(response.json).toMatchObject({ status: 503, type: '/docs/errors#unavailable' })
    expect(response.headers['retry-after']).toBe('1')
    expect(response.text).not.toContain('canary')
  })

  test.each([
    ['an error', new TypeError('canary')],
    ['a string', 'canary'],
    ['undefined', undefined],
  ])('is 500 when it is %s, and logged with the request id', async (_what, error) => {
    const { call, logged } = await throwing(error)
    const response = await call('GET', '/books/a')
    expect(response.json).toMatchObject({ status: 500 })
    expect(response.text).not.toContain('canary')
    expect(logged[0]).toMatchObject({ level: 50, requestId: response.json.requestId, msg: 'request failed' })
  })

  test('is 500 when the response cannot be serialized', async () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.itself = cyclic
    expect((await respondWith({ ...created, body: { title: 'A', notes: cyclic } })).response.json).toMatchObject({
      status: 500,
    })
    expect((await respondWith({ ...created, headers: { Location: 'a\nb' } })).response.json).toMatchObject({
      status: 500,
    })
  })
})

describe('406', () => {
  test.each([
    '*/*',
    'application/json',
    'application/*;q=0.5, text/html',
    'text/html, */*;q=0.1',
    '',
    'application/json; charset=utf-8',
    'text/html, application/json;profile="a, b;q=0";q=0.5',
    'application/json;indent=2;v=1',
  ])('does not occur for Accept: %s', async (accept) => {
    const { call } = await serve()
    expect((await call('GET', '/books/a', { headers: [key, ['Accept', accept]] })).status).toBe(200)
  })

  test.each(['text/html; charset=utf-8', 'application/problem+json', 'application/json;v=1; q=0', 'nonsense'])(
    'occurs for Accept: %s',
    async (accept) => {
      const { call } = await serve()
      const response = await call('GET', '/books/a', { headers: [key, ['Accept', accept]] })
      expect(response.json).toMatchObject({ status: 406, detail: 'This operation responds with application/json.' })
    },
  )
})

describe('each request is reported once', () => {
  test('in the log, with fields of the principal', async () => {
    const { call, logged } = await serve()
    await call('GET', '/books/a?limit=1')
    await call('GET', '/nothing')
    expect(logged).toMatchObject([
      { level: 30, operationId: 'getBook', method: 'GET', status: 400, reader: 'good', durationMs: expect.any(Number) },
      { level: 30, operationId: '', method: 'GET', status: 404 },
    ])
  })

  test('to the observer, in seconds', async () => {
    const observed: unknown[][] = []
    const { call } = await serve({ observe: (...call) => observed.push(call) })
    const startedAt = performance.now()
    await call('GET', '/books/a')
    const seconds = (performance.now() - startedAt) / 1000
    expect(observed).toEqual([['getBook', 'GET', 200, expect.any(Number)]])
    expect(observed[0]?.[3]).toBeLessThan(seconds)
  })

  test('as 499 when the client disconnects before the response', async () => {
    let response: (value: HandlerResponse) => void = () => {}
    let signal: AbortSignal | undefined
    const { port, logged } = await serve({
      handlers: {
        getBook: (request) => {
          signal = (request as { signal: AbortSignal }).signal
          return new Promise((resolve) => {
            response = resolve
          })
        },
      },
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /books/a HTTP/1.1\r\nHost: x\r\n${key.join(': ')}\r\n\r\n`)
    await expect.poll(() => signal).toBeDefined()
    socket.destroy()
    await expect.poll(() => signal?.aborted).toBe(true)
    response({ status: 200, body: { title: 'A' } })
    await expect.poll(() => logged).toMatchObject([{ level: 30, status: 499 }])
  })
})
