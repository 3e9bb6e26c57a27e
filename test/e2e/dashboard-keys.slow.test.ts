/** API keys on the dashboard in a browser. `test/dashboard` has the same guarantees without one. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCanaries } from '../support/canaries.ts'
import { createKey, type Dashboard, deleteKey, signIn, startDashboard } from '../support/dashboard-browser.ts'
import { until } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard({ LOG_LEVEL: 'trace' })
  await dashboard.createOwner()
})

afterAll(() => dashboard.stop())

function countKeys(page: Page): Promise<number> {
  return page.getByRole('link', { name: /^Delete / }).count()
}

test('two windows that create keys at the same time stop at five, and the page explains the limit', async (context) => {
  const windows = [await dashboard.open(context), await dashboard.open(context)]
  for (const page of windows) await signIn(page)
  const [first] = windows as [Page, Page]
  await first.goto('/api-keys')
  for (let count = await countKeys(first); count < 4; count += 1) await createKey(first, `filler ${count}`)

  for (const page of windows) await page.goto('/api-keys/new')
  for (const [index, page] of windows.entries()) await page.getByLabel('Name').fill(`window ${index}`)
  await Promise.all(windows.map((page) => page.getByRole('button', { name: 'Create API key' }).click()))
  const responses = windows.map((page) =>
    page.getByText('Copy this key now').or(page.getByText('You have reached your limit')),
  )
  for (const response of responses) await response.waitFor()
  const contents = await Promise.all(windows.map((page) => page.getByRole('main').innerText()))
  expect(contents.filter((text) => text.includes('Copy this key now'))).toHaveLength(1)
  expect(contents.filter((text) => text.includes('You have reached your limit'))).toHaveLength(1)

  await first.goto('/api-keys')
  expect(await countKeys(first)).toBe(5)
  await first.getByText('You have reached your limit').waitFor()
  for (const name of await first.locator('td strong').allInnerTexts()) await deleteKey(first, name)
})

test("a key's value appears only on the page that creates it", async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  const key = await createKey(page, 'canary')
  const showsKey = async () =>
    (await until('the page stands still', () => page.content().catch(() => ''))).includes(key)
  expect(await showsKey()).toBe(true)
  await dashboard.call(key, 'GET', '/v1/execution/runs')

  // Back, forward and reload: the browser uses its cache or asks the server.
  await page.getByRole('link', { name: 'Done' }).click()
  await page.getByRole('heading', { name: 'API Keys', exact: true }).waitFor()
  expect(await showsKey()).toBe(false)
  // A page that cannot be shown again becomes an error page after the call has failed.
  const navigate = async (go: () => Promise<unknown>) => {
    const arrived = page.waitForEvent('framenavigated', waitLimits)
    await Promise.all([arrived, go().catch(() => {})])
  }
  await navigate(() => page.goBack())
  expect(await showsKey()).toBe(false)
  await navigate(() => page.goForward())
  expect(await showsKey()).toBe(false)

  for (const path of ['/', '/api-keys', '/runs', '/settings/audit-log', '/settings/members', '/profile']) {
    await page.goto(path)
    expect(await showsKey(), path).toBe(false)
  }
  await deleteKey(page, 'canary')
  const { installation, service } = dashboard
  const metrics = await (await fetch(`${service.managementUrl}/metrics`)).text()
  const outputs: [string, Buffer | string][] = [
    ['the log', service.output()],
    ['the metrics', metrics],
  ]
  expect(findCanaries([...(await installation.contents()), ...outputs], [key])).toEqual([])
})

test('submitting a form again creates no second key and shows no value', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  const key = await createKey(page, 'once only')
  // As a reload does once the user has confirmed it.
  await page.reload()
  await page.getByText('This key was already created').waitFor()
  expect(await page.content()).not.toContain(key)
  expect(await page.getByRole('link', { name: 'Delete once only' }).count()).toBe(1)
  await deleteKey(page, 'once only')
})
