/** Single-use links: the welcome link, invitations and sign-in links. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { type DashboardService, password, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { copied, fieldError, inputValue, pageText } from '../support/html.ts'
import { type Environment, newStorage } from '../support/service-storage.ts'

const ada = { name: 'Ada', email: 'ada@example.com', password }

/** Starts a service on a new store. */
async function startOnNewStore(settings?: Environment): Promise<DashboardService> {
  const dashboard = await startDashboardService(settings)
  onTestFinished(dashboard.stop)
  return dashboard
}

function urlPath(url: string | undefined): string {
  return new URL(url ?? '').pathname
}

describe('the welcome link', () => {
  test('creates the admin once, however often it was opened before', async () => {
    const dashboard = await startOnNewStore()
    const path = urlPath(dashboard.welcomeUrl)
    expect(dashboard.welcomeUrl).toBe(`${dashboard.dashboardUrl}${path}`)
    const visitor = new Visitor(dashboard.url)
    for (const method of ['GET', 'HEAD', 'GET']) {
      const response = await visitor.send(method, path)
      expect([response.status, response.headers['set-cookie']]).toEqual([200, undefined])
    }
    expect(pageText(await visitor.get(path))).toContain('You will be the admin of the account Default')
    const used = await visitor.post(path, ada)
    expect([used.status, used.headers.location]).toEqual([303, '/'])
    expect(pageText(await visitor.get('/profile'))).toContain('Admin of Default')
    for (const again of [await visitor.get(path), await visitor.post(path, { ...ada, email: 'eve@example.com' })]) {
      expect(again.status).toBe(410)
      expect(pageText(again)).toContain('This link is no longer valid')
    }
    const [account] = await dashboard.domain.accounts.list()
    expect(await dashboard.domain.users.list(account?.id ?? '')).toMatchObject([
      { name: 'Ada', email: ada.email, role: 'admin' },
    ])
  })

  test('stays valid after invalid input, and the form keeps all values but the password', async () => {
    const dashboard = await startOnNewStore()
    const path = urlPath(dashboard.welcomeUrl)
    const visitor = new Visitor(dashboard.url)
    const response = await visitor.post(path, { name: 'Ada "<b>"', email: 'nobody', password: 'not long' })
    expect(response.status).toBe(400)
    expect(inputValue(response, 'name')).toBe('Ada "<b>"')
    expect(inputValue(response, 'email')).toBe('nobody')
    expect(fieldError(response, 'email')).toBe('Enter an email address, such as name@example.com.')
    expect(response.text).not.toContain('not long')
    const short = await visitor.post(path, { ...ada, password: 'not long' })
    expect([short.status, fieldError(short, 'password')]).toEqual([400, 'Use at least 12 characters.'])
    expect((await visitor.post(path, {})).status).toBe(400)
    expect((await visitor.post(path, ada)).status).toBe(303)
  })

  test('changes with each start until it is used', async () => {
    const { settings, remove } = await newStorage()
    onTestFinished(remove)
    const first = await startDashboardService(settings)
    await first.stop()
    const second = await startDashboardService(settings)
    expect(second.welcomeUrl).toBeDefined()
    expect([first.firstAccount?.name, second.firstAccount]).toEqual(['Default', undefined])
    const visitor = new Visitor(second.url)
    expect((await visitor.post(urlPath(first.welcomeUrl), ada)).status).toBe(410)
    expect((await visitor.post(urlPath(second.welcomeUrl), ada)).status).toBe(303)
    await second.stop()
    const third = await startDashboardService(settings)
    expect(third.welcomeUrl).toBeUndefined()
    await third.stop()
  })

  test('is invalid after its user has set an email address in another way', async () => {
    const dashboard = await startOnNewStore()
    const [account] = await dashboard.domain.accounts.list()
    const [owner] = await dashboard.domain.users.list(account?.id ?? '')
    if (!owner) throw new Error('The account has no user.')
    const visitor = new Visitor(dashboard.url)
    await visitor.post(`/links/${await dashboard.domain.links.createSignInLink(owner, operator)}`)
    expect((await visitor.post('/profile', { name: 'Ada', email: ada.email })).status).toBe(303)
    const path = urlPath(dashboard.welcomeUrl)
    expect((await visitor.get(path)).status).toBe(410)
    expect((await visitor.post(path, { ...ada, email: 'eve@example.com' })).status).toBe(410)
  })

  test('is the only way to sign in to a new store', async () => {
    const { domain } = await startOnNewStore()
    const rows = await domain.store.read.query.selectFrom('users').select(['email', 'password_hash']).execute()
    expect(rows).toEqual([{ email: null, password_hash: null }])
  })
})

