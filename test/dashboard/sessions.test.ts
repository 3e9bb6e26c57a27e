/** Sessions: a cookie that scripts and other sites do not get, worth nothing before signing in and after it has ended. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type DashboardService,
  type SignedInUser,
  setCookieHeaders,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'

let served: DashboardService

beforeAll(async () => {
  served = await startDashboardService()
})

afterAll(() => served.stop())

async function enter(visitor: Visitor, { email, password }: Pick<SignedInUser, 'email' | 'password'>) {
  const answer = await visitor.post('/sign-in', { email, password })
  expect(answer.status).toBe(303)
  return answer
}

/** Whether whoever has the cookies is signed in. */
async function isSignedIn(visitor: Visitor): Promise<boolean> {
  const { status, headers } = await visitor.get('/profile')
  if (status !== 200) expect([status, headers.location]).toEqual([303, '/sign-in?next=%2Fprofile'])
  return status === 200
}

/** Another browser with the same cookies. */
function copyOf(visitor: Visitor): Visitor {
  const copy = new Visitor(served.url)
  for (const [name, value] of visitor.cookies) copy.cookies.set(name, value)
  return copy
}

const attributesOf = (cookie = '') =>
  cookie
    .split('; ')
    .slice(1)
    .map((attribute) => attribute.replace(/=.*GMT$/, ''))
    .sort()

