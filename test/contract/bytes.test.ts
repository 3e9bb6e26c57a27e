import { request as httpRequest, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import type { HandlerResponse } from '../../src/contract/exchange.ts'
import { library, operation } from './library.ts'
import { key, serve } from './served.ts'

const binary = { schema: { type: 'string', format: 'binary' } }
const types = ['application/pdf', 'image/png', 'application/octet-stream', 'text/csv', 'text/plain', 'application/json']

/** Scans of a book: a response of bytes with several media types, and one of JSON. */
function withScans() {
  const document = library()
  const nosniff = { required: true, schema: { type: 'string', const: 'nosniff' } }
  const files = Object.fromEntries(types.map((type) => [type, type === 'image/png' ? {} : binary]))
  const scanned = { description: 'A scan.', headers: { 'X-Content-Type-Options': nosniff }, content: files }
  const book = {
    description: 'Not yet.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Book' } } },
  }
  const path = { get: operation('scanBook', { 200: scanned, 202: book }) }
  return { ...document, paths: { ...document.paths, '/scan': path } }
}

const headers = { 'X-Content-Type-Options': 'nosniff' }
/** Neither text in any encoding nor JSON. */
const bytes = new Uint8Array([0, 0xff, 0xfe, 0x80, 0x0d, 0x0a, 0xc3])
const scan = { status: 200, headers, bytes, mediaType: 'application/pdf' }

const serveScan = (returned: unknown = scan) =>
  serve({ document: withScans(), handlers: { scanBook: async () => returned as HandlerResponse } })

describe('a response of bytes', () => {
  test('is sent unchanged with every media type', async () => {
    const document = withScans()
    const unsent = [...types]
    const scanBook = async () => ({ ...scan, mediaType: unsent.shift() as string })
    const { port } = await serve({ document, handlers: { scanBook } })
    for (const mediaType of types) {
      const received = await bytesFrom(port)
      expect(new Uint8Array(received.body)).toEqual(bytes)
      expect(received.headers).toMatchObject({
        'content-type': mediaType,
        'content-length': String(bytes.length),
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
    }
  })

  test('may be a view of a buffer, and may be empty', async () => {
    const part = await serveScan({ ...scan, bytes: bytes.subarray(1, 3) })
    expect([...(await bytesFrom(part.port)).body]).toEqual([0xff, 0xfe])
    const empty = await serveScan({ ...scan, bytes: new Uint8Array() })
    expect(await bytesFrom(empty.port)).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
  })

  test('has only the headers of its handler and the common ones', async () => {
    const document = withScans()
    Reflect.deleteProperty(document.paths['/scan'].get.responses[200 as never], 'headers')
    const scanBook = async () => ({ ...scan, headers: {} })
    const { port } = await serve({ document, handlers: { scanBook } })
    const names = Object.keys((await bytesFrom(port)).headers)
    expect(names.sort()).toEqual([
      'cache-control',
      'connection',
      'content-length',
      'content-type',
      'date',
      'x-content-type-options',
      'x-request-id',
    ])
  })

  test('does not affect JSON responses of the same operation', async () => {
    const valid = await serveScan({ status: 202, body: { title: 'A' } })
    expect(await valid.call('GET', '/scan')).toMatchObject({ status: 202, json: { title: 'A' } })
    const invalid = await serveScan({ status: 202, body: { title: 7 } })
    expect(await invalid.call('GET', '/scan')).toMatchObject({ status: 500 })
  })

  test('has the same headers for HEAD, without the bytes', async () => {
    const { call } = await serveScan()
    const [got, head] = [await call('GET', '/scan'), await call('HEAD', '/scan')]
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe(got.headers['content-length'])
  })
})

describe('bytes that do not match the document become a 500, and the reason is logged', () => {
  test.each([
    ['an undocumented media type', { ...scan, mediaType: 'image/gif' }, 'the media type image/gif is not documented'],
    ['a parameter of the media type', { ...scan, mediaType: 'text/csv; charset=utf-8' }, 'is not documented'],
    ['no media type', { ...scan, mediaType: undefined }, 'the body is missing'],
    ['a missing header', { ...scan, headers: {} }, 'the header X-Content-Type-Options is missing'],
    ['JSON instead', { status: 200, headers, body: { canary: 1 } }, 'the body must be bytes'],
    ['text instead', { status: 200, headers, text: 'canary' }, 'the body must be bytes'],
    ['text as bytes', { ...scan, bytes: 'canary' }, 'the body must be bytes'],
    [
      'bytes where JSON is documented',
      { status: 202, bytes, mediaType: 'application/json' },
      'the response is not documented as bytes',
    ],
  ])('%s', async (_what, returned, wrong) => {
    const { call, logged } = await serveScan(returned)
    const received = await call('GET', '/scan')
    expect(received.json).toMatchObject({ status: 500 })
    expect(logged[0]).toMatchObject({ level: 50, operationId: 'scanBook', detail: expect.stringContaining(wrong) })
    expect(JSON.stringify([received, logged])).not.toContain('canary')
  })
})

test('Accept may name any documented media type and no other', async () => {
  const { call } = await serveScan()
  const getScan = (accept: string) => call('GET', '/scan', { headers: [key, ['Accept', accept]] })
  for (const accept of ['*/*', 'image/*', 'text/csv', 'text/html, application/pdf;q=0.1'])
    expect(await getScan(accept), accept).toMatchObject({ status: 200 })
  const detail = `This operation responds with ${types.join(' or ')}.`
  for (const accept of ['image/gif', 'audio/*', 'application/pdf;q=0'])
    expect((await getScan(accept)).json, accept).toMatchObject({ status: 406, detail })
})

test('a document with format binary for only text and JSON does not start', async () => {
  const document = withScans()
  const { 200: scanned } = document.paths['/scan'].get.responses as unknown as Record<number, { content: object }>
  Object.assign(scanned as object, { content: { 'application/json': binary, 'text/plain': binary } })
  await expect(serve({ document, handlers: { scanBook: async () => scan } })).rejects.toThrow(
    'The response 200 of scanBook has format binary, but only media types of text and JSON.',
  )
})

async function bytesFrom(port: number) {
  const sent = httpRequest({ port, path: '/scan', agent: false, headers: Object.fromEntries([key]) }).end()
  const response = await new Promise<IncomingMessage>((resolve) => sent.on('response', resolve))
  return { status: response.statusCode, headers: response.headers, body: await buffer(response) }
}
