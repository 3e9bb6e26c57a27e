import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { bodyBytesMax } from '../../src/openapi/served-operations.ts'
import { waitLimits } from '../support/timeouts.ts'
import { authenticate, jsonType, key, type Sent, serve } from './served.ts'

/** The body that the handler receives, or the response with a problem. */
async function sendBody(operationId: string, method: string, path: string, sent: Sent) {
  let seen: unknown
  const take = async (request: object) => {
    seen = request
    return operationId === 'putBook' ? { status: 201, headers: { Location: '' }, body: { title: '' } } : { status: 204 }
  }
  const { call } = await serve({ handlers: { [operationId]: take } })
  const response = await call(method, path, { ...sent, headers: [key, ...(sent.headers ?? [])] })
  return seen ? { body: (seen as { body: unknown }).body } : response
}

const put = (sent: Sent) => sendBody('putBook', 'PUT', '/books/a', sent)
const open = (sent: Sent) => sendBody('openBook', 'POST', '/books', sent)
const type = (value: string): [string, string] => ['Content-Type', value]
const noLength: [string, string] = ['Content-Length', '0']
const chunked: [string, string] = ['Transfer-Encoding', 'chunked']
const errors = (...members: object[]) => ({
  status: 400,
  json: { type: '/docs/errors#invalid-request', errors: members },
})

describe('a valid body', () => {
  test('reaches the handler with the defaults of its schema', async () => {
    expect(await put({ headers: [jsonType], body: '{"title":"A"}' })).toEqual({ body: { title: 'A', pages: 1 } })
  })

  test.each(['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"', 'application/json; version=1'])(
    'is accepted as %s',
    async (value) => {
      expect(await put({ headers: [type(value)], body: '{"title":"A"}' })).toHaveProperty('body')
    },
  )

  test('is accepted without a declared length', async () => {
    expect(await put({ headers: [jsonType, chunked], body: '{"title":"A"}' })).toHaveProperty('body')
  })

  test(`may have ${bodyBytesMax} bytes`, async () => {
    const body = JSON.stringify({ title: 'A', notes: { text: '' } })
    const full = body.replace('"text":""', `"text":"${'x'.repeat(bodyBytesMax - body.length)}"`)
    expect(await put({ headers: [jsonType], body: full })).toHaveProperty('body')
  })
})

describe('the document decides whether a body is required', () => {
  test.each([
    ['nothing', { headers: [noLength] }],
    ['a Content-Type alone', { headers: [jsonType, noLength] }],
    ['no bytes', { headers: [jsonType, chunked], body: '' }],
    ['no bytes of another type', { headers: [type('text/plain'), chunked], body: '' }],
    ['a byte order mark alone', { headers: [jsonType], body: '\uFEFF' }],
  ] as [string, Sent][])(
    '%s is refused where a body is required, and no body where it is optional',
    async (_what, sent) => {
      expect(await put(sent)).toMatchObject(errors({ pointer: '', detail: 'is required' }))
      expect(await open(sent)).toEqual({ body: undefined })
    },
  )

  test('an optional body must be valid if it is present', async () => {
    expect(await open({ headers: [jsonType], body: '{"at":"page","page":1}' })).toEqual({
      body: { at: 'page', page: 1 },
    })
    expect(await open({ headers: [jsonType], body: '{"at":"page"}' })).toMatchObject({ status: 400 })
  })

  test('an operation without a body refuses one and accepts a Content-Type', async () => {
    const deleteBook = (sent: Sent) => sendBody('deleteBook', 'DELETE', '/books/a', sent)
    expect(await deleteBook({ headers: [jsonType] })).toEqual({ body: undefined })
    const refusal = errors({ pointer: '', detail: 'This operation takes no body.' })
    expect(await deleteBook({ headers: [jsonType, ['Content-Length', '2']], body: '{}' })).toMatchObject(refusal)
    expect(await deleteBook({ headers: [chunked], body: ' ' })).toMatchObject(refusal)
    expect(await deleteBook({ headers: [chunked], body: '' })).toEqual({ body: undefined })
  })

  test('a client that leaves before the first chunk gets no response, and its request ends', async () => {
    const accept = vi.fn(authenticate)
    const { port, logged } = await serve({ authenticate: accept })
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `PUT /books/a HTTP/1.1\r\nHost: x\r\n${[key, jsonType, chunked].map((it) => it.join(': ')).join('\r\n')}\r\n\r\n`,
    )
    await vi.waitFor(() => expect(accept).toHaveBeenCalled(), waitLimits)
    socket.destroy()
    await vi.waitFor(() => expect(logged).toMatchObject([{ status: 499 }]), waitLimits)
  })
})

