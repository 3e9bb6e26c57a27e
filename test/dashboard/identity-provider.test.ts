/** Signing in by OpenID Connect, at a real provider (oidc-provider) over HTTP. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Provider from 'oidc-provider'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ConfigError } from '../../src/config/setting-kinds.ts'
import { CredentialsChangedError } from '../../src/domain/accounts/sessions.ts'
import { toActor } from '../../src/domain/accounts/user.ts'
import { Users } from '../../src/domain/accounts/users.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { mergeClaims } from '../../src/surfaces/dashboard/sign-in/identity-provider.ts'
import { type DashboardService, password, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { inputValue, pageText } from '../support/html.ts'
import { newStorage } from '../support/service-storage.ts'

interface Person {
  groups: string[]
  /** Of claims that are elsewhere: OpenID Connect Core, section 5.6.2. */
  _claim_names?: Record<string, string>
  email?: string
  email_verified?: boolean
}

/** People of the provider, by subject. The test changes their groups. */
const people = new Map<string, Person>()
let answer: RequestListener
const server = createServer((request, response) => answer(request, response))
let issuer: string
let dashboard: DashboardService
let storage: Awaited<ReturnType<typeof newStorage>>
let accountId: string

const roles = '{"platform":"admin","engineers":"developer","support":"operator"}'

function oidcSettings() {
  return {
    ...{ OIDC_ISSUER: issuer, OIDC_CLIENT_ID: 'dashboard', OIDC_CLIENT_SECRET: 'canary-secret', OIDC_NAME: 'Example' },
    ...{ OIDC_ROLES: roles, OIDC_ACCOUNT: accountId, OIDC_SCOPES: 'openid profile email groups' },
  }
}

/** Starts a provider with new keys at the same issuer. */
async function newProvider(redirectUri: string): Promise<Provider> {
  const { Provider } = await import('oidc-provider')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: 'dashboard', client_secret: 'canary-secret', redirect_uris: [redirectUri] },
        post_logout_redirect_uris: [new URL('/sign-in', redirectUri).href],
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: crypto.randomUUID() }] },
    claims: {
      openid: ['sub', '_claim_names'],
      profile: ['name'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: `Name of ${id}`, ...people.get(id) }),
    }),
  })
  answer = provider.callback()
  return provider
}

beforeAll(async () => {
  // The provider says that its defaults are for development.
  for (const name of ['info', 'warn'] as const) vi.spyOn(console, name).mockImplementation(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  storage = await newStorage()
  const first = await startDashboardService(storage.settings)
  accountId = (await signIn(first)).accountId
  await first.stop()
  dashboard = await startDashboardService({ ...storage.settings, ...oidcSettings(), PROXY_HOPS: '1' })
  await newProvider(`${dashboard.url}/sign-in/provider/callback`)
})

afterAll(async () => {
  await dashboard.stop()
  await storage.remove()
  server.closeAllConnections()
  server.close()
})

/** A browser at the provider: follows its redirects and submits its forms, until it leads to the dashboard. */
async function atProvider(url: string, login: string, agent = new Visitor(issuer)): Promise<string> {
  let path = url.replace(issuer, '')
  for (let steps = 0; steps < 12; steps++) {
    const page = await agent.get(path)
    if (page.headers.location) {
      const next = new URL(String(page.headers.location), issuer)
      if (next.origin !== issuer) return next.href
      path = next.pathname + next.search
      continue
    }
    const [, action = ''] = /<form[^>]* action="([^"]+)"/.exec(page.text) ?? []
    const prompt = /name="prompt" value="(\w+)"/.exec(page.text)?.[1] ?? 'login'
    const sent = await agent.post(action.replace(issuer, ''), { prompt, login, password: 'x' })
    const next = new URL(String(sent.headers.location), issuer)
    if (next.origin !== issuer) return next.href
    path = next.pathname + next.search
  }
  throw new Error('The provider did not lead back.')
}

async function begin(visitor: Visitor, next = '') {
  const begun = await visitor.get(`/sign-in/provider${next && `?${new URLSearchParams({ next })}`}`)
  expect(begun.status).toBe(303)
  return String(begun.headers.location)
}

const client = { address: '', userAgent: '' }

const toPath = (url: string) => url.replace(dashboard.url, '')

async function signInAs(login: string, { visitor = new Visitor(dashboard.url), next = '' } = {}) {
  const callback = await atProvider(await begin(visitor, next), login)
  return { visitor, callback, response: await visitor.get(toPath(callback)) }
}

