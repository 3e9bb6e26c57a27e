/** Responses have only documented members, although their published schemas are open. */
import { describe, expect, test } from 'vitest'
import type { UntypedHandler } from '../../src/contract/exchange.ts'
import { library } from './library.ts'
import { jsonType, key, serve } from './served.ts'

const text = { type: 'string' }
const named = { type: 'object', required: ['name'], properties: { name: text } }
const dated = { type: 'object', required: ['date'], properties: { date: text } }
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Responses of the schema of a book, by schema: members that are sent, and those that are refused. */
const cases: [what: string, schema: object, sent: object, refused: object][] = [
  ['an object', named, { name: 'A' }, { name: 'A', more: 1 }],
  ['a nested object', { properties: { by: named } }, { by: { name: 'A' } }, { by: { name: 'A', more: 1 } }],
  ['items', { properties: { all: { items: named } } }, { all: [{ name: 'A' }] }, { all: [{ name: 'A', more: 1 }] }],
  ['a reference', ref('Named'), { name: 'A' }, { name: 'A', more: 1 }],
  [
    'a reference that is extended',
    { ...ref('Named'), properties: { at: text } },
    { name: 'A', at: 'B' },
    { name: 'A', more: 1 },
  ],
  ['allOf', { allOf: [ref('Named'), dated] }, { name: 'A', date: 'B' }, { name: 'A', date: 'B', more: 1 }],
  ['a reference to allOf', ref('Both'), { name: 'A', date: 'B' }, { name: 'A', date: 'B', more: 1 }],
  [
    'an object in allOf',
    { allOf: [{ properties: { by: named } }, dated] },
    { by: { name: 'A' }, date: 'B' },
    { by: { name: 'A', more: 1 }, date: 'B' },
  ],
  ['oneOf', { oneOf: [named, dated] }, { date: 'B' }, { date: 'B', more: 1 }],
  [
    'oneOf with common members',
    { properties: { at: text }, anyOf: [named, dated] },
    { name: 'A', at: 'B' },
    { name: 'A', more: 1 },
  ],
  [
    'a map',
    { properties: { at: text }, additionalProperties: named },
    { more: { name: 'A' } },
    { more: { name: 'A', even: 1 } },
  ],
  [
    'if and then',
    { properties: { at: text }, if: { required: ['at'] }, then: named },
    { at: 'A', name: 'B' },
    { at: 'A', name: 'B', more: 1 },
  ],
]

function libraryOf(schema: object) {
  const document = library()
  Object.assign(document.components.schemas, {
    Book: { type: 'object', ...schema },
    Named: named,
    Both: { allOf: [ref('Named'), dated] },
  })
  return document
}

const respond = async (schema: object, body: object) => {
  const getBook: UntypedHandler = async () => ({ status: 200, body })
  const { call, logged } = await serve({ document: libraryOf(schema), handlers: { getBook } })
  return { response: await call('GET', '/books/a'), logged }
}

describe.each(cases)('a response of %s', (_, schema, sent, refused) => {
  test('is sent with documented members, and refused with others', async () => {
    expect((await respond(schema, sent)).response).toMatchObject({ status: 200, json: sent })
    const { response, logged } = await respond(schema, refused)
    expect(response.status).toBe(500)
    const pointer = expect.stringMatching(/\/(more|even)$/)
    expect(logged).toContainEqual(expect.objectContaining({ pointer, detail: 'is not a documented member' }))
  })
})

test('an object that allows any member may have any', async () => {
  const { response } = await respond({ ...named, additionalProperties: true }, { name: 'A', more: 1 })
  expect(response.status).toBe(200)
})

test('an event has only documented members', async () => {
  const events = async function* () {
    yield { id: '1', event: 'turned', data: { page: 1, more: 1 } }
  }
  const readBook: UntypedHandler = async () => ({ status: 200, events: events() })
  const { call, logged } = await serve({ handlers: { readBook } })
  await call('GET', '/books/a/pages').catch(() => {})
  const message = expect.stringContaining('/more is not a documented member')
  expect(logged).toContainEqual(expect.objectContaining({ err: expect.objectContaining({ message }) }))
})

test('a request may have the members that its own schema allows', async () => {
  const { call } = await serve({ document: libraryOf({ properties: { title: text } }) })
  const response = await call('PUT', '/books/a', { headers: [key, jsonType], body: '{"title":"A","more":1}' })
  expect(response.status).toBe(201)
})
