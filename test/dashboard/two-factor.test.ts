/** Two-factor authentication over HTTP: setting it up, signing in with it, and accounts that require it. */
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import {
  type DashboardService,
  type SignedInUser,
  signIn,
  startDashboardService,
  stopClock,
  Visitor,
} from '../support/dashboard.ts'
import { control, copied, fieldError, find, inputValue, type Markup, pageText } from '../support/html.ts'

let dashboard: DashboardService
let clock: ReturnType<typeof stopClock>

beforeAll(async () => {
  clock = stopClock({ daysAgo: 1 })
  dashboard = await startDashboardService({ PROXY_HOPS: '1' })
})

afterAll(async () => {
  await dashboard.stop()
  clock.restore()
})

let address = 0
function newBrowser(): Visitor {
  address += 1
  return new Visitor(dashboard.url, { 'X-Forwarded-For': `10.2.0.${address}` })
}

const nextStep = () => clock.advance(30_000)
const codeNow = (secret: string) => new TOTP({ secret: Secret.fromBase32(secret) }).generate()
const setUpPath = '/profile/two-factor/set-up'

/** @param currentCode of the second factor that is replaced. */
async function setUp({ visitor, password }: SignedInUser, currentCode = '') {
  const secret = inputValue(await visitor.get(setUpPath), 'secret') ?? ''
  const page = await visitor.post(setUpPath, { secret, code: codeNow(secret), currentPassword: password, currentCode })
  expect(page.status).toBe(200)
  const recoveryCodes = shownCodes(page)
  expect(recoveryCodes).toHaveLength(10)
  nextStep()
  return { secret, recoveryCodes }
}

const shownCodes = (page: Markup) => copied(page, 'Copy codes')?.split('\n') ?? []

const isSignedIn = async (visitor: Visitor) => (await visitor.get('/profile')).status === 200

/** Submits the password, and returns the form for the code. */
async function passFirstFactor(visitor: Visitor, { email, password }: SignedInUser, next = '') {
  const page = await visitor.post('/sign-in', { email, password, next })
  expect([page.status, page.headers['set-cookie']]).toEqual([200, undefined])
  return { challenge: inputValue(page, 'challenge') ?? '', next: inputValue(page, 'next') ?? '' }
}

test('a user with a second factor signs in with password and code, and each code works once', async () => {
  const ada = await signIn(dashboard)
  const other = newBrowser()
  expect((await other.post('/sign-in', { email: ada.email, password: ada.password })).status).toBe(303)
  const { secret } = await setUp(ada)
  expect([await isSignedIn(ada.visitor), await isSignedIn(other)]).toEqual([true, false])
  const form = await passFirstFactor(other, ada, '/runs?status=failed')
  expect(await isSignedIn(other)).toBe(false)
  const wrong = await other.post('/sign-in/code', { ...form, code: '000000' })
  expect([wrong.status, wrong.headers['set-cookie']]).toEqual([401, undefined])
  expect(fieldError(wrong, 'code')).toBe('This code is incorrect or was already used. Wait for the next one.')
  expect(inputValue(wrong, 'challenge')).toBe(form.challenge)
  const signedIn = await other.post('/sign-in/code', { ...form, code: codeNow(secret) })
  expect([signedIn.status, signedIn.headers.location]).toEqual([303, '/runs?status=failed'])
  expect(await isSignedIn(other)).toBe(true)
  const third = newBrowser()
  const again = await passFirstFactor(third, ada)
  expect((await third.post('/sign-in/code', { ...again, code: codeNow(secret) })).status).toBe(401)
  nextStep()
  expect((await third.post('/sign-in/code', { ...again, code: codeNow(secret) })).status).toBe(303)
  const [entry] = await dashboard.domain.auditLog.list(ada.accountId, { action: 'user.signedIn', limit: 1 })
  expect(entry?.details).toEqual({ how: 'password', secondFactor: 'code', address: `10.2.0.${address}` })
})

