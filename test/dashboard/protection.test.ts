/** Protection against cross-site requests on every route, and security headers on every response. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { assetPath } from '../../src/surfaces/dashboard/assets.ts'
import { sendText } from '../operations/raw-http.ts'
import { type DashboardService, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { pageText, readDocument } from '../support/html.ts'
import { startTestService } from '../support/service.ts'
import { createItems, type Route, routeName, routePath, routes } from './route-list.ts'

let dashboard: DashboardService
let host: string
let account: Awaited<ReturnType<typeof createItems>>

beforeAll(async () => {
  dashboard = await startDashboardService()
  host = new URL(dashboard.url).host
  account = await createItems(dashboard)
})

afterAll(() => dashboard.stop())

const posts: [string, Route][] = routes
  .filter(({ method }) => method === 'POST')
  .map((route) => [routeName(route), route])

/** Valid for every form. */
const body = new URLSearchParams({
  name: 'Forged',
  email: 'eve@example.com',
  password: 'a forged password',
  label: 'Eve',
  role: 'admin',
  lifetime: '',
  scopesEnabled: 'on',
}).toString()

function send(visitor: Visitor, path: string, headers: Record<string, string>) {
  return visitor.send('POST', path, {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
}

async function contents({ domain }: DashboardService): Promise<string> {
  const { query } = domain.store.read
  const tables = ['accounts', 'users', 'api_keys', 'sign_in_links', 'sessions', 'runs', 'audit_log'] as const
  const rows = await Promise.all(tables.map((table) => query.selectFrom(table).selectAll().execute()))
  return JSON.stringify(rows, (name, value) => (name.startsWith('last_used') ? null : value))
}

const refusedHeaders: [string, Record<string, string>][] = [
  ['from another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['from another host of the same site', { 'Sec-Fetch-Site': 'same-site' }],
  ['with contradictory values', { 'Sec-Fetch-Site': 'cross-site, same-origin' }],
  [
    'from another site that resolves to this host (DNS rebinding)',
    { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://HOST' },
  ],
  ['from a foreign origin', { Origin: 'http://evil.example' }],
  ['from another port', { Origin: 'http://127.0.0.1:1' }],
  ['from a host with the same prefix', { Origin: 'http://HOST.evil.example' }],
  ['from the host as a user name', { Origin: 'http://HOST@evil.example' }],
  ['from an opaque origin', { Origin: 'null' }],
  ['from a file', { Origin: 'file://' }],
  ['without an origin', {}],
  ['from an empty origin', { Origin: '' }],
  ['with only a referrer', { Referer: 'http://HOST/settings' }],
]

describe('a form', () => {
  test.for(posts)('to %s is refused from another site, and changes nothing', async ([, route], { expect }) => {
    const before = await contents(dashboard)
    const path = routePath(route, account.items)
    for (const [what, headers] of refusedHeaders) {
      const all = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value.replace('HOST', host)]),
      )
      const response = await send(account.owner.visitor, path, all)
      expect([what, response.status]).toEqual([what, 403])
      expect(pageText(response)).toContain('This form was submitted from another site. No changes were made.')
      expect(response.headers['set-cookie']).toBeUndefined()
    }
    expect(await contents(dashboard)).toBe(before)
  })

  test('of the dashboard is accepted with Fetch Metadata or with the origin alone', async () => {
    const { visitor } = await signIn(dashboard)
    const acceptedHeaders = [
      { 'Sec-Fetch-Site': 'same-origin', Origin: dashboard.url },
      { 'Sec-Fetch-Site': 'same-origin' },
      { Origin: dashboard.url },
    ]
    for (const [index, headers] of acceptedHeaders.entries()) {
      const response = await send(visitor, '/settings', headers)
      expect([index, response.status]).toEqual([index, 303])
    }
    const byName = host.replace('127.0.0.1', 'localhost')
    const head = `Host: ${byName}\r\nOrigin: http://${byName}\r\nContent-Length: 0\r\nConnection: close`
    expect((await sendText(dashboard.url, `POST /sign-out HTTP/1.1\r\n${head}\r\n\r\n`)).status).toBe(303)
  })

  test('without a Host header is refused', async () => {
    const text = 'POST /sign-out HTTP/1.0\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n'
    expect((await sendText(dashboard.url, text)).status).toBe(403)
  })

  test('sent with another method is refused', async () => {
    const before = await contents(dashboard)
    for (const [, route] of posts) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const crossSite = { headers: { 'Sec-Fetch-Site': 'cross-site', 'X-HTTP-Method-Override': 'POST' } }
        expect((await account.owner.visitor.send(method, routePath(route, account.items), crossSite)).status).toBe(403)
      }
    }
    expect(await contents(dashboard)).toBe(before)
  })
})

const policy = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
}

function parsePolicy(text: unknown) {
  return Object.fromEntries(
    String(text)
      .split(';')
      .map((part) => part.trim().split(/ (.*)/s).slice(0, 2)),
  )
}

