/** The profile: name, email address and password. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { type DashboardService, password, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { fieldError, inputValue, pageText } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

test('a user can change their name and email address', async () => {
  const ada = await signIn(dashboard)
  const email = `New-${ada.email}`
  const form = { name: ' Ada <b>Lovelace</b> ', email: ` ${email.toUpperCase()} ` }
  for (const passwordNow of ['', 'not the present one']) {
    const refused = await ada.visitor.post('/profile', { ...form, passwordNow })
    expect([refused.status, fieldError(refused, 'passwordNow')]).toEqual([400, 'The current password is incorrect.'])
  }
  const saved = await ada.visitor.post('/profile', { ...form, passwordNow: password })
  expect(saved.headers.location).toBe('/profile?done=saved')
  const page = await ada.visitor.get('/profile?done=saved')
  expect([inputValue(page, 'name'), inputValue(page, 'email')]).toEqual(['Ada <b>Lovelace</b>', email.toLowerCase()])
  expect(page.text).not.toContain('<b>')
  const submitSignIn = async (given: string) =>
    (await new Visitor(dashboard.url).post('/sign-in', { email: given, password })).status
  expect([await submitSignIn(email), await submitSignIn(ada.email)]).toEqual([303, 401])
  const [entry] = await dashboard.domain.auditLog.list(ada.accountId, { action: 'user.described', limit: 9 })
  expect(entry).toMatchObject({ by: { id: ada.id }, details: { from: 'Ada', email: ada.email.toLowerCase() } })
})

test('invalid values are refused, and the form keeps them', async () => {
  const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
  const invalid: [form: Record<string, string>, member: string, words: string][] = [
    [{ name: 'Ada', email: eve.email.toUpperCase() }, 'email', 'Another user has this email address.'],
    [{ name: 'Ada', email: 'ada' }, 'email', 'Enter an email address, such as name@example.com.'],
    [{ name: 'Ada', email: 'a\u0001@b' }, 'email', 'Enter an email address, such as name@example.com.'],
    [{ name: '', email: ada.email }, 'name', 'Enter a name.'],
    [{ name: '"'.repeat(101), email: ada.email }, 'name', 'Use at most 100 characters.'],
  ]
  for (const [form, member, words] of invalid) {
    const refused = await ada.visitor.post('/profile', { ...form, passwordNow: password })
    expect([refused.status, fieldError(refused, member)]).toEqual([400, words])
    expect([inputValue(refused, 'name'), inputValue(refused, 'email')]).toEqual([form.name, form.email])
  }
  for (const form of [{}, { name: 'Ada' }, { email: ada.email }])
    expect((await ada.visitor.post('/profile', form)).status).toBe(400)
  expect(await dashboard.domain.users.get(ada.id)).toMatchObject({ name: 'Ada', email: ada.email, role: 'admin' })
})

test('a forged form changes neither role, account nor another user', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
  const forged = {
    name: 'Bo',
    email: bo.email,
    role: 'admin',
    id: ada.id,
    userId: ada.id,
    accountId: 'x',
    account_id: 'x',
  }
  expect((await bo.visitor.post('/profile', forged)).status).toBe(303)
  expect(await dashboard.domain.users.get(bo.id)).toMatchObject({ role: 'developer', accountId: ada.accountId })
  expect(await dashboard.domain.users.get(ada.id)).toMatchObject({ name: 'Ada', email: ada.email })
})

test('changing the password requires the current one, and no page contains either', async () => {
  const ada = await signIn(dashboard)
  const change = (form: Record<string, string>) => ada.visitor.post('/profile/password', form)
  const invalid: [form: Record<string, string>, member: string][] = [
    [{ password: 'canary password' }, 'currentPassword'],
    [{ currentPassword: 'not the present one', password: 'canary password' }, 'currentPassword'],
    [{ currentPassword: '', password: 'canary password' }, 'currentPassword'],
    [{ currentPassword: password, password: 'canary' }, 'password'],
    [{ currentPassword: password }, 'password'],
    [{}, 'password'],
  ]
  for (const [form, member] of invalid) {
    const refused = await change(form)
    expect([form, refused.status]).toEqual([form, 400])
    expect(fieldError(refused, member)).toBeDefined()
    expect(refused.text).not.toContain('canary')
    expect(refused.text).not.toContain(password)
  }
  expect((await change({ currentPassword: password, password: 'canary password' })).status).toBe(303)
  expect(pageText(await ada.visitor.get('/profile?done=password'))).toContain('Password changed.')
  const submitSignIn = async (given: string) =>
    (await new Visitor(dashboard.url).post('/sign-in', { email: ada.email, password: given })).status
  expect([await submitSignIn('canary password'), await submitSignIn(password)]).toEqual([303, 401])
})

test('guesses at the current password are limited across both forms', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  const email = `other-${ada.email}`
  const statuses: number[] = []
  for (let guess = 0; guess < 6; guess += 1) {
    const currentPassword = `guess ${guess}`
    statuses.push(
      (await ada.visitor.post('/profile/password', { currentPassword, password: 'canary password' })).status,
    )
    statuses.push((await ada.visitor.post('/profile', { name: 'Ada', email, passwordNow: currentPassword })).status)
  }
  expect(statuses).toEqual([...Array(10).fill(400), 429, 429])
  const right = await ada.visitor.post('/profile/password', { currentPassword: password, password: 'canary password' })
  expect([right.status, Number(right.headers['retry-after']) > 0]).toEqual([429, true])
  expect((await bo.visitor.post('/profile', { name: 'Bo', email: bo.email })).status).toBe(303)
})

test('a user without email address and password is asked for both', async () => {
  const { domain } = dashboard
  const { id } = await domain.accounts.create({ name: 'Test', scopesEnabled: false })
  const [owner] = await domain.users.list(id)
  if (!owner) throw new Error('The account has no user.')
  const visitor = new Visitor(dashboard.url)
  await visitor.post(`/links/${await domain.links.createSignInLink(owner, operator)}`)
  const page = await visitor.get('/profile')
  expect(pageText(page)).toContain('Set an email address and a password so that you can sign in without a link.')
  const email = `${crypto.randomUUID()}@example.com`
  expect((await visitor.post('/profile', { name: 'Ada', email })).status).toBe(303)
  expect((await visitor.post('/profile/password', { password })).status).toBe(303)
  expect((await new Visitor(dashboard.url).post('/sign-in', { email, password })).status).toBe(303)
})
