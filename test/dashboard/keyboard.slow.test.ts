/** The dashboard by keyboard alone: skipping to the content, the command menu, and the colours shared with the docs. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { violations } from '../support/accessibility.ts'
import { browserErrors } from '../support/browser.ts'
import { type Dashboard, signIn, startDashboard } from '../support/dashboard-browser.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard()
  await dashboard.createOwner()
})

afterAll(() => dashboard.stop())

const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent?.trim())

test('the first Tab of each page reaches the link that skips to the content', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of ['/', '/runs', '/api-keys', '/settings', '/profile']) {
    await page.goto(path)
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to content')
  }
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true)
})

test('on a phone, the row of tabs is scrolled to the current one, and the page is not wider than the screen', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.setViewportSize({ width: 390, height: 844 })
  for (const name of ['Overview', 'Settings']) {
    await page.goto(name === 'Overview' ? '/' : '/settings')
    const { x = -1, width = 0 } = (await page.getByRole('link', { name, exact: true }).first().boundingBox()) ?? {}
    expect([x >= 0, x + width <= 390]).toEqual([true, true])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  }
})

test('Ctrl-K opens a menu that finds a page and opens it, and Escape returns to where the focus was', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.getByRole('link', { name: 'Workflows', exact: true }).focus()
  await page.keyboard.press('Control+k')
  const input = page.getByRole('combobox', { name: 'Go to' })
  await page.getByRole('option', { name: 'API Keys' }).waitFor()
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')
  await input.waitFor({ state: 'hidden' })
  expect(await focused(page)).toBe('Workflows')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('settings')
  await page.getByRole('option', { name: /^Members/ }).waitFor()
  await page.getByRole('option', { name: /^Overview/ }).waitFor({ state: 'detached' })
  const active = () =>
    input.evaluate((field) => document.getElementById(field.getAttribute('aria-activedescendant') ?? '')?.textContent)
  expect(await active()).toBe('SettingsPage')
  await page.keyboard.press('ArrowDown')
  expect(await active()).toBe('MembersPage')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/settings/members')
  expect(await browserErrors(page)).toEqual([])
})

test('Enter in the menu waits for the destinations of the text', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.keyboard.press('Control+k')
  await page.getByRole('option', { name: 'API Keys' }).waitFor()
  const { promise: pressed, resolve: continueSearch } = Promise.withResolvers<void>()
  await page.route('**/go-to?search=members', async (route) => {
    await pressed
    await route.continue()
  })
  await page.keyboard.type('members')
  await page.keyboard.press('Enter')
  continueSearch()
  await page.waitForURL('**/settings/members')
})

test('the switch for colours applies to the docs, too, and to the next page', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.emulateMedia({ colorScheme: 'light' })
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme)
  expect(await theme()).toBe('light')
  await page.getByRole('button', { name: 'Dark colours' }).press('Enter')
  expect(await theme()).toBe('dark')
  await page.goto('/docs/')
  expect(await theme()).toBe('dark')
  await page.getByRole('link', { name: 'Dashboard', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await theme()).toBe('dark')
})
