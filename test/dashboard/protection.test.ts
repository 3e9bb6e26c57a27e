/** What keeps other sites and their scripts away from the dashboard: on every route, and on every answer. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { assetPath } from '../../src/surfaces/dashboard/assets.ts'
import { sendText } from '../operations/raw-http.ts'
import { type DashboardService, pageText, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { startTestService } from '../support/service.ts'
import { nameOf, newThings, pathTo, type Route, routes } from './routes.ts'

let served: DashboardService
let host: string
let ours: Awaited<ReturnType<typeof newThings>>

beforeAll(async () => {
  served = await startDashboardService()
  host = new URL(served.url).host
  ours = await newThings(served)
})

afterAll(() => served.stop())

const posts: [string, Route][] = routes.filter(({ method }) => method === 'POST').map((route) => [nameOf(route), route])

/** A form that would do something everywhere. */
const body = new URLSearchParams({
  name: 'Forged',
  email: 'eve@example.com',
  password: 'a forged password',
  label: 'Eve',
  role: 'owner',
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

const refused: [string, Record<string, string>][] = [
  ['from another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['from another host of the same site', { 'Sec-Fetch-Site': 'same-site' }],
  ['that contradicts itself', { 'Sec-Fetch-Site': 'cross-site, same-origin' }],
  ['of another site on a host that it has led here', { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://HOST' }],
  ['from a foreign origin', { Origin: 'http://evil.example' }],
  ['from another port', { Origin: 'http://127.0.0.1:1' }],
  ['from a host that begins alike', { Origin: 'http://HOST.evil.example' }],
  ['from the host as a user name', { Origin: 'http://HOST@evil.example' }],
  ['from an origin that is not told', { Origin: 'null' }],
  ['from a file', { Origin: 'file://' }],
  ['from no origin at all', {}],
  ['from an empty origin', { Origin: '' }],
  ['with a mere referrer', { Referer: 'http://HOST/settings' }],
]

describe('a form', () => {
  test.for(posts)(
    'to %s is refused unless it is the dashboard’s own, and changes nothing',
    async ([, route], { expect }) => {
      const before = await contents(served)
      const path = pathTo(route, ours.things)
      for (const [what, headers] of refused) {
        const all = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, value.replace('HOST', host)]),
        )
        const answer = await send(ours.owner.visitor, path, all)
        expect([what, answer.status]).toEqual([what, 403])
        expect(pageText(answer)).toContain('This form was submitted from another site. No changes were made.')
        expect(answer.headers['set-cookie']).toBeUndefined()
      }
      expect(await contents(served)).toBe(before)
    },
  )

  test('of the dashboard is taken as browsers send it, with Fetch Metadata or with the origin alone', async () => {
    const { visitor } = await signIn(served)
    const own = [
      { 'Sec-Fetch-Site': 'same-origin', Origin: served.url },
      { 'Sec-Fetch-Site': 'same-origin' },
      { Origin: served.url },
    ]
    for (const [index, headers] of own.entries()) {
      const answer = await send(visitor, '/settings', headers)
      expect([index, answer.status]).toEqual([index, 303])
    }
    const byName = host.replace('127.0.0.1', 'localhost')
    const head = `Host: ${byName}\r\nOrigin: http://${byName}\r\nContent-Length: 0\r\nConnection: close`
    expect((await sendText(served.url, `POST /sign-out HTTP/1.1\r\n${head}\r\n\r\n`)).status).toBe(303)
  })

  test('of a client that names no host is refused', async () => {
    const text = 'POST /sign-out HTTP/1.0\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n'
    expect((await sendText(served.url, text)).status).toBe(403)
  })

  test('by another method than POST does nothing', async () => {
    const before = await contents(served)
    for (const [, route] of posts) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const crossSite = { headers: { 'Sec-Fetch-Site': 'cross-site', 'X-HTTP-Method-Override': 'POST' } }
        expect((await ours.owner.visitor.send(method, pathTo(route, ours.things), crossSite)).status).toBe(403)
      }
    }
    expect(await contents(served)).toBe(before)
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

function policyOf(text: unknown) {
  return Object.fromEntries(
    String(text)
      .split(';')
      .map((part) => part.trim().split(/ (.*)/s).slice(0, 2)),
  )
}

describe('every answer', () => {
  type Asked = [what: string, status: number, ask: () => ReturnType<Visitor['get']>]
  const visitor = () => new Visitor(served.url)
  const answers: Asked[] = [
    ['a page for whoever comes', 200, () => visitor().get('/sign-in')],
    ['a redirect', 303, () => visitor().get('/settings')],
    ['a page for who is signed in', 200, () => ours.owner.visitor.get('/settings')],
    ['a page that has an API key', 200, () => ours.owner.visitor.post('/api-keys/new', { name: 'x', lifetime: '' })],
    ['a download', 200, () => ours.owner.visitor.get('/settings/audit-log.jsonl')],
    ['a form that was refused', 400, () => ours.owner.visitor.post('/settings', { name: '' })],
    ['a wrong password', 401, () => visitor().post('/sign-in', { email: 'a@b', password: 'x' })],
    ['another site', 403, () => visitor().post('/sign-out', {}, { 'Sec-Fetch-Site': 'cross-site' })],
    ['what is for owners', 403, () => ours.member.visitor.get('/settings/audit-log')],
    ['nothing', 404, () => visitor().get('/nothing')],
    ['a thing that is gone', 404, () => ours.owner.visitor.get('/api-keys/none/delete')],
    ['a path that cannot be decoded', 400, () => visitor().get('/links/%ff')],
    ['a link that has ended', 410, () => visitor().get('/links/none')],
    ['a body that is no form', 415, () => visitor().post('/sign-in', {}, { 'Content-Type': 'text/plain' })],
  ]

  test.for(answers)('to %s has the headers that protect it', async ([, status, ask], { expect }) => {
    const { headers, ...answer } = await ask()
    expect(answer.status).toBe(status)
    expect(policyOf(headers['content-security-policy'])).toEqual(policy)
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
    expect(JSON.stringify(headers) + answer.text).not.toMatch(/express(?!-session-)|node_modules|at .*\.[jt]s:\d/i)
    // Whatever a page has of its own, the policy lets a browser run or show nothing that stands within it.
    expect(answer.text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/i)
  })

  test('while the store is down says so, and nothing of its inside', async () => {
    const service = await startTestService({ worker: false })
    onTestFinished(service.stop)
    const { visitor, ...ada } = await signIn(service)
    const fresh = new Visitor(service.dashboardUrl)
    const [page, form] = await service.whileUnreadable(async () => [
      await visitor.get('/settings'),
      await fresh.post('/sign-in', ada),
    ])
    for (const answer of [page, form]) {
      expect(answer.status).toBe(503)
      expect(policyOf(answer.headers['content-security-policy'])).toEqual(policy)
      expect(pageText(answer)).toContain('The service is temporarily unavailable. No changes were made.')
      expect(answer.text).not.toMatch(/sqlite|database|\.ts\b/i)
      expect(service.log).toContainEqual(expect.objectContaining({ requestId: answer.headers['x-request-id'] }))
    }
    expect((await visitor.get('/settings')).status).toBe(200)
  })

  test('that is an asset may be kept for ever, under an address of its content', async () => {
    for (const name of ['pico.css', 'dashboard.js', 'icon.svg'] as const) {
      const { status, headers } = await visitor().get(assetPath(name))
      expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['content-type']).toMatch(/^(text\/css|text\/javascript|image\/svg\+xml)/)
      for (const other of ['x-powered-by', 'set-cookie', 'etag']) expect(headers[other]).toBeUndefined()
    }
    const gone = await visitor().get('/assets/0000000000/pico.css')
    expect([gone.status, gone.headers['cache-control']]).toEqual([404, 'no-store'])
  })
})
