/** Signing in: uniform errors, attempt limits and safe redirects. */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type DashboardService,
  type SignedInUser,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'
import { inputValue, pageText } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService({ PROXY_HOPS: '1' })
})

afterAll(() => dashboard.stop())

/** Creates a browser with a random address. */
function newBrowser(): Visitor {
  const part = () => randomInt(1, 255)
  return new Visitor(dashboard.url, { 'X-Forwarded-For': `10.${part()}.${part()}.${part()}` })
}

function submitSignIn(visitor: Visitor, { email, password }: Pick<SignedInUser, 'email' | 'password'>, more = {}) {
  return visitor.post('/sign-in', { email, password, ...more })
}

test('signing in returns to the requested page, or to the overview', async () => {
  const ada = await signIn(dashboard)
  const visitor = newBrowser()
  const redirect = await visitor.get('/api-keys?done=deleted')
  expect([redirect.status, redirect.headers.location]).toEqual([303, '/sign-in?next=%2Fapi-keys%3Fdone%3Ddeleted'])
  const form = await visitor.get(redirect.headers.location as string)
  const next = inputValue(form, 'next') ?? ''
  expect(next).toBe('/api-keys?done=deleted')
  const signedIn = await submitSignIn(visitor, { ...ada, email: ` ${ada.email.toUpperCase()} ` }, { next })
  expect([signedIn.status, signedIn.headers.location]).toEqual([303, '/api-keys?done=deleted'])
  expect((await visitor.get('/')).status).toBe(200)
  expect((await visitor.get('/sign-in')).headers.location).toBe('/')
  expect((await submitSignIn(newBrowser(), ada)).headers.location).toBe('/')
})

test('a wrong password and an unknown email address get the same response', async () => {
  const ada = await signIn(dashboard)
  const responseFor = async (email: string) => {
    const response = await submitSignIn(newBrowser(), { email, password: 'not the password' })
    const {
      'x-request-id': _,
      date: __,
      'ratelimit-policy': ___,
      'content-length': ____,
      ...headers
    } = response.headers
    return { status: response.status, headers, text: response.text.replaceAll(email, 'EMAIL') }
  }
  const invalid = await responseFor(ada.email)
  expect(invalid.status).toBe(401)
  expect(invalid.headers['set-cookie']).toBeUndefined()
  expect(pageText(invalid)).toContain('Incorrect email or password.')
  expect(await responseFor(`${crypto.randomUUID()}@example.com`)).toEqual(invalid)
})

test('the form keeps the email address, but not the password', async () => {
  const refused = await submitSignIn(
    newBrowser(),
    { email: '"><script>', password: 'canary-password' },
    { next: '/runs' },
  )
  expect(inputValue(refused, 'email')).toBe('"><script>')
  expect(inputValue(refused, 'next')).toBe('/runs')
  expect(refused.text).not.toContain('<script>')
  expect(refused.text).not.toContain('canary-password')
})

