import { once } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { CredentialChecks } from '../../src/contract/stages.ts'
import { waitLimits } from '../support/timeouts.ts'
import { library } from './library.ts'
import { Down, goodKey, jsonType, key, readerKey, serve } from './served.ts'

const bearer = (value: string): [string, string] => ['Authorization', `Bearer ${value}`]

function withKeyHeader() {
  const document = library()
  document.components.securitySchemes.key = { type: 'apiKey', in: 'header', name: 'X-Library-Key' } as never
  return document
}

describe('with a bearer scheme', () => {
  test('a request without a key gets 401 with the text of the document and a challenge', async () => {
    const { call } = await serve()
    const refused = await call('GET', '/books/a', { headers: [] })
    expect(refused).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(refused.headers['content-type']).toBe('text/plain')
    expect(refused.headers['www-authenticate']).toBe('Bearer realm="library"')
  })
})

describe('with a header scheme', () => {
  test('the key is accepted only in that header', async () => {
    const { call } = await serve({ document: withKeyHeader() })
    expect((await call('GET', '/books/a', { headers: [['x-library-key', goodKey]] })).status).toBe(200)
    const refused = await call('GET', '/books/a')
    expect(refused).toMatchObject({ status: 401, text: 'Unauthorized' })
    expect(refused.headers['www-authenticate']).toBe('ApiKey realm="library", header="X-Library-Key"')
  })

  test('a key that is sent twice is refused', async () => {
    const { call } = await serve({ document: withKeyHeader() })
    const twice: [string, string][] = [
      ['X-Library-Key', goodKey],
      ['x-library-key', goodKey],
    ]
    expect((await call('GET', '/books/a', { headers: twice })).status).toBe(401)
  })
})

describe('scopes', () => {
  test('are read from the document', async () => {
    const { call } = await serve()
    const headers = [bearer(readerKey)]
    expect((await call('GET', '/books/a', { headers })).status).toBe(200)
    const response = await call('DELETE', '/books/a', { headers })
    expect(response).toMatchObject({ status: 403, text: 'Forbidden' })
    expect(response.headers['content-type']).toBe('text/plain')
  })

  test('the texts of 401 and 403 come from the document', async () => {
    const document = library()
    document.components.responses.Unauthorized.content['text/plain'].schema.const = 'Wer da?'
    const { call } = await serve({ document })
    expect((await call('GET', '/books/a', { headers: [] })).text).toBe('Wer da?')
  })

  test('a long response can check whether its key is still valid', async () => {
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

describe('requests that take long', () => {
  test('end when their key becomes invalid, with one check a second for all of them', async () => {
    let isGood = true
    let checks = 0
    const waiting: Promise<void>[] = []
    const { call } = await serve({
      authenticate: async (_credential, _schemes, client) => {
        if (client === undefined) checks += 1
        return isGood ? { principal: { name: '' }, scopes: null } : undefined
      },
      handlers: {
        getBook: async (request) => {
          const signal = (request as { whileAuthenticated(): AbortSignal }).whileAuthenticated()
          waiting.push(new Promise((resolve) => signal.addEventListener('abort', () => resolve())))
          await waiting.at(-1)
          return { status: 200, body: { title: 'A' } }
        },
      },
    })
    const calls = [call('GET', '/books/a'), call('GET', '/books/b')]
    await vi.waitUntil(() => waiting.length === 2 && checks > 0, waitLimits)
    isGood = false
    const before = checks
    await Promise.all(calls)
    expect(checks - before).toBe(1)
  })

  test('do not end because the store is unavailable', async () => {
    let checks = 0
    const abort = new AbortController()
    const credentials = new CredentialChecks()
    const check = async () => {
      checks += 1
      if (checks === 1) throw new Error('unavailable')
      return false
    }
    credentials.add('key', check, abort)
    await once(abort.signal, 'abort')
    expect(checks).toBe(2)
  })
})

describe('the order of checks', () => {
  test('an unknown path is 404 and an unsupported method 405, even without a key', async () => {
    const { call } = await serve()
    expect((await call('GET', '/nothing', { headers: [] })).json).toMatchObject({
      status: 404,
      type: '/docs/errors#not-found',
    })
    for (const method of ['PATCH', 'OPTIONS', 'TRACE']) {
      const response = await call(method, '/books/a', { headers: [] })
      expect(response.status).toBe(405)
      expect(response.headers.allow).toBe('GET, HEAD, PUT, DELETE')
    }
  })

  test('without a key, the response comes before the body', async () => {
    const { send } = await serve()
    const head =
      'PUT /books/a HTTP/1.1\r\nHost: x\r\nContent-Type: nonsense\r\nContent-Length: 1000000\r\nConnection: close'
    expect(await send(`${head}\r\n\r\n`)).toMatch(/^HTTP\/1.1 401 Unauthorized/)
  })

  test('scopes precede the media type of the response, then that of the body, then validation', async () => {
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

describe('when keys cannot be looked up', () => {
  test.each([
    ['an unavailable store is 503 with Retry-After', new Down(), 503, '1'],
    ['an error is 500', new TypeError('secret detail'), 500, undefined],
  ])('%s, and never 401', async (_what, error, status, retryAfter) => {
    const { call, logged } = await serve({ authenticate: () => Promise.reject(error) })
    const response = await call('GET', '/books/a')
    expect(response.json).toMatchObject({ status })
    expect(response.headers['retry-after']).toBe(retryAfter)
    expect(response.text).not.toContain('secret')
    expect(logged[0]).toMatchObject({ level: 50, requestId: response.json.requestId, err: { message: error.message } })
  })
})

test('the log contains neither the key nor the request', async () => {
  const { call, logged } = await serve()
  const headers: [string, string][] = [key, jsonType, ['Book-Note', 'canaryheader']]
  await call('PUT', '/books/a?canaryname=canaryquery', { headers, body: '{"title":"canarybody","canarymember":1}' })
  await call('GET', '/books/a', { headers: [bearer('canarykey')] })
  expect(logged).toHaveLength(2)
  expect(JSON.stringify(logged)).not.toMatch(new RegExp(`canary|${goodKey}`))
})