const memberOf = async (name: string) =>
  (await dashboard.domain.users.list(accountId)).find((each) => each.name === `Name of ${name}`)

describe('a person whose group has a role', () => {
  test('joins the account, and has the role of their groups at each sign-in', async () => {
    people.set('bo', { groups: ['support', 'engineers'], email: 'bo@example.com', email_verified: true })
    const { visitor, response } = await signInAs('bo', { next: '/runs?status=failed' })
    expect([response.status, response.headers.location]).toEqual([303, '/runs?status=failed'])
    const bo = await memberOf('bo')
    expect(bo).toMatchObject({
      role: 'developer',
      roleFrom: 'engineers',
      email: 'bo@example.com',
      identityIssuer: issuer,
    })
    expect(pageText(await visitor.get('/settings/members'))).toContain('Example, from the group engineers')
    const draft = { accountId, userId: bo?.id ?? '', name: 'Key', scopes: null, expiresAt: null }
    const { value } = await dashboard.domain.apiKeys.create(draft, operator)
    people.set('bo', { groups: ['support'] })
    expect((await signInAs('bo')).response.status).toBe(303)
    expect(await memberOf('bo')).toMatchObject({ id: bo?.id, role: 'operator', roleFrom: 'support' })
    expect((await dashboard.domain.apiKeys.authenticate(value))?.scopes).not.toContain('schedules:write')
    people.set('bo', { groups: ['sales'] })
    const refused = await signInAs('bo')
    expect([refused.response.status, pageText(refused.response)]).toEqual([
      403,
      expect.stringContaining('None of your groups at Example has a role here.'),
    ])
    // Their sessions and keys end with the role.
    expect((await visitor.get('/')).headers.location).toBe('/sign-in')
    expect(await dashboard.domain.apiKeys.authenticate(value)).toBeUndefined()
    people.set('bo', { groups: ['engineers'] })
    await signInAs('bo')
    expect((await dashboard.domain.apiKeys.authenticate(value))?.scopes).toBeNull()
  })

  test('has no role, link or invitation left once their groups have none', async () => {
    const { links, users, accounts } = dashboard.domain
    people.set('lu', { groups: ['platform'] })
    const { visitor } = await signInAs('lu')
    const lu = await memberOf('lu')
    if (!lu) throw new Error('Lu has joined.')
    const invitation = await links.invite(accountId, { label: 'Spare', role: 'admin' }, toActor(lu))
    const link = await links.createSignInLink(lu, operator)
    people.set('lu', { groups: [] })
    expect((await signInAs('lu')).response.status).toBe(403)
    expect(await memberOf('lu')).toMatchObject({ role: null, roleFrom: null, canSignIn: false })
    for (const token of [invitation, link]) expect((await visitor.get(`/links/${token}`)).status).toBe(410)
    await expect(links.createSignInLink(lu, operator)).rejects.toThrow('This user has no role')
    const draft = { accountId, userId: lu.id, name: 'Key', scopes: null, expiresAt: null }
    await expect(dashboard.domain.apiKeys.create(draft, operator)).rejects.toMatchObject({ about: 'holder' })
    expect(await accounts.findAdminId(accountId)).not.toBe(lu.id)
    // Nor does a session begin that was proven before, between the password and the code.
    await expect(
      dashboard.domain.sessions.create('token', { user: lu, byLink: false, client, proof: undefined }),
    ).rejects.toThrow(CredentialsChangedError)
    people.set('mo', { groups: ['platform'] })
    const { visitor: admin } = await signInAs('mo')
    expect(pageText(await admin.get('/settings/members'))).toContain('No role')
    expect((await admin.post(`/settings/members/${lu.id}/sign-in-link`)).status).toBe(409)
    expect(await users.remove(accountId, lu.id, operator)).toBe(true)
  })

  test('counts as another admin only while their groups give the role', async () => {
    const { accounts, providerMembers, users } = dashboard.domain
    const { id } = await accounts.create({ name: 'Other', scopesEnabled: false })
    const join = (subject: string, role?: 'admin' | 'viewer') => {
      const identity = { issuer, subject, name: subject, email: undefined }
      return providerMembers.signIn(id, identity, role && { role, group: 'platform' })
    }
    const [ann, ben] = [await join('ann', 'admin'), await join('ben', 'admin')]
    if (typeof ann === 'string' || typeof ben === 'string') throw new Error('Both have joined.')
    expect(await join('ben')).toBe('noRole')
    // The user that the account's creation made is an admin, too, who cannot sign in.
    const onlyAdmin = 'This user is the only admin.'
    await expect(users.remove(id, ann.id, operator)).rejects.toThrow(onlyAdmin)
    await expect(users.changeRole(id, ann.id, 'viewer', operator)).rejects.toThrow(onlyAdmin)
    expect(await join('ann', 'viewer')).toMatchObject({ role: 'admin' })
    expect(await join('ben', 'admin')).toMatchObject({ role: 'admin' })
    expect(await join('ann', 'viewer')).toMatchObject({ role: 'viewer' })
  })

  test('has no password, and no role that an admin changes', async () => {
    people.set('cy', { groups: ['platform'] })
    const { visitor } = await signInAs('cy')
    expect((await visitor.post('/profile/password', { password: 'correct horse battery 2' })).status).toBe(400)
    expect((await visitor.post('/profile', { name: 'Name of cy', email: '' })).status).toBe(303)
    const cy = await memberOf('cy')
    expect(cy).toMatchObject({ email: null, canSignIn: true })
    const changed = await visitor.post(`/settings/members/${cy?.id}/role`, { role: 'viewer' })
    expect([changed.status, pageText(changed)]).toEqual([409, expect.stringContaining('comes from Example')])
  })

  test('is refused once removed, until an admin lets them join again', async () => {
    people.set('di', { groups: ['platform'] })
    people.set('ed', { groups: ['support'] })
    const { visitor: admin } = await signInAs('di')
    await signInAs('ed')
    const ed = await memberOf('ed')
    await admin.post(`/settings/members/${ed?.id}/remove`)
    expect(pageText((await signInAs('ed')).response)).toContain('You were removed from this account.')
    expect(await memberOf('ed')).toBeUndefined()
    expect((await admin.post(`/settings/members/${ed?.id}/allow`)).status).toBe(303)
    expect((await signInAs('ed')).response.status).toBe(303)
    expect((await memberOf('ed'))?.id).not.toBe(ed?.id)
  })

  test('does not take over the user with their email address, verified or not', async () => {
    const service = await startDashboardService(storage.settings)
    const local = await signIn(service, { accountId, role: 'viewer', name: 'Local' })
    await service.stop()
    people.set('eve', { groups: ['platform'], email: local.email, email_verified: false })
    expect((await signInAs('eve')).response.status).toBe(303)
    expect(await memberOf('eve')).toMatchObject({ email: null })
    people.set('fay', { groups: ['platform'], email: local.email, email_verified: true })
    expect((await signInAs('fay')).response.status).toBe(303)
    expect(await memberOf('fay')).toMatchObject({ email: null, identityIssuer: issuer })
    expect(await dashboard.domain.users.get(local.id)).toMatchObject({ role: 'viewer', identityIssuer: null })
  })
})

