/** Sessions: cookie attributes, session fixation, sign-out and expiry. */
import type { Request } from 'express'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import type { Dependencies } from '../../src/surfaces/dashboard/dependencies.ts'
import { authenticate } from '../../src/surfaces/dashboard/page-routes.ts'
import {
  type DashboardService,
  type SignedInUser,
  setCookieHeaders,
  signIn,
  startDashboardService,
  stopClock,
  Visitor,
} from '../support/dashboard.ts'
import { find, readRows } from '../support/html.ts'

const linuxFirefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const iphoneSafari =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1'

const hour = 3_600_000

let dashboard: DashboardService
let clock: ReturnType<typeof stopClock>

beforeAll(async () => {
  clock = stopClock({ daysAgo: 14 })
  dashboard = await startDashboardService()
})

afterAll(async () => {
  await dashboard.stop()
  clock.restore()
})

async function submitSignIn(visitor: Visitor, { email, password }: Pick<SignedInUser, 'email' | 'password'>) {
  const response = await visitor.post('/sign-in', { email, password })
  expect(response.status).toBe(303)
  return response
}

async function isSignedIn(visitor: Visitor): Promise<boolean> {
  const { status, headers } = await visitor.get('/profile')
  if (status !== 200) expect([status, headers.location]).toEqual([303, '/sign-in?next=%2Fprofile'])
  return status === 200
}

/** Creates another browser with the same cookies. */
function copyBrowser(visitor: Visitor): Visitor {
  const copy = new Visitor(dashboard.url)
  for (const [name, value] of visitor.cookies) copy.cookies.set(name, value)
  return copy
}

const cookieAttributes = (cookie = '') =>
  cookie
    .split('; ')
    .slice(1)
    .map((attribute) => attribute.replace(/=.*GMT$/, ''))
    .sort()