test('a recovery code signs in once, and the profile shows how many are left', async () => {
  const ada = await signIn(dashboard)
  const { recoveryCodes } = await setUp(ada)
  const visitor = newBrowser()
  const enter = async () =>
    visitor.post('/sign-in/code', { ...(await passFirstFactor(visitor, ada)), recoveryCode: recoveryCodes[0] ?? '' })
  expect((await enter()).status).toBe(303)
  expect(pageText(await visitor.get('/profile'))).toContain('9 of 10 recovery codes are left.')
  const refused = await enter()
  expect([refused.status, fieldError(refused, 'recoveryCode')]).toEqual([
    401,
    'This recovery code is incorrect or was already used.',
  ])
  expect(
    find(refused)
      .getByLabelText(/^Recovery code/)
      .closest('details'),
  ).toMatchObject({ open: true })
  const manage = '/profile/two-factor/recovery-codes'
  expect(fieldError(await visitor.post(manage, { currentPassword: 'wrong' }), 'currentPassword')).toBeDefined()
  const currentCode = recoveryCodes[2] ?? ''
  expect(fieldError(await visitor.post(manage, { currentPassword: ada.password }), 'currentCode')).toBeDefined()
  const replaced = await visitor.post(manage, { currentPassword: ada.password, currentCode })
  const [fresh = ''] = shownCodes(replaced)
  const form = await passFirstFactor(newBrowser(), ada)
  expect((await visitor.post('/sign-in/code', { ...form, recoveryCode: recoveryCodes[1] ?? '' })).status).toBe(401)
  expect((await visitor.post('/sign-in/code', { ...form, recoveryCode: fresh })).status).toBe(303)
})

test('a sign-in link asks for the code too', async () => {
  const ada = await signIn(dashboard)
  const { secret } = await setUp(ada)
  const user = await dashboard.domain.users.get(ada.id)
  if (!user) throw new Error('The user exists.')
  const visitor = newBrowser()
  const page = await visitor.post(`/links/${await dashboard.domain.links.createSignInLink(user, operator)}`)
  expect([page.status, page.headers['set-cookie']]).toEqual([200, undefined])
  const challenge = inputValue(page, 'challenge') ?? ''
  expect((await visitor.post('/sign-in/code', { challenge, code: codeNow(secret) })).status).toBe(303)
  const email = `${crypto.randomUUID()}@example.com`
  const stolen = await visitor.post('/profile', { name: 'Ada', email })
  expect(fieldError(stolen, 'passwordNow')).toBe('The current password is incorrect.')
  for (const [path, password] of [
    ['/profile/two-factor/remove', 'passwordNow'],
    ['/profile/two-factor/recovery-codes', 'currentPassword'],
  ] as const)
    expect([path, fieldError(await visitor.post(path, {}), password)]).toEqual([
      path,
      'The current password is incorrect.',
    ])
  // For a quarter of an hour, the link stands for a password that was forgotten.
  clock.advance(15 * 60_000)
  const late = await visitor.post('/profile/password', { password: 'another engine' })
  expect(fieldError(late, 'currentPassword')).toBe('The current password is incorrect.')
})

test('wrong codes are limited per user over all addresses', async () => {
  const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
  const [factor, other] = [await setUp(ada), await setUp(eve)]
  const form = await passFirstFactor(newBrowser(), ada)
  const enter = (code: string) => newBrowser().post('/sign-in/code', { ...form, code })
  const statuses = await Promise.all(Array.from({ length: 5 }, () => enter('000000')))
  expect(statuses.map(({ status }) => status)).toEqual(Array(5).fill(401))
  const refused = await enter(codeNow(factor.secret))
  expect([refused.status, pageText(refused)]).toEqual([429, expect.stringContaining('Too many attempts.')])
  const code = { ...(await passFirstFactor(newBrowser(), eve)), code: codeNow(other.secret) }
  expect((await newBrowser().post('/sign-in/code', code)).status).toBe(303)
})