describe('413', () => {
  const head = `PUT /books/a HTTP/1.1\r\nHost: x\r\n${key.join(': ')}\r\n${jsonType.join(': ')}`
  const refusal = /^HTTP\/1.1 413 .*\r\nConnection: close\r\n/s

  test('comes before the body when its length is declared', async () => {
    const { port } = await serve()
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    socket.write(`${head}\r\nContent-Length: ${bodyBytesMax + 1}\r\n\r\n`)
    expect(await once(socket, 'data')).toEqual([expect.stringMatching(refusal)])
    socket.destroy()
  })

  test('reaches a client that sends its whole body first, and the connection is closed', async () => {
    const { send } = await serve()
    const body = Buffer.alloc(16 * bodyBytesMax, ' ')
    const sent = Buffer.concat([Buffer.from(`${head}\r\nContent-Length: ${body.length}\r\n\r\n`), body])
    expect(await send(sent)).toMatch(refusal)
  })

  test('comes although the body does not end', async () => {
    const { port } = await serve()
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    socket.write(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n${' '.repeat(0x200000)}`)
    expect(await once(socket, 'data')).toEqual([expect.stringMatching(refusal)])
    socket.destroy()
  })
})

describe('400 repeats names', () => {
  const long = 'n'.repeat(300)

  test.each([
    ['shortened', `{"title":"A","${long}":1}`, `/${'n'.repeat(200)}…`],
    ['shortened at each level', `{"title":"A","author":{"${long}/b":"\\u0000"}}`, `/author/${'n'.repeat(200)}…`],
    ['without lone surrogates', '{"title":"A","a\\ud800":1}', '/a\uFFFD'],
    ['without noncharacters', '{"title":"A","a\uFFFF\u{1FFFE}":1}', '/a\uFFFD\uFFFD'],
  ])('%s', async (_what, body, pointer) => {
    const response = await put({ headers: [jsonType], body })
    expect(response).toMatchObject(errors({ pointer, detail: expect.any(String) }))
    expect((response as { text: string }).text).not.toContain('\\u')
  })

  test('of parameters, shortened', async () => {
    const { call } = await serve()
    const { json } = await call('GET', `/books/a?${long}=1`)
    expect(json.errors).toMatchObject([{ parameter: `${'n'.repeat(200)}…` }])
  })
})

describe('400 locates validation errors by JSON Pointers', () => {
  test.each([
    ['an unknown member', '{"title":"A","x":1}', [{ pointer: '/x', detail: 'is not a documented member' }]],
    [
      'an unknown member whose name needs escapes',
      '{"title":"A","x/~y":1}',
      [{ pointer: '/x~1~0y', detail: 'is not a documented member' }],
    ],
    [
      'an unknown member within another',
      '{"title":"A","author":{"name":"B","b/c":1}}',
      [{ pointer: '/author/b~1c', detail: 'is not a documented member' }],
    ],
    ['a missing member', '{}', [{ pointer: '/title', detail: 'is required' }]],
    [
      'a member of the wrong type, which is not coerced',
      '{"title":1}',
      [{ pointer: '/title', detail: 'must be string' }],
    ],
    ['another type', '[]', [{ pointer: '', detail: 'must be object' }]],
    ['null', 'null', [{ pointer: '', detail: 'must be object' }]],
    [
      'several',
      '{"title":"A","x":1,"pages":0}',
      [
        { pointer: '/x', detail: 'is not a documented member' },
        { pointer: '/pages', detail: 'must be >= 1' },
      ],
    ],
    [
      'a member against the JSON rules',
      '{"title":"\\u0000"}',
      [{ pointer: '/title', detail: 'must not contain U+0000' }],
    ],
  ] as [string, string, object[]][])('%s', async (_what, body, members) => {
    expect(await put({ headers: [jsonType], body })).toMatchObject(errors(...members))
  })

  test('an invalid body with a documented discriminator is 400', async () => {
    expect(await open({ headers: [jsonType], body: 'null' })).toMatchObject({ status: 400 })
    expect(await open({ headers: [jsonType], body: '{"at":"nowhere"}' })).toMatchObject({ status: 400 })
  })

  test('a response has at most 20 of 1,000 validation errors', async () => {
    const body = JSON.stringify(Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, 1])))
    const response = await put({ headers: [jsonType], body })
    expect(response).toMatchObject({ status: 400 })
    expect('json' in response && response.json.errors).toHaveLength(20)
  })
})

test('express-openapi-validator, which keeps a validator for each Content-Type, sees only documented ones', async () => {
  const require = createRequire(import.meta.url)
  const { ContentType } = require('express-openapi-validator/dist/middlewares/util.js')
  const { call } = await serve()
  const from = vi.spyOn(ContentType, 'from')
  for (const version of [1, 2, 3]) {
    await call('PUT', '/books/a', {
      headers: [key, type(`application/json; version=${version}`)],
      body: '{"title":"A"}',
    })
    await call('DELETE', '/books/a', { headers: [key, type(`text/x${version}`)] })
  }
  const seen = from.mock.calls.map(
    ([request]) => (request as { headers: Record<string, string> }).headers['content-type'],
  )
  expect(new Set(seen)).toEqual(new Set(['application/json', undefined]))
})

test('a client that closes the connection within its body is logged as 499', async () => {
  const { port, logged } = await serve()
  const socket = connect(port, '127.0.0.1')
  const head = `PUT /books/a HTTP/1.1\r\nHost: x\r\n${key.join(': ')}\r\n${jsonType.join(': ')}\r\nContent-Length: 10`
  socket.write(`${head}\r\n\r\n{"tit`, () => socket.resetAndDestroy())
  await vi.waitFor(() => expect(logged).toHaveLength(1), waitLimits)
  expect(logged[0]).toMatchObject({ level: 30, operationId: 'putBook', status: 499 })
})