test('no start prints a welcome link once a member has joined, also without an email address', async () => {
  const service = await startDashboardService()
  onTestFinished(service.stop)
  const { accounts, links, providerMembers, store } = service.domain
  const users = new Users(store, { PASSWORD_SIGN_IN: 'on', OIDC_ISSUER: issuer })
  const [account] = await accounts.list()
  const unused = (await links.createFirstWelcomeLink()) ?? ''
  expect(await links.find(unused)).toMatchObject({ kind: 'welcome', accountId: account?.id })
  const identity = { issuer, subject: 'nia', name: 'Nia', email: undefined }
  const viewer = { issuer, subject: 'vic', name: 'Vic', email: undefined }
  await providerMembers.signIn(account?.id ?? '', viewer, { role: 'viewer', group: '*' })
  expect(await links.find(unused)).toMatchObject({ kind: 'welcome' })
  const nia = await providerMembers.signIn(account?.id ?? '', identity, { role: 'admin', group: 'platform' })
  expect(nia).toMatchObject({ email: null, role: 'admin' })
  expect(await links.find(unused)).toBeUndefined()
  expect(await links.createFirstWelcomeLink()).toBeUndefined()
  // The link of the account itself is for the user whom its creation made, and no one else.
  const first = (await users.list(account?.id ?? '')).find(({ identityIssuer }) => identityIssuer === null)
  const welcome = (await links.createWelcomeLink(account?.id ?? '')) ?? ''
  expect(await links.find(welcome)).toMatchObject({ userId: first?.id })
  await users.remove(account?.id ?? '', first?.id ?? '', operator)
  expect(await links.find(welcome)).toBeUndefined()
  expect(await links.createWelcomeLink(account?.id ?? '')).toBeUndefined()
  expect(await links.createFirstWelcomeLink()).toBeUndefined()
})

