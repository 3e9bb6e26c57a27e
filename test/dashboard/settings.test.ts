/** Account settings: changed by admins, visible to all users. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, signIn, startDashboardService } from '../support/dashboard.ts'
import { control, fieldError, inputValue, pageText } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

function readAccount(id: string) {
  return dashboard.domain.accounts.get(id)
}

test('an admin can rename the account', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer' })
  const name = `Engines & "Co" <b>`
  const saved = await ada.visitor.post('/settings', { name: ` ${name} ` })
  expect(saved.headers.location).toBe('/settings?done=saved')
  const page = await ada.visitor.get('/settings?done=saved')
  expect(pageText(page)).toContain('Changes saved.')
  expect(inputValue(page, 'name')).toBe(name)
  for (const path of ['/', '/api-keys', '/profile', '/settings']) {
    const settingsPage = await bo.visitor.get(path)
    expect(pageText(settingsPage)).toContain(name)
    expect(settingsPage.text).not.toContain('<b>')
  }
  expect(await readAccount(ada.accountId)).toMatchObject({ name, scopesEnabled: false })
})

test('an invalid name is refused, and the form keeps its values', async () => {
  const ada = await signIn(dashboard)
  const before = await readAccount(ada.accountId)
  for (const name of ['', ' ', '<'.repeat(101), 'a\nb', 'a\u0001b']) {
    const refused = await ada.visitor.post('/settings', { name, scopesEnabled: 'on' })
    expect([refused.status, inputValue(refused, 'name')]).toEqual([400, name.replace('\n', '')])
    expect(fieldError(refused, 'name')).toMatch(
      /^(Enter a name\.|Use at most 100 characters\.|Remove the control characters\.)$/,
    )
    expect(control(refused, 'scopesEnabled')).toMatchObject({ checked: true })
  }
  expect(await readAccount(ada.accountId)).toEqual(before)
})

test('an admin can turn scopes on and off', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer' })
  const turn = (scopesEnabled?: string) =>
    ada.visitor.post('/settings', { name: 'Test', ...(scopesEnabled && { scopesEnabled }) })
  expect(pageText(await bo.visitor.get('/settings'))).toContain('Scopes off')
  await turn('on')
  expect(control(await ada.visitor.get('/settings'), 'scopesEnabled')).toMatchObject({ checked: true })
  expect(pageText(await bo.visitor.get('/settings'))).toContain('Scopes API keys can be limited to scopes')
  await turn()
  expect(await readAccount(ada.accountId)).toMatchObject({ scopesEnabled: false })
})

test('a member sees the settings without a form', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer' })
  const page = await bo.visitor.get('/settings')
  expect(pageText(page)).toContain(ada.accountId)
  expect(page.text).not.toContain('action="/settings"')
  expect(page.text).not.toContain('href="/settings/audit-log"')
})

test('only known values of the `done` parameter show a message', async () => {
  const { visitor } = await signIn(dashboard)
  for (const path of ['/api-keys', '/settings', '/settings/members', '/profile', '/sign-in']) {
    for (const done of ['constructor', '__proto__', 'toString', '<script>', 'hasOwnProperty', '']) {
      const page = await visitor.get(`${path}?done=${encodeURIComponent(done)}`)
      expect(page.status).toBe(200)
      expect(page.text).not.toMatch(/native code|\[object|notice good|<script>/)
    }
  }
})

test('all users see the retention periods', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer' })
  for (const { visitor } of [ada, bo]) {
    const text = pageText(await visitor.get('/settings'))
    expect(text).toContain('Finished runs kept for 90 days, artifacts for 30 days')
    expect(text).toContain('Audit log kept for 365 days')
  }
})