describe('the next parameter', () => {
  const localPaths: [string, string][] = [
    ['/runs', '/runs'],
    ['/runs?status=failed&x=%2F%2Fy', '/runs?status=failed&x=%2F%2Fy'],
    ['/runs?x=//evil.example', '/runs?x=//evil.example'],
    ['/settings/../profile', '/profile'],
    ['/ä b', '/%C3%A4%20b'],
  ]
  const foreignUrls = [
    'https://evil.example/',
    'https:evil.example',
    'HTTPS:/\\evil.example',
    'javascript:alert(1)',
    'data:text/html,x',
    'evil.example',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '\t//evil.example',
    '/.//evil.example',
    '/.\\\\evil.example',
    '/runs/..//evil.example',
    '/%2e//evil.example',
    '/%2E%2E//evil.example',
    '//dashboard.invalid//evil.example',
    '//dashboard.invalid/.//evil.example',
    '//user@evil.example',
    '//evil.example%2f@dashboard.invalid/',
    '//[::1',
    '/sign-in',
    '/sign-in?next=/runs',
    '',
    '\u0001//evil.example',
  ]

  test.for(localPaths)('%j redirects to %j', async ([next, goal], { expect }) => {
    const { visitor } = await signIn(dashboard)
    expect((await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`)).headers.location).toBe(goal)
  })

  test('never redirects to another site', async () => {
    const ada = await signIn(dashboard)
    for (const next of foreignUrls) {
      const formPage = await ada.visitor.get(`/sign-in?next=${encodeURIComponent(next)}`)
      expect([next, formPage.headers.location]).toEqual([next, '/'])
      const signedIn = await submitSignIn(newBrowser(), ada, { next })
      expect([next, signedIn.headers.location]).toEqual([next, '/'])
    }
  })

  test('never redirects to another site when repeated or partly encoded', async () => {
    const { visitor } = await signIn(dashboard)
    for (const query of [
      'next=/&next=//evil.example',
      'next=%2F%2Fevil.example',
      'next=%5C%5Cevil',
      'next=%ff//e',
      'next',
    ]) {
      const { location = '' } = (await visitor.get(`/sign-in?${query}`)).headers
      expect(new URL(String(location), 'http://own.example').host).toBe('own.example')
    }
  })
})

describe('failed attempts', () => {
  const invalid = 'not the password'

  test('are limited to five per user and address', async () => {
    const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
    const visitor = newBrowser()
    for (let tries = 0; tries < 5; tries += 1)
      expect((await submitSignIn(visitor, { ...ada, password: invalid })).status).toBe(401)
    for (const email of [ada.email, ` ${ada.email.toUpperCase()}`]) {
      const refused = await submitSignIn(visitor, { ...ada, email })
      expect(refused.status).toBe(429)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(900)
      expect(pageText(refused)).toContain('Too many attempts. Try again in 15 minutes.')
      expect(inputValue(refused, 'email')).toBe(email.trim())
      expect(refused.headers['set-cookie']).toBeUndefined()
    }
    expect((await submitSignIn(visitor, bo)).status).toBe(303)
    expect((await submitSignIn(newBrowser(), ada)).status).toBe(303)
    expect((await ada.visitor.get('/')).status).toBe(200)
  })

  test('do not include successful ones', async () => {
    const ada = await signIn(dashboard)
    const visitor = newBrowser()
    for (let times = 0; times < 7; times += 1) expect((await submitSignIn(visitor, ada)).status).toBe(303)
    for (let tries = 0; tries < 4; tries += 1)
      expect((await submitSignIn(visitor, { ...ada, password: invalid })).status).toBe(401)
    expect((await submitSignIn(visitor, ada)).status).toBe(303)
  })

  test('are limited to thirty per address', async () => {
    const ada = await signIn(dashboard)
    const visitor = newBrowser()
    const guess = (index: number) => submitSignIn(visitor, { email: `${index}-${ada.email}`, password: invalid })
    for (let tries = 0; tries < 30; tries += 1) expect((await guess(tries)).status).toBe(401)
    expect((await guess(30)).status).toBe(429)
    expect((await submitSignIn(visitor, ada)).status).toBe(429)
    expect((await submitSignIn(newBrowser(), ada)).status).toBe(303)
  })

  test('that the limit of a user refuses do not count for their address', async () => {
    const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
    const visitor = newBrowser()
    const guess = () => submitSignIn(visitor, { ...ada, password: invalid })
    for (let tries = 0; tries < 5; tries += 1) expect((await guess()).status).toBe(401)
    for (let tries = 0; tries < 40; tries += 1) expect((await guess()).status).toBe(429)
    expect((await submitSignIn(visitor, { ...bo, password: invalid })).status).toBe(401)
    expect((await submitSignIn(visitor, bo)).status).toBe(303)
  })

  test('are logged with the address, and audited where they concern a user', async () => {
    const ada = await signIn(dashboard)
    const visitor = new Visitor(dashboard.url, { 'X-Forwarded-For': '10.9.9.9' })
    const before = dashboard.log.length
    await submitSignIn(visitor, { email: `none-${ada.email}`, password: invalid })
    for (let tries = 0; tries < 7; tries += 1) await submitSignIn(visitor, { ...ada, password: invalid })
    await ada.visitor.post('/profile/password', { currentPassword: invalid, password: 'another engine' })
    await visitor.post('/links/none')
    const lines = dashboard.log.slice(before).filter(({ level }) => level === 40)
    expect(lines.map(({ msg, address, count }) => [msg, address, count])).toEqual([
      ['sign-in refused', '10.9.9.9', 1],
      ['sign-in rate limited', '10.9.9.9', 1],
      ['current password refused', '127.0.0.1', 1],
      ['sign-in link refused', '10.9.9.9', 1],
    ])
    expect(JSON.stringify(lines)).not.toContain(ada.email)
    const listRefusals = async () => {
      const entries = await dashboard.domain.auditLog.list(ada.accountId, { limit: 20 })
      return entries.filter(({ by }) => by.kind === 'caller').reverse()
    }
    await expect.poll(async () => (await listRefusals()).length).toBe(3)
    const subject = { id: ada.id, name: ada.name }
    expect(await listRefusals()).toMatchObject([
      { action: 'user.signInRefused', by: { name: '10.9.9.9' }, subject },
      { action: 'user.rateLimited', by: { name: '10.9.9.9' }, subject },
      { action: 'user.passwordRefused', by: { name: '127.0.0.1' }, subject },
    ])
    const page = await ada.visitor.get('/settings/audit-log')
    expect(pageText(page)).toContain('10.9.9.9 failed to sign in as Ada')
  })

  test('are limited to fifty per user', async () => {
    const ada = await signIn(dashboard)
    const guess = () => submitSignIn(newBrowser(), { ...ada, password: invalid })
    for (let tries = 0; tries < 50; tries += 10) {
      const responses = await Promise.all(Array.from({ length: 10 }, guess))
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]))
    }
    expect((await guess()).status).toBe(429)
  })

  test('are counted across all processes', async () => {
    const other = await startDashboardService({ DATA_DIR: dashboard.dataDirectory, PROXY_HOPS: '1' })
    try {
      const ada = await signIn(dashboard)
      const from = { 'X-Forwarded-For': '10.0.0.0' }
      const visitors = [new Visitor(dashboard.url, from), new Visitor(other.url, from)] as const
      const statuses: number[] = []
      for (let tries = 0; tries < 6; tries += 1) {
        statuses.push((await submitSignIn(visitors[tries % 2 ? 1 : 0], { ...ada, password: invalid })).status)
      }
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    } finally {
      await other.stop()
    }
  })

  test('are counted under pseudonyms', async () => {
    const email = `${crypto.randomUUID()}@example.com`
    expect((await submitSignIn(newBrowser(), { email, password: invalid })).status).toBe(401)
    const database = new DatabaseSync(join(dashboard.dataDirectory, 'counters.db'), { readOnly: true })
    const kept = JSON.stringify(database.prepare('SELECT * FROM counters').all())
    database.close()
    expect(kept).toContain('attempts-user:')
    expect(kept).not.toContain(email)
  })

  test('cannot be hidden by forged forwarding headers', async () => {
    const direct = await startDashboardService()
    try {
      const ada = await signIn(direct)
      const statuses: number[] = []
      for (let tries = 0; tries < 6; tries += 1) {
        const visitor = new Visitor(direct.url, {
          'X-Forwarded-For': `10.0.0.${tries}`,
          Forwarded: `for=10.0.0.${tries}`,
        })
        statuses.push((await submitSignIn(visitor, { ...ada, password: invalid })).status)
      }
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    } finally {
      await direct.stop()
    }
  })
})
