import { describe, expect, test } from 'vitest'
import { bodyBytesMax } from '../../src/openapi/served-operations.ts'
import { library, operation } from './library.ts'
import { jsonType, key, type Sent, serve } from './served.ts'

const bytesMax = 5 * bodyBytesMax
const text = { type: 'string' }
const chunked: [string, string] = ['Transfer-Encoding', 'chunked']

function entry(properties: object) {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties }
}

/** Marks of a book, in a body that may be as large as a browser's storage state. */
function withMarks() {
  const document = library()
  const mark = entry({ name: text, value: text, page: { type: 'number' }, isOpen: { type: 'boolean' } })
  const schema = entry({ marks: { type: 'array', items: mark }, notes: text })
  const more = {
    parameters: [{ name: 'edition', in: 'query', schema: { type: 'integer' } }],
    requestBody: { required: true, 'x-body-bytes-max': bytesMax, content: { 'application/json': { schema } } },
  }
  const marks = { put: operation('putMarks', { 204: { description: 'Stored.' } }, more) }
  return { ...document, paths: { ...document.paths, '/marks': marks } }
}

async function serveMarks() {
  const receivedBodies: unknown[] = []
  const take = async (request: object) => {
    receivedBodies.push((request as { body: unknown }).body)
    return { status: 204 }
  }
  const { call } = await serve({ document: withMarks(), handlers: { putMarks: take } })
  const put = ({ headers = [], ...sent }: Sent, query = '') =>
    call('PUT', `/marks${query}`, { ...sent, headers: [key, jsonType, ...headers] })
  return { call, put, receivedBodies }
}

const mark = { name: 'a', value: 'b', page: 1.5, isOpen: true }
const padded = (body: string, bytes: number) => body.padEnd(bytes)
const ways: [string, [string, string][]][] = [
  ['with a declared length', []],
  ['in chunks', [chunked]],
]

describe('the documented limit of a body', () => {
  test.each(ways)('is exact: %s', async (_way, headers) => {
    const { put, receivedBodies } = await serveMarks()
    const body = JSON.stringify({ marks: [mark], notes: '' })
    expect(await put({ headers, body: padded(body, bytesMax) })).toMatchObject({ status: 204 })
    expect(receivedBodies).toEqual([{ marks: [mark], notes: '' }])
    const { status, json } = await put({ headers, body: padded(body, bytesMax + 1) })
    expect({ status, json }).toMatchObject({
      status: 413,
      json: { detail: `The body may have at most ${bytesMax} bytes.` },
    })
    expect(receivedBodies).toHaveLength(1)
  })

  test.each(ways)('does not apply to other operations: %s', async (_way, headers) => {
    const { call } = await serveMarks()
    const body = padded('{"title":"A"}', bodyBytesMax + 1)
    const response = await call('PUT', '/books/a', { headers: [key, jsonType, ...headers], body })
    expect(response.json).toMatchObject({ status: 413, detail: `The body may have at most ${bodyBytesMax} bytes.` })
  })

  test('may be below the default', async () => {
    const document = withMarks()
    Object.assign((document.paths['/marks'].put as { requestBody?: object }).requestBody as object, {
      'x-body-bytes-max': 10,
    })
    const { call } = await serve({ document, handlers: { putMarks: async () => ({ status: 204 }) } })
    const { json } = await call('PUT', '/marks', { headers: [key, jsonType], body: '{"notes":""}' })
    expect(json).toMatchObject({ status: 413, detail: 'The body may have at most 10 bytes.' })
  })
})

describe('validation errors of a body', () => {
  test('are all reported for at most 16 KiB', async () => {
    const { put } = await serveMarks()
    const { json } = await put({ body: '{"marks":[{},1]}' }, '?edition=x')
    expect(json.errors).toEqual([
      { parameter: 'edition', detail: 'must be integer' },
      { pointer: '/notes', detail: 'is required' },
      ...Object.keys(mark).map((name) => ({ pointer: `/marks/0/${name}`, detail: 'is required' })),
      { pointer: '/marks/1', detail: 'must be object' },
    ])
  })

  test('are reported up to the first for 5 MiB, with those of the parameters', async () => {
    const { put, receivedBodies } = await serveMarks()
    const one = JSON.stringify(mark)
    const body = `{"notes":"","marks":[${one},${'{},'.repeat(80_000)}{}]}`
    const response = await put({ body }, '?edition=x')
    expect(response.json).toMatchObject({ status: 400 })
    expect(response.json.errors).toEqual([
      { parameter: 'edition', detail: 'must be integer' },
      { pointer: '/marks/1/name', detail: 'is required' },
    ])
    expect(receivedBodies).toEqual([])
  })

  test('are reported up to the first for more than 16 KiB, also where 1 MiB is the limit', async () => {
    const { call } = await serveMarks()
    const members = Array.from({ length: 2000 }, (_, index) => `"unknown${index}":1`)
    const { json } = await call('PUT', '/books/a', { headers: [key, jsonType], body: `{${members.join(',')}}` })
    expect(json.errors).toHaveLength(1)
  })

  test('do not occur for a valid large body', async () => {
    const { put, receivedBodies } = await serveMarks()
    const marks = Array.from({ length: 40_000 }, (_, page) => ({ ...mark, page }))
    expect(await put({ body: JSON.stringify({ marks, notes: 'ä\0' }) })).toMatchObject({ status: 400 })
    expect(await put({ body: JSON.stringify({ marks, notes: 'ä' }) })).toMatchObject({ status: 204 })
    expect(receivedBodies).toEqual([{ marks, notes: 'ä' }])
  })
})