describe('a link', () => {
  let dashboard: DashboardService

  beforeAll(async () => {
    dashboard = await startDashboardService({ PROXY_HOPS: '1' })
  })

  afterAll(() => dashboard.stop())

  test('that invites is shown once, and creates a user with the chosen role', async () => {
    const owner = await signIn(dashboard)
    const invited = await owner.visitor.post('/settings/members/invite', { label: 'Bo & Co', role: 'developer' })
    expect([invited.status, invited.headers['cache-control']]).toEqual([200, 'no-store'])
    const link = copied(invited, 'Copy link')
    const list = await owner.visitor.get('/settings/members')
    expect(list.text).toContain('Bo &amp; Co')
    expect(list.text).not.toContain(urlPath(link))
    const visitor = new Visitor(dashboard.url)
    expect(pageText(await visitor.get(urlPath(link)))).toContain('to join Test with the role developer')
    const forgedForm = { name: 'Bo', email: 'bo@example.com', password, role: 'admin', accountId: 'x', kind: 'welcome' }
    expect((await visitor.post(urlPath(link), forgedForm)).status).toBe(303)
    expect(pageText(await visitor.get('/profile'))).toContain('Developer of Test')
    expect((await new Visitor(dashboard.url).get(urlPath(link))).status).toBe(410)
    expect((await owner.visitor.get('/settings/members')).text).not.toContain('Bo &amp; Co')
  })

  test('that was revoked is invalid', async () => {
    const owner = await signIn(dashboard)
    const invitation = { label: 'Bo', role: 'developer' } as const
    const token = await dashboard.domain.links.invite(owner.accountId, invitation, operator)
    const [{ id = '' } = {}] = await dashboard.domain.links.listInvitations(owner.accountId)
    const withdrawn = await owner.visitor.post(`/settings/members/invitations/${id}/withdraw`)
    expect(withdrawn.headers.location).toBe('/settings/members?done=revoked')
    expect((await new Visitor(dashboard.url).get(`/links/${token}`)).status).toBe(410)
    expect((await owner.visitor.post(`/settings/members/invitations/${id}/withdraw`)).status).toBe(404)
  })

  test('that signs in needs a form submission, and allows one password change without the current password', async () => {
    const owner = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: owner.accountId, role: 'developer', name: 'Bo' })
    const created = await owner.visitor.post(`/settings/members/${bo.id}/sign-in-link`)
    const path = urlPath(copied(created, 'Copy link'))
    const visitor = new Visitor(dashboard.url)
    const linkPage = await visitor.get(path)
    expect(pageText(linkPage)).toContain('This link signs you in to Test as Bo')
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

  test('that never existed is invalid, and attempts are limited', async () => {
    const visitor = new Visitor(dashboard.url, { 'X-Forwarded-For': '192.0.2.77' })
    for (const token of ['none', '%01', 'a'.repeat(5000), '%F0%9F%94%91', '..%2F..%2Fetc', "'%20OR%201=1"]) {
      expect((await visitor.get(`/links/${token}`)).status).toBe(410)
    }
    expect((await visitor.get('/links/%ff')).status).toBe(400)
    for (let tries = 0; tries < 30; tries += 1) expect((await visitor.post('/links/guess')).status).toBe(410)
    const refused = await visitor.post('/links/guess')
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true])
    // Neither other people behind the address nor the link of other addresses.
    expect((await visitor.post('/links/other')).status).toBe(410)
    const another = new Visitor(dashboard.url, { 'X-Forwarded-For': '192.0.2.78' })
    expect((await another.post('/links/guess')).status).toBe(410)
  })
})