describe('the cookie', () => {
  test('is for this host and for HTTP alone, and comes with signing in, not before', async () => {
    const ada = await signIn(served)
    const visitor = new Visitor(served.url)
    for (const path of ['/sign-in', '/', '/nothing', '/links/none'])
      expect(setCookieHeaders(await visitor.get(path))).toEqual([])
    expect(setCookieHeaders(await visitor.post('/sign-in', { email: ada.email, password: 'wrong' }))).toEqual([])
    const [cookie, ...others] = setCookieHeaders(await enter(visitor, ada))
    expect(others).toEqual([])
    expect(cookie).toMatch(/^execution-service-\d+=/)
    expect(attributesOf(cookie)).toEqual(['Expires', 'HttpOnly', 'Path=/', 'SameSite=Lax'])
    const expires = Date.parse(cookie?.match(/Expires=([^;]+)/)?.[1] ?? '')
    expect(Math.abs(expires - Date.now() - 7 * 24 * 3_600_000)).toBeLessThan(60_000)
    expect(setCookieHeaders(await visitor.get('/profile'))).toEqual([])
  })

  test('is bound to its host and to https where readers come by that, whatever the proxy says', async () => {
    const secure = await startDashboardService({ DASHBOARD_URL: 'https://runs.example.com/', PROXY_HOPS: '1' })
    onTestFinished(secure.stop)
    expect(secure.welcomeUrl).toMatch(/^https:\/\/runs\.example\.com\/links\//)
    const own = { Origin: 'https://runs.example.com' }
    const ada = await signIn({ ...secure, dashboardUrl: secure.url })
    const visitor = new Visitor(secure.url, { 'X-Forwarded-Proto': 'http' })
    const form = { email: ada.email, password: ada.password }
    const [cookie] = setCookieHeaders(await visitor.post('/sign-in', form, own))
    expect(cookie).toMatch(/^__Host-session=/)
    expect(attributesOf(cookie)).toEqual(['Expires', 'HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure'])
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
    expect((await post(own)).status).toBe(400)
    expect((await post({})).status).toBe(403)
  })
})

describe('a session', () => {
  test('is a new one at each sign-in, so that one which was planted is worth nothing', async () => {
    const [ada, eve] = [await signIn(served), await signIn(served)]
    const victim = copyOf(eve.visitor)
    await enter(victim, ada)
    expect([...victim.cookies.values()]).not.toEqual([...eve.visitor.cookies.values()])
    expect((await victim.get('/profile')).text).toContain(ada.email)
    expect(await isSignedIn(eve.visitor)).toBe(false)
    const [name = ''] = victim.cookies.keys()
    for (const planted of ['planted', 's%3Aplanted.signature', 's%3A.', 'j%3A%7B%7D', '%ff', '__proto__']) {
      const visitor = new Visitor(served.url)
      visitor.cookies.set(name, planted)
      expect(await isSignedIn(visitor)).toBe(false)
      await enter(visitor, ada)
      expect(visitor.cookies.get(name)).not.toBe(planted)
      expect(await isSignedIn(visitor)).toBe(true)
    }
  })

  test('is not that of a cookie whose signature is another one’s', async () => {
    const [ada, eve] = [await signIn(served), await signIn(served)]
    const [[name = '', value = ''] = []] = ada.visitor.cookies
    const stolen = [value.replace(/\..*$/, ''), value.slice(0, -1), value.replace(/^s%3A/, ''), value.toLowerCase()]
    const mixed = `${value.split('.')[0]}.${[...eve.visitor.cookies.values()][0]?.split('.')[1]}`
    for (const forged of [...stolen, mixed]) {
      const visitor = new Visitor(served.url)
      visitor.cookies.set(name, forged)
      expect(await isSignedIn(visitor)).toBe(false)
    }
    expect(await isSignedIn(copyOf(ada.visitor))).toBe(true)
  })

  test('ends on the server when its user signs out, and no other does', async () => {
    const ada = await signIn(served)
    const elsewhere = new Visitor(served.url)
    await enter(elsewhere, ada)
    const stolen = copyOf(ada.visitor)
    expect(await isSignedIn(stolen)).toBe(true)
    const out = await ada.visitor.post('/sign-out')
    expect([out.status, out.headers.location]).toEqual([303, '/sign-in?done=signedOut'])
    expect(out.headers['clear-site-data']).not.toContain('cookies')
    expect((await ada.visitor.get('/sign-in?done=signedOut')).text).toContain('You are signed out.')
    expect(await isSignedIn(stolen)).toBe(false)
    expect(await isSignedIn(ada.visitor)).toBe(false)
    expect(await isSignedIn(elsewhere)).toBe(true)
    expect((await ada.visitor.post('/sign-out')).status).toBe(303)
  })

  test('that has ended is not begun again by a request that was under way', async () => {
    for (let round = 0; round < 5; round += 1) {
      const ada = await signIn(served)
      const change = { currentPassword: ada.password, password: 'another engine' }
      const [old, other] = [copyOf(ada.visitor), copyOf(ada.visitor)]
      await Promise.all([ada.visitor.post('/profile/password', change), other.post('/sign-out')])
      expect(await isSignedIn(old)).toBe(false)
    }
  })

  test('ends when its user changes the password elsewhere, and the one that did so goes on', async () => {
    const ada = await signIn(served)
    const elsewhere = new Visitor(served.url)
    await enter(elsewhere, ada)
    const change = { currentPassword: ada.password, password: 'another engine' }
    expect((await elsewhere.post('/profile/password', change)).headers.location).toBe('/profile?done=password')
    expect(await isSignedIn(elsewhere)).toBe(true)
    expect(await isSignedIn(ada.visitor)).toBe(false)
    expect((await ada.visitor.post('/sign-in', { email: ada.email, password: ada.password })).status).toBe(401)
  })

  test('is of one process as of another on the same store, and ends in both', async () => {
    const ada = await signIn(served)
    const other = await startDashboardService(served.settings)
    onTestFinished(other.stop)
    const there = new Visitor(other.url)
    for (const [name, value] of ada.visitor.cookies) there.cookies.set(name, value)
    expect((await there.get('/profile')).status).toBe(200)
    await there.post('/sign-out')
    expect(await isSignedIn(ada.visitor)).toBe(false)
  })

  test('ends after a week, however much it is used', async () => {
    const ada = await signIn(served)
    const { store } = served.domain
    const sessions = await store.read.query.selectFrom('sessions').selectAll().where('user_id', '=', ada.id).execute()
    const left = (sessions[0]?.expires_at ?? 0) - Date.now()
    expect(Math.abs(left - 7 * 24 * 3_600_000)).toBeLessThan(60_000)
    await ada.visitor.get('/profile')
    const used = await store.read.query.selectFrom('sessions').selectAll().where('user_id', '=', ada.id).execute()
    expect(used).toEqual(sessions)
    await store.write(({ query }) =>
      query.updateTable('sessions').set({ expires_at: Date.now() }).where('user_id', '=', ada.id).execute(),
    )
    expect(await isSignedIn(ada.visitor)).toBe(false)
  })

  test('that is left to a removed user leads to the sign-in page and not round and round', async () => {
    const owner = await signIn(served)
    const bo = await signIn(served, { accountId: owner.accountId, role: 'member' })
    const { store } = served.domain
    // As when the user is removed between the look at the password and the writing of the session.
    await store.write(({ query }) =>
      query.updateTable('users').set({ removed_at: 1 }).where('id', '=', bo.id).execute(),
    )
    expect((await bo.visitor.get('/')).headers.location).toBe('/sign-in')
    expect((await bo.visitor.get('/sign-in')).status).toBe(200)
  })
})
