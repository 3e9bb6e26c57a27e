import { describe, expect, test } from 'vitest'
import { key, serve } from './served.ts'

interface Given {
  path: Record<string, unknown>
  query: Record<string, unknown>
  header: Record<string, unknown>
}

/** The parameters that the handler receives, or the validation errors. */
async function receiveParameters(path: string, headers: [string, string][] = []) {
  let received: Given | undefined
  const take = (response: object) => async (request: object) => {
    received = request as Given
    return { status: 200, ...response }
  }
  const { call } = await serve({ handlers: { listBooks: take({ body: [] }), getBook: take({ body: { title: 'A' } }) } })
  const response = await call('GET', path, { headers: [key, ...headers] })
  if (response.status === 200 && received)
    return { path: received.path, query: received.query, header: received.header }
  return { status: response.status, errors: response.json.errors }
}

const query = async (search: string) => {
  const received = await receiveParameters(`/books?${search}`)
  return 'query' in received ? received.query : received.errors
}

describe('query parameters', () => {
  test('have the type and the default of their schema', async () => {
    expect(await query('')).toEqual({ limit: 20 })
    expect(await query('limit=7')).toEqual({ limit: 7 })
  })

  test('of type array repeat for each item, and are an array even with one', async () => {
    expect(await query('tag=new')).toMatchObject({ tag: ['new'] })
    expect(await query('tag=new&tag=old')).toMatchObject({ tag: ['new', 'old'] })
    expect(await query('tag=new&tag=rare')).toEqual([{ parameter: 'tag', detail: expect.stringContaining('new, old') }])
  })

  test('are percent-decoded, and reserved characters need no escape', async () => {
    const since = '2026-11-20T09:30:00.000Z'
    expect(await query(`since=${since}`)).toMatchObject({ since })
    expect(await query(`s%69nce=${encodeURIComponent(since)}&`)).toMatchObject({ since })
  })

  test.each([
    ['is unknown', 'nothing=1', 'nothing', 'is not a parameter of this operation'],
    ['is unknown, like an inherited property', 'constructor=1', 'constructor', 'is not a parameter of this operation'],
    ['is __proto__', '__proto__=1', '__proto__', 'is not a parameter of this operation'],
    ['has brackets', 'limit[]=1', 'limit[]', 'is not a parameter of this operation'],
    ['has a bracket that opens', 'limit[=1', 'limit[', 'is not a parameter of this operation'],
    ['is in another case', 'Limit=1', 'Limit', 'is not a parameter of this operation'],
    ['is repeated', 'limit=1&limit=1', 'limit', 'is given more than once'],
    ['is not percent-encoded correctly', 'since=%zz', 'since', 'is not percent-encoded correctly'],
    ['has NUL', 'since=%00', 'since', 'must not contain U+0000'],
    ['is below its bound', 'limit=0', 'limit', 'must be >= 1'],
    ['is no integer', 'limit=1.5', 'limit', 'must be integer'],
    ['is a number only in JavaScript', 'limit=0x10', 'limit', 'must be integer'],
    ['is a number with a space', 'limit=+5', 'limit', 'must be integer'],
    ['is beyond a double', 'limit=1e400', 'limit', 'must be integer'],
    ['is an empty number', 'limit=', 'limit', 'must be integer'],
    ['is empty', 'since=', 'since', "Empty value found for query parameter 'since'"],
    [
      'is a UUID only as a URN',
      'owner=urn:uuid:3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11',
      'owner',
      'must match format "uuid"',
    ],
  ])('one that %s is refused by name', async (_what, search, parameter, detail) => {
    expect(await query(search)).toEqual([{ parameter, detail }])
  })

  test.each([
    '2026-02-30T00:00:00Z',
    '2026-11-20T09:30:60Z',
    '2026-11-20T09:30:00%2B01',
    '2026-11-20%2009:30:00Z',
    '2026-11-20',
  ])('a time that Date cannot represent is refused: %s', async (since) => {
    expect(await query(`since=${since}`)).toEqual([{ parameter: 'since', detail: 'must match format "date-time"' }])
  })

  test('all errors are reported together', async () => {
    const errors = await query('limit=0&owner=x&nothing=1')
    expect(errors).toHaveLength(3)
    expect(errors.map((it: { parameter: string }) => it.parameter).toSorted()).toEqual(['limit', 'nothing', 'owner'])
  })

  test('a response has at most 20 errors', async () => {
    expect(await query(Array.from({ length: 99 }, (_, index) => `x${index}=1`).join('&'))).toHaveLength(20)
  })
})

describe('path parameters', () => {
  test('are percent-decoded after the path is split', async () => {
    expect(await receiveParameters('/books/a%2fb')).toMatchObject({ path: { bookId: 'a/b' } })
  })

  test.each([
    ['/books/%zz', 'is not percent-encoded correctly'],
    ['/books/%ff', 'is not percent-encoded correctly'],
    ['/books/%00', 'must not contain U+0000'],
    ['/books/A', 'must match pattern "^[a-z0-9/]+$"'],
  ])('%s is refused by the parameter’s name', async (path, detail) => {
    expect(await receiveParameters(path)).toEqual({ status: 400, errors: [{ parameter: 'bookId', detail }] })
  })
})

describe('header parameters', () => {
  test('have their documented names, however they are sent', async () => {
    expect(await receiveParameters('/books', [['BOOK-NOTE', 'torn']])).toMatchObject({
      header: { 'Book-Note': 'torn' },
    })
  })

  test('undocumented headers are left out', async () => {
    expect(await receiveParameters('/books', [['Other', '1']])).toMatchObject({ header: {} })
  })

  test.each([
    ['that is invalid', [['Book-Note', '1']]],
    [
      'that is sent twice',
      [
        ['Book-Note', 'torn'],
        ['Book-Note', 'old'],
      ],
    ],
  ] as [string, [string, string][]][])('one %s is refused by its documented name', async (_what, headers) => {
    expect(await receiveParameters('/books', headers)).toEqual({
      status: 400,
      errors: [{ header: 'Book-Note', detail: 'must match pattern "^[a-z]+$"' }],
    })
  })
})
