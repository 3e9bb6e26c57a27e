/** Forms that no browser sends: forged, cut off, huge, or not forms at all. None of them fails the service or holds it up. */
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sendText } from '../operations/raw-http.ts'
import { type DashboardService, pageText, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { nameOf, newThings, pathTo, type Route, routes } from './routes.ts'

let served: DashboardService
let ours: Awaited<ReturnType<typeof newThings>>

beforeAll(async () => {
  served = await startDashboardService({ PROXY_HOPS: '1' })
  ours = await newThings(served)
})

afterAll(() => served.stop())

afterEach(() => {
  expect(served.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})

const posts: [string, Route][] = routes.filter(({ method }) => method === 'POST').map((route) => [nameOf(route), route])

const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
const mebibyte = 1024 * 1024

/** From an address that nobody else has, so that nothing is refused for having been tried too often. */
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

/** The same text for every field that a form of the dashboard has. */
const everywhere = (text: string) => names.map((name) => `${name}=${text}`).join('&')

const forged: [what: string, body: string][] = [
  ['nothing', ''],
  ['a field without a name', '=x&&&=&x'],
  ['fields twice', `${everywhere('a')}&${everywhere('b')}`],
  ['fields as arrays and objects', names.map((name) => `${name}[]=x&${name}[a][b]=y&${name}[__proto__]=z`).join('&')],
  ['names that objects have', '__proto__=x&constructor=y&toString=z&hasOwnProperty=1&__proto__[name]=x'],
  ['invalid percent-encoding', everywhere('%zz%')],
  ['bytes that are no UTF-8', everywhere('%ff%fe%c0%80')],
  ['NUL bytes', everywhere('a%00b')],
  ['surrogates without their other half', everywhere('%ED%A0%80\ud800')],
  ['line breaks', everywhere('a%0D%0ASet-Cookie%3A%20x%3Dy')],
  ['SQL', everywhere("'%3B%20DROP%20TABLE%20users%3B%20--")],
  [
    'many fields',
    Array.from({ length: 20_000 }, (_, index) => `f${index}`)
      .join('&')
      .slice(0, 60_000),
  ],
  ['a long text', everywhere('a'.repeat(5000))],
]

describe.each(posts)('%s', (_, route) => {
  test('takes what is forged as what it is', async () => {
    const { owner, things } = ours
    for (const [what, body] of forged) {
      // Not the thing itself, which a form that happens to be right would end.
      const answer = await send(owner.visitor, pathTo(route, { ...things, user: owner.id }), body)
      expect([what, answer.status < 500]).toEqual([what, true])
      expect(answer.headers['content-type'] ?? 'text/html; charset=utf-8').toBe('text/html; charset=utf-8')
      if (route.path === '/sign-out') await signInAgain()
    }
    expect(await served.domain.users.get(owner.id)).toMatchObject({ role: 'owner' })
  })

  test('refuses what is no form, or too large, with a page', async () => {
    const path = pathTo(route, ours.things)
    const { visitor } = ours.owner
    const refused: [status: number, body: string | Buffer, headers: Record<string, string>][] = [
      [415, '{"name":"x"}', { 'Content-Type': 'application/json' }],
      [415, 'name=x', { 'Content-Type': 'text/plain' }],
      [415, '--x\r\n\r\n--x--', { 'Content-Type': 'multipart/form-data; boundary=x' }],
      [415, 'name=x', { 'Content-Type': 'nonsense' }],
      [415, 'name=x', { ...form, 'Content-Encoding': 'nonsense' }],
      [415, 'name=x', { 'Content-Type': 'application/x-www-form-urlencoded; charset=nonsense' }],
      [400, 'name=x', { ...form, 'Content-Encoding': 'gzip' }],
      [413, `name=${'x'.repeat(5 * mebibyte)}`, form],
      [413, gzipSync(Buffer.alloc(50 * mebibyte, 'name=x&')), { ...form, 'Content-Encoding': 'gzip' }],
    ]
    for (const [status, body, headers] of refused) {
      const answer = await send(visitor, path, body, headers)
      expect([headers, answer.status]).toEqual([headers, status])
      expect(pageText(answer)).toContain('No changes were made.')
    }
  })
})

/** The one session of the tests, after it has been signed out of. */
async function signInAgain(): Promise<void> {
  const { visitor, email, password } = ours.owner
  expect((await visitor.post('/sign-in', { email, password })).status).toBe(303)
}

describe('a form', () => {
  test('of somebody who is not signed in is small', async () => {
    const visitor = new Visitor(served.url)
    const body = `email=a@b&password=${'x'.repeat(64 * 1024)}`
    for (const path of ['/sign-in', '/sign-out', `/links/${ours.things.token}`]) {
      expect((await send(visitor, path, body)).status).toBe(413)
    }
  })

  test('with a password of any length is refused about as fast as another', async () => {
    const { email } = await signIn(served)
    const started = process.cpuUsage()
    const body = `email=${email}&password=${'%EF%B7%BA'.repeat(7000)}`
    expect((await send(new Visitor(served.url), '/sign-in', body)).status).toBe(401)
    // Of this process, which has the service in it: what else runs on the machine takes time of the clock alone.
    const { user, system } = process.cpuUsage(started)
    expect(user + system).toBeLessThan(5_000_000)
  })

  test('that is cut off, or says that it is longer than it is, is refused and holds nothing up', async () => {
    const { host } = new URL(served.url)
    const ada = await signIn(served)
    const cookie = [...ada.visitor.cookies].map((pair) => pair.join('=')).join('; ')
    const head = `POST /settings HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: same-origin\r\nCookie: ${cookie}\r\nConnection: close`
    const type = 'Content-Type: application/x-www-form-urlencoded'
    await sendText(served.url, `${head}\r\n${type}\r\nContent-Length: 100\r\n\r\nname=x`, 'end')
    await sendText(served.url, `${head}\r\n${type}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nname=x\r\n`, 'end')
    expect((await ada.visitor.get('/settings')).status).toBe(200)
    expect(await served.domain.accounts.get(ada.accountId)).toMatchObject({ name: 'Test' })
  })
})
