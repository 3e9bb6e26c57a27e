import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { HandlerResponse } from '../../src/contract/exchange.ts'
import { Problem } from '../../src/contract/problem.ts'
import { Down, jsonType, key, readerKey, serve } from './served.ts'

const put = { headers: [key, jsonType], body: '{"title":"A"}' }
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The answer to PUT /books/a when its handler answers so, and what is logged of it. */
async function answered(answer: unknown) {
  const { call, logged } = await serve({ handlers: { putBook: async () => answer as HandlerResponse } })
  return { answer: await call('PUT', '/books/a', put), logged }
}

const created = { status: 201, headers: { Location: '/books/a' }, body: { title: 'A' } }

describe('an answer', () => {
  test('is sent as the handler gave it', async () => {
    const body = { title: 'Ä', printedAt: '2026-11-20T09:30:00.000Z', notes: { constructor: null } }
    const { answer } = await answered({ ...created, body })
    expect(answer).toMatchObject({ status: 201, text: JSON.stringify(body) })
    expect(answer.headers).toMatchObject({
      location: '/books/a',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON.stringify(body))),
    })
  })

  test('does not change the handler’s own object', async () => {
    const body = Object.freeze({ title: 'A', notes: Object.freeze({}) })
    expect((await answered({ ...created, body })).answer.status).toBe(201)
    expect(body).toEqual({ title: 'A', notes: {} })
  })

  test('of 204 has no body and no media type', async () => {
    const { call } = await serve()
    const answer = await call('DELETE', '/books/a', { headers: [key, ['Accept', 'image/png']] })
    expect(answer).toMatchObject({ status: 204, text: '' })
    expect(answer.headers['content-type']).toBeUndefined()
  })

  test.each([
    ['GET', '/books/a', 200, [key]],
    ['GET', '/books/a', 401, []],
    ['DELETE', '/books/a', 403, [['Authorization', `Bearer ${readerKey}`]]],
    ['GET', '/books/A', 400, [key]],
    ['GET', '/nothing', 404, []],
    ['PATCH', '/books', 405, []],
  ] as [string, string, number, [string, string][]][])(
    '%s %s (%i) has an id of its own and is kept by no cache',
    async (method, path, status, headers) => {
      const { call, logged } = await serve()
      const answers = [await call(method, path, { headers }), await call(method, path, { headers })]
      for (const answer of answers) {
        expect(answer.status).toBe(status)
        expect(answer.headers['x-request-id']).toMatch(uuid)
        expect(answer.headers['cache-control']).toBe('no-store')
        if (answer.json?.requestId) expect(answer.json.requestId).toBe(answer.headers['x-request-id'])
      }
      const ids = answers.map((answer) => answer.headers['x-request-id'])
      expect(ids[0]).not.toBe(ids[1])
      expect(logged.map(({ requestId }) => requestId)).toEqual(ids)
    },
  )

  test('does not tell what serves it', async () => {
    const { headers } = (await answered(created)).answer
    expect(headers['x-powered-by'] ?? headers.server ?? headers.etag).toBeUndefined()
  })
})

describe('an answer that does not fit its document becomes a 500, and what is wrong is logged', () => {
  test.each([
    ['an undocumented status', { status: 202, body: { title: 'A' } }, 'status 202 is not documented'],
    ['a missing header', { ...created, headers: {} }, 'the header Location is missing'],
    ['a missing body', { ...created, body: undefined }, 'the body is missing'],
    [
      'another media type',
      { ...created, body: undefined, text: 'canary' },
      'the media type text/plain is not documented',
    ],
    ['a member that is missing', { ...created, body: {} }, "must have required property 'title'"],
    [
      'an undocumented member',
      { ...created, body: { title: 'A', more: 'canary' } },
      '/more must NOT have additional properties',
    ],
    ['a value of another type', { ...created, body: { title: 7 } }, '/title must be string'],
    ['a value that is too long', { ...created, body: { title: 'canary canary' } }, '/title must NOT have more than 10'],
    ['a Date, which JSON does not have', { ...created, body: { title: 'A', printedAt: new Date() } }, '/printedAt'],
    ['a moment that none is', { ...created, body: { title: 'A', printedAt: '2026-02-31T00:00:00Z' } }, '/printedAt'],
    [
      'a problem of another shape',
      { status: 404, problem: { kind: 'not-found', detail: 7 } },
      '/detail must be string',
    ],
  ])('%s', async (_what, given, wrong) => {
    const { answer, logged } = await answered(given)
    expect(answer.json).toMatchObject({ status: 500, detail: 'The service failed. Report the request id.' })
    expect(logged[0]).toMatchObject({ level: 50, operationId: 'putBook', wrong: expect.stringContaining(wrong) })
    expect(JSON.stringify([answer, logged])).not.toContain('canary')
  })
})

