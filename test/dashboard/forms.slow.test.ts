/** Malformed, truncated and oversized forms never cause an internal error or block the service. */
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sendText } from '../operations/raw-http.ts'
import { type DashboardService, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { pageText } from '../support/html.ts'
import { createItems, type Route, routeName, routePath, routes } from './route-list.ts'

let dashboard: DashboardService
let account: Awaited<ReturnType<typeof createItems>>

beforeAll(async () => {
  dashboard = await startDashboardService({ PROXY_HOPS: '1' })
  account = await createItems(dashboard)
})

afterAll(() => dashboard.stop())

afterEach(() => {
  expect(dashboard.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})

/** An upload is no form: its body is the file, of any media type. */
const posts: [string, Route][] = routes
  .filter(({ method, path }) => method === 'POST' && path !== '/files')
  .map((route) => [routeName(route), route])

const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
const mebibyte = 1024 * 1024

/** Expands to 50 times its limit. */
const zipBomb = gzipSync(Buffer.alloc(50 * mebibyte, 'name=x&'))

/** Sends from a new address each time, so that no rate limit applies. */
let address = 0
function send(visitor: Visitor, path: string, body: string | Buffer, headers: Record<string, string> = form) {
  address += 1
  const from = { 'X-Forwarded-For': `10.1.${address >> 8}.${address & 255}`, 'Sec-Fetch-Site': 'same-origin' }
  return visitor.send('POST', path, { headers: { ...from, ...headers }, body })
}

const names = [
  'name',
  'email',
  'password',
  'currentPassword',
  'label',
  'role',
  'id',
  'lifetime',
  'permissions',
  'scope',
  'next',
]

/** Sets every field of the dashboard's forms to the text. */
const setAllFields = (text: string) => names.map((name) => `${name}=${text}`).join('&')

const forgedBodies: [what: string, body: string][] = [
  ['an empty body', ''],
  ['a field without a name', '=x&&&=&x'],
  ['repeated fields', `${setAllFields('a')}&${setAllFields('b')}`],
  ['fields as arrays and objects', names.map((name) => `${name}[]=x&${name}[a][b]=y&${name}[__proto__]=z`).join('&')],
  ['names of inherited members', '__proto__=x&constructor=y&toString=z&hasOwnProperty=1&__proto__[name]=x'],
  ['invalid percent-encoding', setAllFields('%zz%')],
  ['invalid UTF-8', setAllFields('%ff%fe%c0%80')],
  ['lone surrogates', setAllFields('%ED%A0%80\ud800')],
  ['line breaks', setAllFields('a%0D%0ASet-Cookie%3A%20x%3Dy')],
  ['SQL', setAllFields("'%3B%20DROP%20TABLE%20users%3B%20--")],
  [
    'many fields',
    Array.from({ length: 20_000 }, (_, index) => `f${index}`)
      .join('&')
      .slice(0, 60_000),
  ],
  ['a long text', setAllFields('a'.repeat(5000))],
]

describe.each(posts)('%s', (_, route) => {
  test('handles forged fields without an internal error', async () => {
    const { owner, items } = account
    for (const [what, body] of forgedBodies) {
      // With the owner's own id, because a form that happens to be valid would change the item.
      const response = await send(owner.visitor, routePath(route, { ...items, user: owner.id }), body)
      expect([what, response.status < 500]).toEqual([what, true])
      expect(response.headers['content-type'] ?? 'text/html; charset=utf-8').toBe('text/html; charset=utf-8')
      if (route.path.includes('/sign-out')) await signInAgain()
    }
    expect(await dashboard.domain.users.get(owner.id)).toMatchObject({ role: 'admin' })
  })

  test('refuses other media types and oversized bodies with an error page', async () => {
    const path = routePath(route, account.items)
    const { visitor } = account.owner
    const refusedBodies: [status: number, body: string | Buffer, headers: Record<string, string>][] = [
      [415, '{"name":"x"}', { 'Content-Type': 'application/json' }],
      [415, 'name=x', { 'Content-Type': 'text/plain' }],
      [415, '--x\r\n\r\n--x--', { 'Content-Type': 'multipart/form-data; boundary=x' }],
      [415, 'name=x', { 'Content-Type': 'nonsense' }],
      [415, 'name=x', { ...form, 'Content-Encoding': 'nonsense' }],
      [415, 'name=x', { 'Content-Type': 'application/x-www-form-urlencoded; charset=nonsense' }],
      [400, 'name=x', { ...form, 'Content-Encoding': 'gzip' }],
      [413, `name=${'x'.repeat(5 * mebibyte)}`, form],
      [413, zipBomb, { ...form, 'Content-Encoding': 'gzip' }],
    ]
    for (const [status, body, headers] of refusedBodies) {
      const response = await send(visitor, path, body, headers)
      expect([headers, response.status]).toEqual([headers, status])
      expect(pageText(response)).toContain('No changes were made.')
    }
  })
})

/** Restores the session that all tests share. */
async function signInAgain(): Promise<void> {
  const { visitor, email, password } = account.owner
  expect((await visitor.post('/sign-in', { email, password })).status).toBe(303)
}

describe('a form', () => {
  test('without a session is limited to 64 KiB', async () => {
    const visitor = new Visitor(dashboard.url)
    const body = `email=a@b&password=${'x'.repeat(64 * 1024)}`
    for (const path of ['/sign-in', '/sign-out', `/links/${account.items.token}`]) {
      expect((await send(visitor, path, body)).status).toBe(413)
    }
  })

  test('with a long password takes no long hashing', async () => {
    const { email } = await signIn(dashboard)
    const started = process.cpuUsage()
    const body = `email=${email}&password=${'%EF%B7%BA'.repeat(7000)}`
    expect((await send(new Visitor(dashboard.url), '/sign-in', body)).status).toBe(401)
    // CPU time of this process, which other load on the machine does not affect.
    const { user, system } = process.cpuUsage(started)
    expect(user + system).toBeLessThan(5_000_000)
  })

  test('that is truncated is refused and does not block other requests', async () => {
    const { host } = new URL(dashboard.url)
    const ada = await signIn(dashboard)
    const cookie = [...ada.visitor.cookies].map((pair) => pair.join('=')).join('; ')
    const head = `POST /settings HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: same-origin\r\nCookie: ${cookie}\r\nConnection: close`
    const type = 'Content-Type: application/x-www-form-urlencoded'
    await sendText(dashboard.url, `${head}\r\n${type}\r\nContent-Length: 100\r\n\r\nname=x`, 'end')
    await sendText(dashboard.url, `${head}\r\n${type}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nname=x\r\n`, 'end')
    expect((await ada.visitor.get('/settings')).status).toBe(200)
    expect(await dashboard.domain.accounts.get(ada.accountId)).toMatchObject({ name: 'Test' })
  })
})