describe('a callback is refused', () => {
  const expectRefused = async (visitor: Visitor, path: string, status: number) => {
    const response = await visitor.get(path)
    expect([response.status, pageText(response)]).toEqual([status, expect.stringContaining('You are not signed in')])
    expect((await visitor.get('/profile')).headers.location).toBe('/sign-in?next=%2Fprofile')
  }

  test('in a browser that did not begin it, with another state, issuer or code, and the second time', async () => {
    people.set('gil', { groups: ['support'] })
    const begun = async () => {
      const visitor = new Visitor(dashboard.url)
      const callback = new URL(await atProvider(await begin(visitor), 'gil'))
      const path = (name: string, value: string) => {
        const changed = new URL(callback)
        changed.searchParams.set(name, value)
        return changed.pathname + changed.search
      }
      return { visitor, path, unchanged: callback.pathname + callback.search }
    }
    const login = await begun()
    await expectRefused(new Visitor(dashboard.url), login.unchanged, 400)
    for (const [name, value] of [
      ['state', 'another'],
      ['iss', 'https://other.example'],
    ] as const) {
      const { visitor, path } = await begun()
      await expectRefused(visitor, path(name, value), 502)
    }
    const forged = await begun()
    await expectRefused(forged.visitor, forged.path('code', 'forged'), 400)
    const used = await begun()
    const cookies = new Map(used.visitor.cookies)
    expect((await used.visitor.get(used.unchanged)).status).toBe(303)
    const replaying = new Visitor(dashboard.url)
    for (const [name, value] of cookies) replaying.cookies.set(name, value)
    await expectRefused(replaying, used.unchanged, 400)
  })

  test('with the token of another sign-in: another nonce', async () => {
    people.set('hal', { groups: ['support'] })
    const visitor = new Visitor(dashboard.url)
    const url = new URL(await begin(visitor))
    url.searchParams.set('nonce', 'another')
    const callback = await atProvider(url.href, 'hal')
    await expectRefused(visitor, toPath(callback), 502)
  })

  test('when the person cancels, in plain words', async () => {
    const visitor = new Visitor(dashboard.url)
    const { searchParams } = new URL(await begin(visitor))
    const query = new URLSearchParams({ error: 'access_denied', state: searchParams.get('state') ?? '', iss: issuer })
    await expectRefused(visitor, `/sign-in/provider/callback?${query}`, 401)
  })
})

test('sign-ins that fail are limited by address, at both routes, and do not limit others', async () => {
  const visitor = new Visitor(dashboard.url)
  const from = { headers: { 'X-Forwarded-For': '192.0.2.7' } }
  const call = async (path: string) => (await visitor.send('GET', path, from)).status
  const callback = '/sign-in/provider/callback?code=x&state=y'
  for (let attempt = 0; attempt < 30; attempt++) expect(await call(callback)).toBe(400)
  expect(await call(callback)).toBe(429)
  expect(await call('/sign-in/provider')).toBe(429)
  expect(await call('/sign-in')).toBe(200)
  people.set('oli', { groups: ['support'] })
  expect((await signInAs('oli')).response.status).toBe(303)
})

test('an address counts as verified only if its own source says so', () => {
  const verified = { email: 'ada@example.com', email_verified: true }
  expect(mergeClaims({ sub: '1', email: 'eve@example.com' }, verified)).toEqual({ sub: '1', email: 'eve@example.com' })
  expect(mergeClaims({ sub: '1' }, verified)).toEqual({ sub: '1', ...verified })
  expect(mergeClaims({ sub: '1', ...verified }, { email: 'eve@example.com' })).toEqual({ sub: '1', ...verified })
})

test('the path to open after signing in is one of the dashboard', async () => {
  people.set('ivy', { groups: ['support'] })
  for (const next of ['https://evil.example/', '//evil.example', '/.//evil.example', '/\\evil.example']) {
    expect((await signInAs('ivy', { next })).response.headers.location).toBe('/')
  }
})

test('the provider may rotate its keys between two sign-ins', async () => {
  people.set('jo', { groups: ['support'] })
  expect((await signInAs('jo')).response.status).toBe(303)
  await newProvider(`${dashboard.url}/sign-in/provider/callback`)
  expect((await signInAs('jo')).response.status).toBe(303)
})