describe('the session cookie', () => {
  test('is HttpOnly, SameSite and bound to the host, and set only at sign-in', async () => {
    const ada = await signIn(dashboard)
    const visitor = new Visitor(dashboard.url)
    for (const path of ['/sign-in', '/', '/nothing', '/links/none'])
      expect(setCookieHeaders(await visitor.get(path))).toEqual([])
    expect(setCookieHeaders(await visitor.post('/sign-in', { email: ada.email, password: 'wrong' }))).toEqual([])
    const [cookie, ...others] = setCookieHeaders(await submitSignIn(visitor, ada))
    expect(others).toEqual([])
    expect(cookie).toMatch(/^execution-service-\d+=/)
    expect(cookieAttributes(cookie)).toEqual(['Expires', 'HttpOnly', 'Path=/', 'SameSite=Lax'])
    const expires = Date.parse(cookie?.match(/Expires=([^;]+)/)?.[1] ?? '')
    expect(Math.abs(expires - Date.now() - 7 * 24 * 3_600_000)).toBeLessThan(60_000)
    expect(setCookieHeaders(await visitor.get('/profile'))).toEqual([])
  })

  test('is secure behind an https address, whatever the proxy says', async () => {
    const secure = await startDashboardService({ DASHBOARD_URL: 'https://runs.example.com/', PROXY_HOPS: '1' })
    onTestFinished(secure.stop)
    expect(secure.welcomeUrl).toMatch(/^https:\/\/runs\.example\.com\/links\//)
    const headers = { Origin: 'https://runs.example.com' }
    const ada = await signIn({ ...secure, dashboardUrl: secure.url })
    const visitor = new Visitor(secure.url, { 'X-Forwarded-Proto': 'http' })
    const form = { email: ada.email, password: ada.password }
    const [cookie] = setCookieHeaders(await visitor.post('/sign-in', form, headers))
    expect(cookie).toMatch(/^__Host-session=/)
    expect(cookieAttributes(cookie)).toEqual(['Expires', 'HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure'])
    const page = await visitor.get('/profile')
    expect([page.status, page.headers['strict-transport-security']]).toEqual([
      200,
      expect.stringMatching(/^max-age=\d{8}$/),
    ])
    const alone = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const post = (headers: Record<string, string>) =>
      visitor.send('POST', '/profile', { headers: { ...alone, ...headers }, body: 'name=' })
    for (const origin of [
      secure.url,
      'http://runs.example.com',
      'https://runs.example.com:8443',
      'https://example.com',
      'null',
    ]) {
      expect([origin, (await post({ Origin: origin })).status]).toEqual([origin, 403])
    }
    expect((await post(headers)).status).toBe(400)
    expect((await post({})).status).toBe(403)
  })
})

describe('a session', () => {
  test('is new at each sign-in, which defeats session fixation', async () => {
    const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
    const victim = copyBrowser(eve.visitor)
    await submitSignIn(victim, ada)
    expect([...victim.cookies.values()]).not.toEqual([...eve.visitor.cookies.values()])
    expect((await victim.get('/profile')).text).toContain(ada.email)
    expect(await isSignedIn(eve.visitor)).toBe(false)
    const [name = ''] = victim.cookies.keys()
    for (const planted of ['planted', 's%3Aplanted.signature', 's%3A.', 'j%3A%7B%7D', '%ff', '__proto__']) {
      const visitor = new Visitor(dashboard.url)
      visitor.cookies.set(name, planted)
      expect(await isSignedIn(visitor)).toBe(false)
      await submitSignIn(visitor, ada)
      expect(visitor.cookies.get(name)).not.toBe(planted)
      expect(await isSignedIn(visitor)).toBe(true)
    }
  })

  test('is not opened by a forged signature', async () => {
    const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
    const [[name = '', value = ''] = []] = ada.visitor.cookies
    const stolen = [value.replace(/\..*$/, ''), value.slice(0, -1), value.replace(/^s%3A/, ''), value.toLowerCase()]
    const mixed = `${value.split('.')[0]}.${[...eve.visitor.cookies.values()][0]?.split('.')[1]}`
    for (const forged of [...stolen, mixed]) {
      const visitor = new Visitor(dashboard.url)
      visitor.cookies.set(name, forged)
      expect(await isSignedIn(visitor)).toBe(false)
    }
    expect(await isSignedIn(copyBrowser(ada.visitor))).toBe(true)
  })

  test('ends on the server at sign-out, and other sessions continue', async () => {
    const ada = await signIn(dashboard)
    const otherBrowser = new Visitor(dashboard.url)
    await submitSignIn(otherBrowser, ada)
    const stolen = copyBrowser(ada.visitor)
    expect(await isSignedIn(stolen)).toBe(true)
    const out = await ada.visitor.post('/sign-out')
    expect([out.status, out.headers.location]).toEqual([303, '/sign-in?done=signedOut'])
    expect(out.headers['clear-site-data']).not.toContain('cookies')
    expect((await ada.visitor.get('/sign-in?done=signedOut')).text).toContain('You are signed out.')
    expect(await isSignedIn(stolen)).toBe(false)
    expect(await isSignedIn(ada.visitor)).toBe(false)
    expect(await isSignedIn(otherBrowser)).toBe(true)
    expect((await ada.visitor.post('/sign-out')).status).toBe(303)
  })

  test('that has ended is not restored by a concurrent request', async () => {
    for (let round = 0; round < 5; round += 1) {
      const ada = await signIn(dashboard)
      const change = { currentPassword: ada.password, password: 'another engine' }
      const [old, other] = [copyBrowser(ada.visitor), copyBrowser(ada.visitor)]
      await Promise.all([ada.visitor.post('/profile/password', change), other.post('/sign-out')])
      expect(await isSignedIn(old)).toBe(false)
    }
  })

  test('that ends after it was read does not authenticate its request in the next epoch', async () => {
    const ada = await signIn(dashboard)
    const { users, environments, sessions } = dashboard.domain
    const [stored] = await sessions.list(ada.id)
    const request = { session: { stored }, params: {}, originalUrl: '/' } as unknown as Request
    const deps = { users, environments } as Dependencies
    expect(await authenticate(deps, request)).toMatchObject({ user: { id: ada.id } })
    const change = { currentPassword: ada.password, password: 'another engine' }
    expect((await ada.visitor.post('/profile/password', change)).status).toBe(303)
    expect(await authenticate(deps, request)).toBeUndefined()
  })

  test('ends when another session changes the password', async () => {
    const ada = await signIn(dashboard)
    const otherBrowser = new Visitor(dashboard.url)
    await submitSignIn(otherBrowser, ada)
    const change = { currentPassword: ada.password, password: 'another engine' }
    expect((await otherBrowser.post('/profile/password', change)).headers.location).toBe('/profile?done=password')
    expect(await isSignedIn(otherBrowser)).toBe(true)
    expect(await isSignedIn(ada.visitor)).toBe(false)
    expect((await ada.visitor.post('/sign-in', { email: ada.email, password: ada.password })).status).toBe(401)
  })

  test('is shared by all processes, and ends in all of them', async () => {
    const ada = await signIn(dashboard)
    const other = await startDashboardService(dashboard.settings)
    onTestFinished(other.stop)
    const there = new Visitor(other.url)
    for (const [name, value] of ada.visitor.cookies) there.cookies.set(name, value)
    expect((await there.get('/profile')).status).toBe(200)
    await there.post('/sign-out')
    expect(await isSignedIn(ada.visitor)).toBe(false)
  })

  test('expires after one week, even when used', async () => {
    const ada = await signIn(dashboard)
    const { store } = dashboard.domain
    const sessions = await store.read.query.selectFrom('sessions').selectAll().where('user_id', '=', ada.id).execute()
    const lifetime = (sessions[0]?.expires_at ?? 0) - Date.now()
    expect(lifetime).toBe(7 * 24 * hour)
    for (let use = 0; use < 7; use += 1) {
      clock.advance(23 * hour)
      expect(await isSignedIn(ada.visitor)).toBe(true)
    }
    clock.advance(7 * hour)
    expect(await isSignedIn(ada.visitor)).toBe(false)
  })

  test('is listed with browser and address, and the user can end each one or all', async () => {
    const ada = await signIn(dashboard, { headers: { 'User-Agent': linuxFirefox } })
    const eve = await signIn(dashboard)
    const phone = new Visitor(dashboard.url, { 'User-Agent': iphoneSafari })
    const tool = new Visitor(dashboard.url, { 'User-Agent': 'curl/8.5 <b>' })
    for (const visitor of [phone, tool]) await submitSignIn(visitor, ada)
    const page = await ada.visitor.get('/profile')
    expect(readRows(page)).toEqual([
      expect.stringMatching(/^curl 127\.0\.0\.1 .* End$/),
      expect.stringMatching(/^Safari on iOS 127\.0\.0\.1 .* End$/),
      expect.stringMatching(/^Firefox on Linux 127\.0\.0\.1 .* This session End$/),
    ])
    const buttons = find(page).getAllByRole<HTMLButtonElement>('button', { name: /^End / })
    const [, phonePath = '', ownPath = ''] = buttons.map((button) => button.form?.getAttribute('action') ?? '')
    expect((await eve.visitor.post(phonePath)).status).toBe(404)
    expect((await ada.visitor.post(phonePath)).headers.location).toBe('/profile?done=ended')
    expect([await isSignedIn(phone), await isSignedIn(tool)]).toEqual([false, true])
    expect((await ada.visitor.post(ownPath)).headers.location).toBe('/sign-in?done=signedOut')
    expect(await isSignedIn(ada.visitor)).toBe(false)
    await submitSignIn(ada.visitor, ada)
    const out = await tool.post('/profile/sign-out-everywhere')
    expect(out.headers.location).toBe('/sign-in?done=signedOutEverywhere')
    expect([await isSignedIn(tool), await isSignedIn(ada.visitor), await isSignedIn(eve.visitor)]).toEqual([
      false,
      false,
      true,
    ])
  })

  test('ends when the user was idle, which the requests of open pages do not change', async () => {
    const ada = await signIn(dashboard)
    const { sessions } = dashboard.domain
    const idleHours = async () => (Date.now() - ((await sessions.list(ada.id))[0]?.lastUsedAt ?? 0)) / hour
    clock.advance(16 * hour)
    expect((await ada.visitor.get('/', { 'X-Background': '1' })).status).toBe(200)
    expect((await ada.visitor.send('HEAD', '/runs/changes', { headers: { Accept: 'text/event-stream' } })).status).toBe(
      200,
    )
    expect(await idleHours()).toBe(16)
    expect(await isSignedIn(ada.visitor)).toBe(true)
    expect(await idleHours()).toBe(0)
    clock.advance(24 * hour)
    expect(await isSignedIn(ada.visitor)).toBe(false)
  })

  test('of a removed user redirects to the sign-in page without a loop', async () => {
    const owner = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: owner.accountId, role: 'developer' })
    const { store } = dashboard.domain
    // As if the user were removed between checking the password and saving the session.
    await store.write(({ query }) =>
      query.updateTable('users').set({ removed_at: 1 }).where('id', '=', bo.id).execute(),
    )
    expect((await bo.visitor.get('/')).headers.location).toBe('/sign-in')
    expect((await bo.visitor.get('/sign-in')).status).toBe(200)
  })
})

