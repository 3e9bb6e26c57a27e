/** Links into the dashboard: looking at one changes nothing, using it works once, and nobody comes in without one. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import {
  type DashboardService,
  fieldError,
  inputValue,
  pageText,
  password,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'
import { type Environment, newStorage } from '../support/service-storage.ts'

const ada = { name: 'Ada', email: 'ada@example.com', password }

/** A service on a store that nobody has signed in to. */
async function serveNew(settings?: Environment): Promise<DashboardService> {
  const served = await startDashboardService(settings)
  onTestFinished(served.stop)
  return served
}

function pathOf(url: string | undefined): string {
  return new URL(url ?? '').pathname
}

describe('the first link', () => {
  test('lets its reader choose who owns the account, after any number of looks at it, and is dead then', async () => {
    const served = await serveNew()
    const path = pathOf(served.welcomeUrl)
    expect(served.welcomeUrl).toBe(`${served.dashboardUrl}${path}`)
    const visitor = new Visitor(served.url)
    for (const method of ['GET', 'HEAD', 'GET']) {
      const answer = await visitor.send(method, path)
      expect([answer.status, answer.headers['set-cookie']]).toEqual([200, undefined])
    }
    expect(pageText(await visitor.get(path))).toContain('You will be the owner of the account Default')
    const used = await visitor.post(path, ada)
    expect([used.status, used.headers.location]).toEqual([303, '/'])
    expect(pageText(await visitor.get('/profile'))).toContain('Owner of Default')
    for (const again of [await visitor.get(path), await visitor.post(path, { ...ada, email: 'eve@example.com' })]) {
      expect(again.status).toBe(410)
      expect(pageText(again)).toContain('This link is no longer valid')
    }
    const [account] = await served.domain.accounts.list()
    expect(await served.domain.users.list(account?.id ?? '')).toMatchObject([
      { name: 'Ada', email: ada.email, role: 'owner' },
    ])
  })

  test('keeps what was typed into a form that was refused, but for the password, and works still', async () => {
    const served = await serveNew()
    const path = pathOf(served.welcomeUrl)
    const visitor = new Visitor(served.url)
    const refused = await visitor.post(path, { name: 'Ada "<b>"', email: 'nobody', password: 'not long' })
    expect(refused.status).toBe(400)
    expect(inputValue(refused, 'name')).toBe('Ada "<b>"')
    expect(inputValue(refused, 'email')).toBe('nobody')
    expect(fieldError(refused, 'email')).toBe('Enter an email address, such as name@example.com.')
    expect(refused.text).not.toContain('not long')
    const short = await visitor.post(path, { ...ada, password: 'not long' })
    expect([short.status, fieldError(short, 'password')]).toEqual([400, 'Use at least 12 characters.'])
    expect((await visitor.post(path, {})).status).toBe(400)
    expect((await visitor.post(path, ada)).status).toBe(303)
  })

  test('makes one owner when two come by it at the same moment to two processes', async () => {
    const one = await serveNew()
    const two = await serveNew(one.settings)
    // The second start has made another link in place of the first one's.
    const path = pathOf(two.welcomeUrl)
    expect((await new Visitor(one.url).get(pathOf(one.welcomeUrl))).status).toBe(410)
    const come = (served: DashboardService, name: string) =>
      new Visitor(served.url).post(path, { name, email: `${name}@example.com`, password })
    const answers = await Promise.all([come(one, 'a'), come(two, 'b'), come(one, 'c'), come(two, 'd')])
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 410, 410, 410])
    const [account] = await one.domain.accounts.list()
    expect(await one.domain.users.list(account?.id ?? '')).toHaveLength(1)
  })

  test('is another after each start until somebody has used it, and there is none then', async () => {
    const { settings, remove } = await newStorage()
    onTestFinished(remove)
    const first = await startDashboardService(settings)
    await first.stop()
    const second = await startDashboardService(settings)
    expect(second.welcomeUrl).toBeDefined()
    expect([first.firstAccount?.name, second.firstAccount]).toEqual(['Default', undefined])
    const visitor = new Visitor(second.url)
    expect((await visitor.post(pathOf(first.welcomeUrl), ada)).status).toBe(410)
    expect((await visitor.post(pathOf(second.welcomeUrl), ada)).status).toBe(303)
    await second.stop()
    const third = await startDashboardService(settings)
    expect(third.welcomeUrl).toBeUndefined()
    await third.stop()
  })

  test('is dead when its user has become somebody by another way', async () => {
    const served = await serveNew()
    const [account] = await served.domain.accounts.list()
    const [owner] = await served.domain.users.list(account?.id ?? '')
    if (!owner) throw new Error('An account comes with a user.')
    const visitor = new Visitor(served.url)
    await visitor.post(`/links/${await served.domain.links.createSignInLink(owner, operator)}`)
    expect((await visitor.post('/profile', { name: 'Ada', email: ada.email })).status).toBe(303)
    const path = pathOf(served.welcomeUrl)
    expect((await visitor.get(path)).status).toBe(410)
    expect((await visitor.post(path, { ...ada, email: 'eve@example.com' })).status).toBe(410)
  })

  test('is the only way in: no user of a new store has an e-mail address or a password', async () => {
    const { domain } = await serveNew()
    const rows = await domain.store.read.query.selectFrom('users').select(['email', 'password_hash']).execute()
    expect(rows).toEqual([{ email: null, password_hash: null }])
  })
})