test('changing the second factor does not prolong a session', async () => {
  people.set('zed', { groups: ['support'] })
  const { visitor } = await signInAs('zed')
  const zed = await memberOf('zed')
  const read = async () => (await dashboard.domain.sessions.list(zed?.id ?? ''))[0]
  const before = await read()
  const path = '/profile/two-factor/set-up'
  const secret = inputValue(await visitor.get(path), 'secret') ?? ''
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate()
  expect((await visitor.post(path, { secret, code, currentPassword: '' })).status).toBe(200)
  const after = await read()
  expect(after?.id).not.toBe(before?.id)
  expect(after).toMatchObject({ createdAt: before?.createdAt, expiresAt: before?.expiresAt })
})

test('an admin makes no sign-in link for a member whom the provider may refuse, nor for themself', async () => {
  people.set('yan', { groups: ['platform'] })
  const { visitor } = await signInAs('yan')
  const yan = await memberOf('yan')
  people.set('yan', { groups: [] })
  const page = await visitor.post(`/settings/members/${yan?.id}/sign-in-link`)
  expect([page.status, pageText(page)]).toEqual([409, expect.stringContaining('This user signs in by Example')])
  await signInAs('yan')
})

test('a refused sign-in of a known member is in the audit log', async () => {
  people.set('jo', { groups: ['support'] })
  await signInAs('jo')
  people.set('jo', { groups: [] })
  await signInAs('jo')
  const jo = await memberOf('jo')
  const recorded = async () =>
    (await dashboard.domain.auditLog.list(accountId, { limit: 10 })).map(({ action, subject }) => [action, subject?.id])
  await vi.waitFor(async () => expect(await recorded()).toContainEqual(['user.signInRefused', jo?.id]), 5000)
})

test('a link to sign out of the provider does not sign out', async () => {
  people.set('so', { groups: ['support'] })
  const { visitor } = await signInAs('so')
  expect((await visitor.get('/sign-out/provider')).headers.location).toBe('/profile')
  expect((await visitor.get('/profile')).status).toBe(200)
})

test('groups that the token only refers to are not none', async () => {
  people.set('vi', { groups: ['support'] })
  await signInAs('vi')
  people.set('vi', { groups: [], _claim_names: { groups: 'src1' } })
  expect((await signInAs('vi')).response.status).toBe(502)
  expect(await memberOf('vi')).toMatchObject({ role: 'operator' })
})

test('signing out offers to sign out of the provider', async () => {
  people.set('kim', { groups: ['support'] })
  const { visitor } = await signInAs('kim')
  const page = await visitor.get(String((await visitor.post('/sign-out')).headers.location))
  expect(pageText(page)).toContain('Sign out of Example, too')
  const { headers } = await visitor.get('/sign-out/provider')
  expect(String(headers.location)).toContain(`${issuer}/session/end?`)
  expect(new URL(String(headers.location)).searchParams.get('post_logout_redirect_uri')).toBe(
    `${dashboard.url}/sign-in`,
  )
})

test('with passwords switched off, only the provider and sign-in links sign in', async () => {
  const local = await signIn(dashboard, { accountId, role: 'admin', name: 'Local admin' })
  const service = await startDashboardService({ ...storage.settings, ...oidcSettings(), PASSWORD_SIGN_IN: 'off' })
  try {
    const visitor = new Visitor(service.url)
    const page = await visitor.get('/sign-in')
    expect(pageText(page)).toContain('Sign in with Example')
    expect(page.text).not.toContain('type="password"')
    expect((await visitor.post('/sign-in', { email: local.email, password })).status).toBe(403)
    const user = await service.domain.users.get(local.id)
    const token = user && (await service.domain.links.createSignInLink(user, operator))
    expect((await visitor.post(`/links/${token}`)).status).toBe(303)
    expect((await visitor.get('/settings/members/invite')).status).toBe(403)
    const other = await service.domain.accounts.create({ name: 'Other', scopesEnabled: false })
    const welcome = `/links/${await service.domain.links.createWelcomeLink(other.id)}`
    const form = { name: 'Eve', email: 'eve-later@example.com', password }
    expect((await new Visitor(service.url).get(welcome)).status).toBe(403)
    expect((await new Visitor(service.url).post(welcome, form)).status).toBe(403)
    expect((await visitor.post('/profile/password', { password: 'correct horse battery 3' })).status).toBe(403)
  } finally {
    await service.stop()
  }
})

test('an account that does not exist stops the start with one sentence', async () => {
  const settings = { ...storage.settings, ...oidcSettings(), OIDC_ACCOUNT: 'none' }
  const start = startDashboardService(settings)
  await expect(start).rejects.toThrow('OIDC_ACCOUNT is "none": set it to the id of an account')
  await expect(start).rejects.toThrow(ConfigError)
})