describe('what a handler throws', () => {
  const throwing = (error: unknown) => serve({ handlers: { getBook: () => Promise.reject(error) } })

  test('is its answer when it is a Problem', async () => {
    const { call } = await throwing(new Problem({ kind: 'not-found', detail: 'No such book.' }))
    expect((await call('GET', '/books/a')).json).toMatchObject({ status: 404, detail: 'No such book.' })
  })

  test('is 503 with Retry-After when the store is unavailable', async () => {
    const { call } = await throwing(new Down('canary'))
    const answer = await call('GET', '/books/a')
    expect(answer.json).toMatchObject({ status: 503, type: '/docs/errors#unavailable' })
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.text).not.toContain('canary')
  })

  test.each([
    ['an error', new TypeError('canary')],
    ['no error at all', 'canary'],
    ['nothing', undefined],
  ])('is 500 when it is %s, which is logged with the request’s id', async (_what, error) => {
    const { call, logged } = await throwing(error)
    const answer = await call('GET', '/books/a')
    expect(answer.json).toMatchObject({ status: 500 })
    expect(answer.text).not.toContain('canary')
    expect(logged[0]).toMatchObject({ level: 50, requestId: answer.json.requestId, msg: 'request failed' })
  })

  test('is 500 also when the answer cannot be written as JSON', async () => {
    const notes: Record<string, unknown> = {}
    notes.itself = notes
    expect((await answered({ ...created, body: { title: 'A', notes } })).answer.json).toMatchObject({ status: 500 })
    expect((await answered({ ...created, headers: { Location: 'a\nb' } })).answer.json).toMatchObject({ status: 500 })
  })
})

describe('406', () => {
  test.each(['*/*', 'application/json', 'application/*;q=0.5, text/html', 'text/html, */*;q=0.1', ''])(
    'not for Accept: %s',
    async (accept) => {
      const { call } = await serve()
      expect((await call('GET', '/books/a', { headers: [key, ['Accept', accept]] })).status).toBe(200)
    },
  )

  test.each(['text/html', 'application/problem+json', 'application/json;q=0', 'nonsense'])(
    'for Accept: %s',
    async (accept) => {
      const { call } = await serve()
      const answer = await call('GET', '/books/a', { headers: [key, ['Accept', accept]] })
      expect(answer.json).toMatchObject({ status: 406, detail: 'This operation responds with application/json.' })
    },
  )
})

describe('each request is told of once', () => {
  test('in the log, with what the principal lets be known', async () => {
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
    const { call } = await serve({ observe: (...told) => observed.push(told) })
    const startedAt = performance.now()
    await call('GET', '/books/a')
    const seconds = (performance.now() - startedAt) / 1000
    expect(observed).toEqual([['getBook', 'GET', 200, expect.any(Number)]])
    expect(observed[0]?.[3]).toBeLessThan(seconds)
  })

  test('as 499 when the client did not wait for its answer', async () => {
    let answer: (value: HandlerResponse) => void = () => {}
    let signal: AbortSignal | undefined
    const { port, logged } = await serve({
      handlers: {
        getBook: (request) => {
          signal = (request as { signal: AbortSignal }).signal
          return new Promise((resolve) => {
            answer = resolve
          })
        },
      },
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /books/a HTTP/1.1\r\nHost: x\r\n${key.join(': ')}\r\n\r\n`)
    await expect.poll(() => signal).toBeDefined()
    socket.destroy()
    await expect.poll(() => signal?.aborted).toBe(true)
    answer({ status: 200, body: { title: 'A' } })
    await expect.poll(() => logged).toMatchObject([{ level: 30, status: 499 }])
  })
})
