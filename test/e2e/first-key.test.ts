/** The first steps of a new user: from the link that the first start prints to a finished run. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { browserErrors } from '../support/browser.ts'
import { acceptWelcomeLink, createKey, type Dashboard, startDashboard } from '../support/dashboard-browser.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard()
})

afterAll(() => dashboard.stop())

test('the first link leads to an owner, a key, and a run that finishes on the live page', async (context) => {
  const page = await dashboard.open(context)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  const key = await createKey(page, 'nightly import')
  expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  // The command on the page works.
  const command = await page.locator('#key-command').innerText()
  const [, url = '', shownKey = '', json = ''] =
    /^curl -X PUT '?(\S+?)'? .*Bearer ([^']+)'.*-d '(.+)'$/s.exec(command) ?? []
  expect(shownKey).toBe(key)
  expect((await dashboard.call(key, 'PUT', new URL(url).pathname, JSON.parse(json))).status).toBe(202)

  const file = join(dashboard.installation.dataDirectory, randomUUID())
  const path = '/v1/execution/queue-remote/hold'
  const queued = await dashboard.call(key, 'PUT', path, { variableData: { file } })
  expect(queued.status).toBe(202)
  const { id } = queued.body as { id: string }

  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.locator(`a[href="/runs/${id}"]`).first().click()
  await page.locator('.badge', { hasText: 'running' }).first().waitFor()
  const status = await page.getByRole('status').filter({ hasText: 'Running' }).elementHandle()
  expect(await page.title()).toMatch(/^Running · Hold/)
  await page.evaluate(() => Object.assign(globalThis, { isSamePage: true }))
  writeFileSync(file, '')
  await page.locator('.badge', { hasText: 'succeeded' }).first().waitFor()
  expect(await page.evaluate(() => 'isSamePage' in globalThis)).toBe(true)
  // Assistive technology announces changes only in an element that stays.
  expect(await status?.innerText()).toBe('Succeeded')
  expect(await page.title()).toMatch(/^Succeeded · Hold/)
  expect(await page.locator('link[rel=icon]').getAttribute('href')).toMatch(/icon-good\.svg$/)
  expect(await page.getByRole('main').innerText()).toContain('Released')
  expect(await browserErrors(page)).toEqual([])

  expect((await page.goto(dashboard.welcomeUrl))?.status()).toBe(410)
  await page.getByRole('heading', { name: 'This link is no longer valid' }).waitFor()
})
