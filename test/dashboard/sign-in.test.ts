/** Signing in: nobody tells users from strangers, nobody tries many passwords, and nobody is led to another site. */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type DashboardService,
  inputValue,
  pageText,
  type SignedInUser,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'

let served: DashboardService

beforeAll(async () => {
  served = await startDashboardService({ PROXY_HOPS: '1' })
})

afterAll(() => served.stop())

/** Somebody at an address that nobody else has. */
function stranger(): Visitor {
  const part = () => randomInt(1, 255)
  return new Visitor(served.url, { 'X-Forwarded-For': `10.${part()}.${part()}.${part()}` })
}

function enter(visitor: Visitor, { email, password }: Pick<SignedInUser, 'email' | 'password'>, more = {}) {
  return visitor.post('/sign-in', { email, password, ...more })
}

test('leads to the overview, and to the sign-in page whoever has not done so', async () => {
  const ada = await signIn(served)
  const visitor = stranger()
  const asked = await visitor.get('/api-keys?done=deleted')
  expect([asked.status, asked.headers.location]).toEqual([303, '/sign-in?next=%2Fapi-keys%3Fdone%3Ddeleted'])
  const form = await visitor.get(asked.headers.location as string)
  const next = inputValue(form, 'next') ?? ''
  expect(next).toBe('/api-keys?done=deleted')
  const entered = await enter(visitor, { ...ada, email: ` ${ada.email.toUpperCase()} ` }, { next })
  expect([entered.status, entered.headers.location]).toEqual([303, '/api-keys?done=deleted'])
  expect((await visitor.get('/')).status).toBe(200)
  expect((await visitor.get('/sign-in')).headers.location).toBe('/')
  expect((await enter(stranger(), ada)).headers.location).toBe('/')
})

test('answers a wrong password as it answers an e-mail address that nobody has', async () => {
  const ada = await signIn(served)
  const answerOf = async (email: string) => {
    const answer = await enter(stranger(), { email, password: 'not the password' })
    const { 'x-request-id': _, date: __, 'ratelimit-policy': ___, 'content-length': ____, ...headers } = answer.headers
    return { status: answer.status, headers, text: answer.text.replaceAll(email, 'EMAIL') }
  }
  const wrong = await answerOf(ada.email)
  expect(wrong.status).toBe(401)
  expect(wrong.headers['set-cookie']).toBeUndefined()
  expect(pageText(wrong)).toContain('Incorrect email or password.')
  expect(await answerOf(`${crypto.randomUUID()}@example.com`)).toEqual(wrong)
})

test('keeps the e-mail address in the form, and never the password', async () => {
  const refused = await enter(stranger(), { email: '"><script>', password: 'canary-password' }, { next: '/runs' })
  expect(inputValue(refused, 'email')).toBe('"><script>')
  expect(inputValue(refused, 'next')).toBe('/runs')
  expect(refused.text).not.toContain('<script>')
  expect(refused.text).not.toContain('canary-password')
})

