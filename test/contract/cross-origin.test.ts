/** Requests of pages from other origins: preflight requests, and what the pages may read. */
import { describe, expect, test } from 'vitest'
import { jsonType, key, type Sent, serve } from './served.ts'

const app = 'https://app.example.com'
const origins = [app, 'http://localhost:5173']
const from = (origin: string): [string, string] => ['Origin', origin]
const wants = (method: string): [string, string] => ['Access-Control-Request-Method', method]

/** Those of the document. */
const exposed = 'Cache-Control, Location, X-Request-Id'

describe('with origins', () => {
  test('a preflight request from one of them needs no key, and permits what the path documents', async () => {
    const observed: unknown[] = []
    const observe = (...exchange: unknown[]) => void observed.push(exchange.slice(0, 3))
    const { call, logged } = await serve({ origins, observe })
    const { status, headers, text } = await call('OPTIONS', '/books', { headers: [from(app), wants('POST')] })
    expect({ status, text }).toEqual({ status: 204, text: '' })
    expect(headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-headers': 'Authorization, Book-Note, Content-Type, traceparent, tracestate',
      'access-control-max-age': '7200',
      vary: 'Origin',
      'x-request-id': expect.any(String),
    })
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
    expect(observed).toEqual([['', 'OPTIONS', 204]])
    expect(logged).toMatchObject([{ method: 'OPTIONS', status: 204 }])
  })

  test.each<[string, [string, string][]]>([
    ['another origin', [from('https://other.example.com'), wants('GET')]],
    ['the origin with another port', [from(`${app}:8443`), wants('GET')]],
    ['the origin as another scheme', [from('http://app.example.com'), wants('GET')]],
    ['null', [from('null'), wants('GET')]],
    ['two origins', [from(app), from(app), wants('GET')]],
    ['no origin', [wants('GET')]],
    ['no requested method', [from(app)]],
  ])('OPTIONS with %s is refused as without origins', async (_what, headers) => {
    const { call } = await serve({ origins })
    const refused = await call('OPTIONS', '/books', { headers })
    expect(refused.status).toBe(405)
    expect(refused.headers.allow).toBe('GET, HEAD, POST')
    expect(refused.headers.vary).toBe('Origin')
  })

  test.each<[string, string, Sent, number]>([
    ['a success', '/books/a', { headers: [key] }, 200],
    ['an event stream', '/books/a/pages', { headers: [key] }, 200],
    ['a refused key', '/books/a', { headers: [] }, 401],
    ['an invalid request', '/books?limit=0', { headers: [key] }, 400],
    ['an unknown path', '/films', { headers: [] }, 404],
  ])('a page of one of them may read %s with its headers; other pages may not', async (_what, path, sent, status) => {
    const { call } = await serve({ origins })
    const permitted = await call('GET', path, { headers: [...(sent.headers ?? []), from(app)] })
    expect(permitted.status).toBe(status)
    expect(permitted.headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-expose-headers': exposed,
      vary: 'Origin',
    })
    expect(permitted.headers).not.toHaveProperty('access-control-allow-credentials')
    for (const more of [[from('https://other.example.com')], []]) {
      const other = await call('GET', path, { headers: [...(sent.headers ?? []), ...more] })
      expect(other.status).toBe(status)
      expect(other.headers.vary).toBe('Origin')
      expect(Object.keys(other.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  })

  test('a response that the service withholds tells the page that it failed', async () => {
    const broken = { getBook: async () => ({ status: 200, body: { colour: 7 } }) }
    const { call } = await serve({ origins, handlers: broken })
    const response = await call('GET', '/books/a', { headers: [key, from(app)] })
    expect(response.status).toBe(500)
    expect(response.headers['access-control-allow-origin']).toBe(app)
  })
})

test('without origins, no response mentions them', async () => {
  const { call } = await serve()
  const responses = [
    await call('OPTIONS', '/books', { headers: [from(app), wants('GET')] }),
    await call('PUT', '/books/a', { headers: [key, jsonType, from(app)], body: '{"title":"A"}' }),
  ]
  expect(responses.map(({ status }) => status)).toEqual([405, 201])
  for (const { headers } of responses)
    expect(Object.keys(headers).filter((name) => /^(vary|access-control-.*)$/.test(name))).toEqual([])
})