test('signing out everywhere ends sign-in links, and API keys if the user asks for it', async () => {
  const { domain } = dashboard
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  const tokenOf = async (user: SignedInUser) => {
    const found = await domain.users.get(user.id)
    if (!found) throw new Error('The user exists.')
    return domain.links.createSignInLink(found, operator)
  }
  const keyOf = async ({ accountId, id: userId }: SignedInUser) =>
    (await domain.apiKeys.create({ accountId, userId, name: 'mine', scopes: null, expiresAt: null }, operator)).value
  const works = async (value: string) =>
    (await fetch(`${dashboard.executionUrl}/v1/execution/runs`, { headers: { Authorization: `Bearer ${value}` } })).ok
  const [link, foreignLink, key, foreignKey] = [
    await tokenOf(ada),
    await tokenOf(bo),
    await keyOf(ada),
    await keyOf(bo),
  ]
  const path = '/profile/sign-out-everywhere'
  expect((await ada.visitor.post(path)).headers.location).toBe('/sign-in?done=signedOutEverywhere')
  const statusOf = async (token: string) => (await new Visitor(dashboard.url).get(`/links/${token}`)).status
  expect([await statusOf(link), await statusOf(foreignLink)]).toEqual([410, 200])
  expect([await works(key), await works(foreignKey)]).toEqual([true, true])
  await ada.visitor.post('/sign-in', { email: ada.email, password: ada.password })
  await ada.visitor.post(path, { apiKeys: 'on' })
  expect([await works(key), await works(foreignKey)]).toEqual([false, true])
  const deleted = await domain.auditLog.list(ada.accountId, { action: 'apiKey.deleted', limit: 5 })
  expect(deleted.map(({ subject, by }) => [subject?.name, by.id])).toEqual([['mine', ada.id]])
})
