import { describe, expect, test } from 'vitest'
import { library } from './library.ts'
import { Down, goodKey, jsonType, key, readerKey, serve } from './served.ts'

const bearer = (value: string): [string, string] => ['Authorization', `Bearer ${value}`]

function withKeyHeader() {
  const document = library()
  document.components.securitySchemes.key = { type: 'apiKey', in: 'header', name: 'X-Library-Key' } as never
  return document
}

describe('with a bearer scheme', () => {
  test.each([
    ['as documented', [bearer(goodKey)]],
    ['with the scheme in another case', [['authorization', `bEARER ${goodKey}`]]],
    ['with several spaces', [['Authorization', `Bearer   ${goodKey}`]]],
  ] as [string, [string, string][]][])('a key is accepted %s', async (_how, headers) => {
    const { call } = await serve()
    expect(await call('GET', '/books/a', { headers })).toMatchObject({ status: 200 })
  })

  test.each([
    ['no key', []],
    ['an empty header', [['Authorization', '']]],
    ['no scheme', [['Authorization', goodKey]]],
    ['another scheme', [['Authorization', `Basic ${goodKey}`]]],
    ['a key that is no UUID', [bearer('secret')]],
    ['something after the key', [bearer(`${goodKey} x`)]],
    ['an unknown key', [bearer('00000000-0000-4000-8000-000000000000')]],
    ['the same key twice', [key, key]],
    ['a good key and another', [key, bearer(readerKey)]],
    ["the key in the other surface's header", [['X-Library-Key', goodKey]]],
  ] as [string, [string, string][]][])(
    '%s is answered with 401, in plain text and no other words',
    async (_what, headers) => {
      const { call } = await serve()
      const answer = await call('GET', '/books/a', { headers })
      expect(answer).toMatchObject({ status: 401, text: 'Unauthorized' })
      expect(answer.headers['content-type']).toBe('text/plain')
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="library"')
    },
  )
})

describe('with a key in a header of its own', () => {
  test('the key is accepted in that header alone', async () => {
    const { call } = await serve({ document: withKeyHeader() })
    expect((await call('GET', '/books/a', { headers: [['x-library-key', goodKey]] })).status).toBe(200)
    const refused = await call('GET', '/books/a')
    expect(refused).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(refused.headers['www-authenticate']).toBe('ApiKey realm="library", header="X-Library-Key"')
  })

  test('a key that is sent twice is refused, which Node joins with a comma', async () => {
    const { call } = await serve({ document: withKeyHeader() })
    const twice: [string, string][] = [
      ['X-Library-Key', goodKey],
      ['x-library-key', goodKey],
    ]
    expect((await call('GET', '/books/a', { headers: twice })).status).toBe(401)
  })
})

describe('what the key permits', () => {
  test('scopes are read from the document', async () => {
    const { call } = await serve()
    const headers = [bearer(readerKey)]
    expect((await call('GET', '/books/a', { headers })).status).toBe(200)
    const answer = await call('DELETE', '/books/a', { headers })
    expect(answer).toMatchObject({ status: 403, text: 'Forbidden' })
    expect(answer.headers['content-type']).toBe('text/plain')
  })

  test('the words of 401 and 403 are those of the document', async () => {
    const document = library()
    document.components.responses.Unauthorized.content['text/plain'].schema.const = 'Wer da?'
    const { call } = await serve({ document })
    expect((await call('GET', '/books/a', { headers: [] })).text).toBe('Wer da?')
  })

  test('a long answer can ask whether its key would be accepted now', async () => {
    let isGood = true
    const seen: boolean[] = []
    const { call } = await serve({
      authenticate: async () => (isGood ? { principal: { name: '' }, scopes: null } : undefined),
      handlers: {
        getBook: async (request) => {
          const { stillAuthenticated } = request as { stillAuthenticated(): Promise<boolean> }
          seen.push(await stillAuthenticated())
          isGood = false
          seen.push(await stillAuthenticated())
          return { status: 200, body: { title: 'A' } }
        },
      },
    })
    await call('GET', '/books/a')
    expect(seen).toEqual([true, false])
  })
})

describe('the order of checks', () => {
  test('a path that does not exist is 404 and a method that it does not have is 405, also without a key', async () => {
    const { call } = await serve()
    expect((await call('GET', '/nothing', { headers: [] })).json).toMatchObject({
      status: 404,
      type: '/docs/errors#not-found',
    })
    for (const method of ['PATCH', 'OPTIONS', 'HEAD']) {
      const answer = await call(method, '/books/a', { headers: [] })
      expect(answer.status).toBe(405)
      expect(answer.headers.allow).toBe('GET, PUT, DELETE')
    }
  })

  test('without a key, the answer comes before any of the body', async () => {
    const { send } = await serve()
    const head =
      'PUT /books/a HTTP/1.1\r\nHost: x\r\nContent-Type: nonsense\r\nContent-Length: 1000000\r\nConnection: close'
    expect(await send(`${head}\r\n\r\n`)).toMatch(/^HTTP\/1.1 401 Unauthorized/)
  })

  test('scopes come before the answer’s media type, that before the body’s, and that before the rest', async () => {
    const { call } = await serve()
    const bad = { path: '/books/%zz', body: '{' }
    const accept: [string, string] = ['Accept', 'image/png']
    const xml: [string, string] = ['Content-Type', 'application/xml']
    const status = async (headers: [string, string][]) =>
      (await call('PUT', bad.path, { headers, body: bad.body })).status
    expect(await status([bearer(readerKey), accept, xml])).toBe(403)
    expect(await status([key, accept, xml])).toBe(406)
    expect(await status([key, xml])).toBe(415)
    expect(await status([key, jsonType])).toBe(400)
  })
})

describe('when the keys cannot be looked up', () => {
  test.each([
    ['a store that is down is 503, with the time to try again', new Down(), 503, '1'],
    ['a fault is 500', new TypeError('secret detail'), 500, undefined],
  ])('%s, and never 401', async (_what, error, status, retryAfter) => {
    const { call, logged } = await serve({ authenticate: () => Promise.reject(error) })
    const answer = await call('GET', '/books/a')
    expect(answer.json).toMatchObject({ status })
    expect(answer.headers['retry-after']).toBe(retryAfter)
    expect(answer.text).not.toContain('secret')
    expect(logged[0]).toMatchObject({ level: 50, requestId: answer.json.requestId, err: { message: error.message } })
  })
})

test('neither the key nor what was sent with it stands in the log', async () => {
  const { call, logged } = await serve()
  const headers: [string, string][] = [key, jsonType, ['Book-Note', 'canaryheader']]
  await call('PUT', '/books/a?canaryname=canaryquery', { headers, body: '{"title":"canarybody","canarymember":1}' })
  await call('GET', '/books/a', { headers: [bearer('canarykey')] })
  expect(logged).toHaveLength(2)
  expect(JSON.stringify(logged)).not.toMatch(new RegExp(`canary|${goodKey}`))
})