describe('to another place than the overview', () => {
  const own: [string, string][] = [
    ['/runs', '/runs'],
    ['/runs?status=failed&x=%2F%2Fy', '/runs?status=failed&x=%2F%2Fy'],
    ['/runs?x=//evil.example', '/runs?x=//evil.example'],
    ['/settings/../profile', '/profile'],
    ['/ä b', '/%C3%A4%20b'],
  ]
  const foreign = [
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

  test.for(own)('leads %j to %j', async ([next, goal], { expect }) => {
    const { visitor } = await signIn(served)
    expect((await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`)).headers.location).toBe(goal)
  })

  test('leads to no other site, whatever was asked for', async () => {
    const ada = await signIn(served)
    for (const next of foreign) {
      const shown = await ada.visitor.get(`/sign-in?next=${encodeURIComponent(next)}`)
      expect([next, shown.headers.location]).toEqual([next, '/'])
      const entered = await enter(stranger(), ada, { next })
      expect([next, entered.headers.location]).toEqual([next, '/'])
    }
  })

  test('leads to no other site by what was asked for twice or half encoded', async () => {
    const { visitor } = await signIn(served)
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

describe('with a wrong password', () => {
  const wrong = 'not the password'

  test('is refused after five times for that user from that address, with the right one too, and for no other', async () => {
    const [ada, bo] = [await signIn(served), await signIn(served)]
    const visitor = stranger()
    for (let tries = 0; tries < 5; tries += 1)
      expect((await enter(visitor, { ...ada, password: wrong })).status).toBe(401)
    for (const email of [ada.email, ` ${ada.email.toUpperCase()}`]) {
      const refused = await enter(visitor, { ...ada, email })
      expect(refused.status).toBe(429)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(900)
      expect(pageText(refused)).toContain('Too many attempts. Try again in 15 minutes.')
      expect(inputValue(refused, 'email')).toBe(email)
      expect(refused.headers['set-cookie']).toBeUndefined()
    }
    expect((await enter(visitor, bo)).status).toBe(303)
    expect((await enter(stranger(), ada)).status).toBe(303)
    expect((await ada.visitor.get('/')).status).toBe(200)
  })

  test('counts no attempt that succeeds', async () => {
    const ada = await signIn(served)
    const visitor = stranger()
    for (let times = 0; times < 7; times += 1) expect((await enter(visitor, ada)).status).toBe(303)
    for (let tries = 0; tries < 4; tries += 1)
      expect((await enter(visitor, { ...ada, password: wrong })).status).toBe(401)
    expect((await enter(visitor, ada)).status).toBe(303)
  })

  test('is refused after thirty times from one address, whoever it is for', async () => {
    const ada = await signIn(served)
    const visitor = stranger()
    const guess = (index: number) => enter(visitor, { email: `${index}-${ada.email}`, password: wrong })
    for (let tries = 0; tries < 30; tries += 1) expect((await guess(tries)).status).toBe(401)
    expect((await guess(30)).status).toBe(429)
    expect((await enter(visitor, ada)).status).toBe(429)
    expect((await enter(stranger(), ada)).status).toBe(303)
  })

  test('is refused after fifty times for one user, wherever from', async () => {
    const ada = await signIn(served)
    const guess = () => enter(stranger(), { ...ada, password: wrong })
    for (let tries = 0; tries < 50; tries += 10) {
      const answers = await Promise.all(Array.from({ length: 10 }, guess))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
    }
    expect((await guess()).status).toBe(429)
  })

  test('is counted over all processes of an installation', async () => {
    const other = await startDashboardService({ DATA_DIR: served.dataDirectory, PROXY_HOPS: '1' })
    try {
      const ada = await signIn(served)
      const from = { 'X-Forwarded-For': '10.0.0.0' }
      const visitors = [new Visitor(served.url, from), new Visitor(other.url, from)] as const
      const statuses: number[] = []
      for (let tries = 0; tries < 6; tries += 1) {
        statuses.push((await enter(visitors[tries % 2 ? 1 : 0], { ...ada, password: wrong })).status)
      }
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    } finally {
      await other.stop()
    }
  })

  test('leaves nothing in the store that tells whose attempt it was', async () => {
    const email = `${crypto.randomUUID()}@example.com`
    expect((await enter(stranger(), { email, password: wrong })).status).toBe(401)
    const database = new DatabaseSync(join(served.dataDirectory, 'counters.db'), { readOnly: true })
    const kept = JSON.stringify(database.prepare('SELECT * FROM counters').all())
    database.close()
    expect(kept).toContain('attempts-user:')
    expect(kept).not.toContain(email)
  })

  test('is not got around by what an address that is no proxy says of itself', async () => {
    const direct = await startDashboardService()
    try {
      const ada = await signIn(direct)
      const statuses: number[] = []
      for (let tries = 0; tries < 6; tries += 1) {
        const visitor = new Visitor(direct.url, {
          'X-Forwarded-For': `10.0.0.${tries}`,
          Forwarded: `for=10.0.0.${tries}`,
        })
        statuses.push((await enter(visitor, { ...ada, password: wrong })).status)
      }
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    } finally {
      await direct.stop()
    }
  })
})