test('a code without a valid challenge is refused, also after ten minutes or a change of the password', async () => {
  const ada = await signIn(dashboard)
  const { secret } = await setUp(ada)
  const visitor = newBrowser()
  const form = await passFirstFactor(visitor, ada)
  const change = { currentPassword: ada.password, password: 'another engine' }
  expect((await ada.visitor.post('/profile/password', change)).status).toBe(303)
  const late = await passFirstFactor(visitor, { ...ada, password: change.password })
  clock.advance(10 * 60_000)
  for (const challenge of ['', 'forged', form.challenge, late.challenge]) {
    const refused = await visitor.post('/sign-in/code', { challenge, code: codeNow(secret) })
    expect([refused.status, pageText(refused)]).toEqual([401, expect.stringContaining('Sign in again')])
  }
})

test('setting up requires the password and a right code, and keeps the secret that was scanned', async () => {
  const { visitor, password, id } = await signIn(dashboard)
  const page = await visitor.get(setUpPath)
  const secret = inputValue(page, 'secret') ?? ''
  expect(find(page).getByRole('img', { name: /QR code/ })).toBeDefined()
  expect(control(page, 'code')).toMatchObject({ autocomplete: 'one-time-code', inputMode: 'numeric' })
  expect(inputValue(await visitor.get(setUpPath), 'secret')).not.toBe(secret)
  const code = codeNow(secret)
  for (const [form, member] of [
    [{ code, currentPassword: 'wrong' }, 'currentPassword'],
    [{ code: '000000', currentPassword: password }, 'code'],
  ] as const) {
    const refused = await visitor.post(setUpPath, { secret, ...form })
    expect([refused.status, inputValue(refused, 'secret')]).toEqual([400, secret])
    expect(fieldError(refused, member)).toBeDefined()
  }
  expect((await visitor.post(setUpPath, { secret: 'A', code, currentPassword: password })).status).toBe(400)
  expect((await dashboard.domain.users.get(id))?.hasSecondFactor).toBe(false)
})

test('removing it requires the password and a code', async () => {
  const ada = await signIn(dashboard)
  const { secret } = await setUp(ada)
  const remove = (passwordNow: string, codeNow: string) =>
    ada.visitor.post('/profile/two-factor/remove', { passwordNow, codeNow })
  expect(fieldError(await remove('wrong', codeNow(secret)), 'passwordNow')).toBe('The current password is incorrect.')
  expect(fieldError(await remove(ada.password, '000000'), 'codeNow')).toMatch(/^Enter a code of your present app/)
  expect((await remove(ada.password, codeNow(secret))).headers.location).toBe('/profile?done=removed')
  expect((await newBrowser().post('/sign-in', { email: ada.email, password: ada.password })).status).toBe(303)
})

test('an account that requires it leads every user to set it up before anything else', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
  const settings = { name: 'Test', secondFactorRequired: 'on' }
  expect((await bo.visitor.post('/settings', settings)).status).toBe(403)
  expect((await ada.visitor.post('/settings', settings)).headers.location).toBe('/settings?done=saved')
  for (const visitor of [ada.visitor, bo.visitor]) {
    for (const path of ['/', '/runs', '/runs/changes', '/profile', '/settings']) {
      expect([path, (await visitor.get(path)).headers.location]).toEqual([path, setUpPath])
    }
    const post = await visitor.post('/profile/password', { currentPassword: bo.password, password: 'another engine' })
    expect(post.headers.location).toBe(setUpPath)
    expect(pageText(await visitor.get(setUpPath))).toContain('Test requires two-factor authentication.')
  }
  const first = await setUp(bo)
  const secret = inputValue(await bo.visitor.get(setUpPath), 'secret') ?? ''
  expect([await isSignedIn(bo.visitor), await isSignedIn(ada.visitor)]).toEqual([true, false])
  const refused = await bo.visitor.post('/profile/two-factor/remove', { passwordNow: bo.password })
  expect([refused.status, pageText(refused)]).toEqual([403, expect.stringContaining('requires two-factor')])
  // Another app can replace the present one, with a code of it or a recovery code.
  const taken = await bo.visitor.post(setUpPath, { secret, code: codeNow(secret), currentPassword: bo.password })
  expect([taken.status, fieldError(taken, 'currentCode')]).toEqual([400, expect.stringContaining('recovery code')])
  const second = await setUp(bo, codeNow(first.secret))
  await setUp(bo, second.recoveryCodes[0])
  expect((await ada.visitor.post('/sign-out')).status).toBe(303)
})