describe('every response', () => {
  type ResponseCase = [what: string, status: number, ask: () => ReturnType<Visitor['get']>]
  const visitor = () => new Visitor(dashboard.url)
  const responses: ResponseCase[] = [
    ['a public page', 200, () => visitor().get('/sign-in')],
    ['a redirect', 303, () => visitor().get('/settings')],
    ['a page for a signed-in user', 200, () => account.owner.visitor.get('/settings')],
    ['a page with a new API key', 200, () => account.owner.visitor.post('/api-keys/new', { name: 'x', lifetime: '' })],
    ['a download', 200, () => account.owner.visitor.get('/settings/audit-log.jsonl')],
    ['an invalid form', 400, () => account.owner.visitor.post('/settings', { name: '' })],
    ['an invalid password', 401, () => visitor().post('/sign-in', { email: 'a@b', password: 'x' })],
    ['a cross-site request', 403, () => visitor().post('/sign-out', {}, { 'Sec-Fetch-Site': 'cross-site' })],
    ['a page for admins', 403, () => account.member.visitor.get('/settings/audit-log')],
    ['an unknown path', 404, () => visitor().get('/nothing')],
    ['a deleted item', 404, () => account.owner.visitor.get('/api-keys/none/delete')],
    ['a path that cannot be decoded', 400, () => visitor().get('/links/%ff')],
    ['an invalid link', 410, () => visitor().get('/links/none')],
    ['an unsupported body', 415, () => visitor().post('/sign-in', {}, { 'Content-Type': 'text/plain' })],
  ]

  test.for(responses)('has security headers: %s', async ([, status, ask], { expect }) => {
    const { headers, ...response } = await ask()
    expect(response.status).toBe(status)
    expect(parsePolicy(headers['content-security-policy'])).toEqual(policy)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-store',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    for (const name of ['strict-transport-security', 'x-powered-by', 'server', 'etag'])
      expect(headers[name]).toBeUndefined()
    expect(JSON.stringify(headers) + response.text).not.toMatch(/express(?!-session-)|node_modules|at .*\.[jt]s:\d/i)
    // The Content-Security-Policy allows nothing inline.
    const elements = [...readDocument(response).querySelectorAll('*')]
    const inline = elements.filter((each) => each.matches('script:not([src]), style, [style]'))
    const handlers = elements.flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on'))
    expect([inline, handlers]).toEqual([[], []])
  })

  test('while the store is down says so without internal details', async () => {
    const service = await startTestService({ worker: false })
    onTestFinished(service.stop)
    const { visitor, ...ada } = await signIn(service)
    const fresh = new Visitor(service.dashboardUrl)
    const [page, form] = await service.whileUnreadable(async () => [
      await visitor.get('/settings'),
      await fresh.post('/sign-in', ada),
    ])
    for (const response of [page, form]) {
      expect(response.status).toBe(503)
      expect(parsePolicy(response.headers['content-security-policy'])).toEqual(policy)
      expect(pageText(response)).toContain(
        'The service is temporarily unavailable. Check whether your change was saved, then try again.',
      )
      expect(response.text).not.toMatch(/sqlite|database|\.ts\b/i)
      expect(service.log).toContainEqual(expect.objectContaining({ requestId: response.headers['x-request-id'] }))
    }
    expect((await visitor.get('/settings')).status).toBe(200)
  })

  test('with an asset is immutable, at a path that contains the hash of its content', async () => {
    for (const name of ['pico.css', 'dashboard.js', 'icon.svg'] as const) {
      const { status, headers } = await visitor().get(assetPath(name))
      expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['content-type']).toMatch(/^(text\/css|text\/javascript|image\/svg\+xml)/)
      for (const other of ['x-powered-by', 'set-cookie', 'etag']) expect(headers[other]).toBeUndefined()
    }
    const missing = await visitor().get('/assets/0000000000/pico.css')
    expect([missing.status, missing.headers['cache-control']]).toEqual([404, 'no-store'])
  })

  test('is compressed for readers who accept it, unless it answers a form', async () => {
    const { visitor: ada } = await signIn(dashboard)
    const cookie = [...ada.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const read = async (path: string, init: RequestInit = {}) => {
      const headers = { Cookie: cookie, 'Accept-Encoding': 'gzip', 'Sec-Fetch-Site': 'same-origin' }
      const response = await fetch(`${dashboard.url}${path}`, { ...init, headers })
      return {
        encoding: response.headers.get('content-encoding'),
        vary: response.headers.get('vary'),
        text: await response.text(),
      }
    }
    const page = await read('/runs')
    expect([page.encoding, page.vary]).toEqual(['gzip', 'Accept-Encoding'])
    expect(page.text).toBe((await ada.get('/runs')).text)
    const style = await read(assetPath('dashboard.css'))
    expect([style.encoding, style.text]).toEqual(['gzip', (await ada.get(assetPath('dashboard.css'))).text])
    const form = { method: 'POST', body: new URLSearchParams({ name: 'Key', lifetime: 'soon' }) }
    expect(await read('/api-keys/new', form)).toMatchObject({
      encoding: null,
      text: expect.stringContaining('</html>'),
    })
  })
})
