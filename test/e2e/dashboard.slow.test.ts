/** The dashboard in a browser. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKey, type Dashboard, deleteKey, owner, signIn, startDashboard } from '../support/dashboard-browser.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard({ LOG_LEVEL: 'trace' })
  await dashboard.createOwner()
})

afterAll(() => dashboard.stop())

test('a form on another site has no effect', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  const target = `${dashboard.service.dashboardUrl}/api-keys/new`
  const form = `<form method="post" action="${target}"><input name="name" value="planted"><button>Win a prize</button></form>`
  const site = createServer((_request, response) => response.setHeader('Content-Type', 'text/html').end(form))
  context.onTestFinished(() => void site.close())
  await once(site.listen(0, '127.0.0.1'), 'listening')
  const { port } = site.address() as AddressInfo
  // Another host, and the same host with another port, to which the browser sends the cookie, too.
  for (const host of ['localhost', '127.0.0.1']) {
    await page.goto(`http://${host}:${port}/`)
    await page.getByRole('button', { name: 'Win a prize' }).click()
    await page.getByText('This form was submitted from another site').waitFor()
  }
  await page.goto('/api-keys')
  expect(await page.getByRole('main').innerText()).not.toContain('planted')
})

test('after signing out, the back button shows nothing', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.goto('/settings/members')
  const cookies = await page.context().cookies()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are signed out').waitFor()
  await page.goBack()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  // The old cookie is of no use.
  await page.context().addCookies(cookies)
  await page.goto('/settings/members')
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  expect(page.url()).toContain('/sign-in?next=%2Fsettings%2Fmembers')
})

test('an invited member joins and works, and their key is refused once they are removed', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.goto('/settings/members')
  await page.getByRole('link', { name: 'Invite member' }).click()
  await page.getByLabel('For').fill('Grace')
  await page.getByLabel('Role').selectOption('developer')
  await page.getByRole('button', { name: 'Create invitation' }).click()
  const link = await page.locator('#link').innerText()

  const other = await dashboard.open(context)
  await other.goto(link)
  await other.getByLabel('Name').fill('Grace Hopper')
  await other.getByLabel('Email').fill('grace@example.com')
  await other.getByLabel('Password').fill('nanoseconds of wire')
  await other.getByRole('button', { name: 'Join' }).click()
  const key = await createKey(other, 'compiler')
  expect((await dashboard.call(key, 'GET', '/v1/execution/workflows')).status).toBe(200)

  await page.goto('/settings/members')
  await page.getByRole('link', { name: 'Remove Grace Hopper' }).click()
  await page.getByText('This API key is deleted too.').waitFor()
  await page.getByText('compiler').waitFor()
  await page.getByRole('button', { name: 'Remove Grace Hopper' }).click()
  await page.getByText('Their sessions and API keys no longer work').waitFor()
  expect((await dashboard.call(key, 'GET', '/v1/execution/workflows')).status).toBe(401)
  await other.goto('/api-keys')
  await other.getByRole('button', { name: 'Sign in' }).waitFor()
})

test('dates are in the user’s time zone', async (context) => {
  const shownTimes: string[] = []
  for (const timezone of ['Asia/Tokyo', 'America/New_York']) {
    const page = await dashboard.open(context, { timezone })
    await signIn(page)
    await page.goto('/settings/audit-log')
    const moment = page.locator('relative-time').first()
    const at = new Date((await moment.getAttribute('datetime')) ?? '')
    const hour = new Intl.DateTimeFormat('en-US', { timeZone: timezone, hour: '2-digit', minute: '2-digit' }).format(at)
    const text = await moment.evaluate((element) => element.shadowRoot?.textContent ?? '')
    expect(text.replaceAll(/\s/g, ' ')).toContain(hour.replaceAll(/\s/g, ' ').split(' ')[0])
    shownTimes.push(text)
  }
  expect(shownTimes[0]).not.toBe(shownTimes[1])
})

test('everything can be done without JavaScript', async (context) => {
  const page = await dashboard.open(context, { javaScriptEnabled: false })
  await signIn(page)
  const key = await createKey(page, 'no script')
  expect((await dashboard.call(key, 'GET', '/v1/execution/workflows')).status).toBe(200)
  await page.goto('/api-keys')
  expect(await page.getByRole('main').innerText()).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
  await deleteKey(page, 'no script')
  await page.goto('/workflows')
  await page.getByRole('link', { name: 'Greet somebody' }).first().click()
  await page.getByLabel(/^name/i).fill('Ada')
  await page.getByRole('button', { name: /queue/i }).click()
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/)
})

test('a key can be created and deleted with the keyboard alone', async (context) => {
  const page = await dashboard.open(context)
  await page.goto('/sign-in')
  await untilFocused(page, 'Email')
  await page.keyboard.type(owner.email)
  await page.keyboard.press('Tab')
  await page.keyboard.type(owner.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await tabTo(page, 'API Keys')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'API Keys', exact: true }).waitFor()
  await tabTo(page, 'Create API key')
  await page.keyboard.press('Enter')
  await untilFocused(page, 'Name')
  await page.keyboard.type('by keyboard')
  await page.keyboard.press('Enter')
  await page.getByText('Copy this key now').waitFor()
  await tabTo(page, 'Done')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'API Keys', exact: true }).waitFor()
  await tabTo(page, 'Delete by keyboard')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: /^Delete/ }).waitFor()
  await tabTo(page, 'Delete key')
  await page.keyboard.press('Enter')
  await page.getByText('Programs that used it no longer have access').waitFor()
})

/** A page gets its first focus with its first frame, which may come after its load event. */
function untilFocused(page: Page, label: string): Promise<void> {
  return page.getByLabel(label).and(page.locator(':focus')).waitFor()
}

const stopsMax = 60

/** Presses Tab until the named element has the focus; fails when it cannot be reached. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const matches = (text: string) => (typeof name === 'string' ? text === name : name.test(text))
  for (let stop = 0; stop < stopsMax; stop += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement
      return (element?.getAttribute('aria-label') ?? element?.textContent ?? '').trim()
    })
    if (matches(focused)) return
  }
  throw new Error(`The keyboard does not reach "${name}".`)
}