describe('a link', () => {
  let served: DashboardService

  beforeAll(async () => {
    served = await startDashboardService({ PROXY_HOPS: '1' })
  })

  afterAll(() => served.stop())

  test('that invites is shown to its owner once, and makes a user of the role that was chosen', async () => {
    const owner = await signIn(served)
    const { status, headers, text } = await owner.visitor.post('/settings/members/invite', {
      label: 'Bo & Co',
      role: 'member',
    })
    expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
    const link = text.match(/<code id="link" data-once>([^<]+)</)?.[1]
    const list = await owner.visitor.get('/settings/members')
    expect(list.text).toContain('Bo &amp; Co')
    expect(list.text).not.toContain(pathOf(link))
    const visitor = new Visitor(served.url)
    expect(pageText(await visitor.get(pathOf(link)))).toContain('to join Test as a member')
    const forged = { name: 'Bo', email: 'bo@example.com', password, role: 'owner', accountId: 'x', kind: 'welcome' }
    expect((await visitor.post(pathOf(link), forged)).status).toBe(303)
    expect(pageText(await visitor.get('/profile'))).toContain('Member of Test')
    expect((await new Visitor(served.url).get(pathOf(link))).status).toBe(410)
    expect((await owner.visitor.get('/settings/members')).text).not.toContain('Bo &amp; Co')
  })

  test('that was withdrawn is dead', async () => {
    const owner = await signIn(served)
    const invitation = { label: 'Bo', role: 'member' } as const
    const token = await served.domain.links.invite(owner.accountId, invitation, operator)
    const [{ id = '' } = {}] = await served.domain.links.listInvitations(owner.accountId)
    const withdrawn = await owner.visitor.post(`/settings/members/invitations/${id}/withdraw`)
    expect(withdrawn.headers.location).toBe('/settings/members?done=revoked')
    expect((await new Visitor(served.url).get(`/links/${token}`)).status).toBe(410)
    expect((await owner.visitor.post(`/settings/members/invitations/${id}/withdraw`)).status).toBe(404)
  })

  test('that signs in does so by a form alone, and then lets a password be chosen once without the present one', async () => {
    const owner = await signIn(served)
    const bo = await signIn(served, { accountId: owner.accountId, role: 'member', name: 'Bo' })
    const { text } = await owner.visitor.post(`/settings/members/${bo.id}/sign-in-link`)
    const path = pathOf(text.match(/<code id="link" data-once>([^<]+)</)?.[1])
    const visitor = new Visitor(served.url)
    const shown = await visitor.get(path)
    expect(pageText(shown)).toContain('This link signs you in to Test as Bo')
    expect(visitor.cookies.size).toBe(0)
    expect((await visitor.post(path)).status).toBe(303)
    expect((await visitor.post(path)).status).toBe(410)
    const choose = (next: string, currentPassword?: string) =>
      visitor.post('/profile/password', { password: next, ...(currentPassword !== undefined && { currentPassword }) })
    expect((await choose('a new password')).headers.location).toBe('/profile?done=password')
    expect((await choose('another password')).status).toBe(400)
    expect(fieldError(await choose('another password', 'wrong'), 'currentPassword')).toBe(
      'The current password is incorrect.',
    )
    expect((await choose('another password', 'a new password')).status).toBe(303)
    expect((await bo.visitor.get('/profile')).headers.location).toBe('/sign-in?next=%2Fprofile')
  })

  test('that never was one has ended too, and nobody tries many', async () => {
    const visitor = new Visitor(served.url, { 'X-Forwarded-For': '192.0.2.77' })
    for (const token of ['none', '%01', 'a'.repeat(5000), '%F0%9F%94%91', '..%2F..%2Fetc', "'%20OR%201=1"]) {
      expect((await visitor.get(`/links/${token}`)).status).toBe(410)
    }
    expect((await visitor.get('/links/%ff')).status).toBe(400)
    for (let tries = 0; tries < 30; tries += 1) expect((await visitor.post(`/links/guess${tries}`)).status).toBe(410)
    const refused = await visitor.post('/links/guess')
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true])
    const another = new Visitor(served.url, { 'X-Forwarded-For': '192.0.2.78' })
    expect((await another.post('/links/guess')).status).toBe(410)
  })
})
