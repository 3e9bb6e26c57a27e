/** The form of a schedule in a browser: the next times while they are typed, and editing the variables in fields. */
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

test('the next times, or what is wrong with the entered ones, are shown while they are typed', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.goto('/schedules/new?workflowId=count-words')
  const times = page.getByRole('status', { name: 'Next times' })
  const cron = page.getByLabel('Cron expression')
  expect(await times.innerText()).toBe('')
  await cron.pressSequentially('0 0 29 2 *')
  await times.getByText('Feb 29').nth(4).waitFor()
  await page.getByLabel('Time zone').fill('Europe/Berlin')
  await times.getByText('Feb 28').nth(4).waitFor()
  expect(await times.getByText('Feb 29').count()).toBe(0)
  await cron.fill('0 25 29 2 *')
  await times.getByText('has 25 as the hour').waitFor()
  expect(await times.getByText('Feb').count()).toBe(0)
  await cron.fill('0 0 29 2')
  await times.getByText('Enter five fields').waitFor()
  await cron.fill('')
  await page.getByLabel('Or an interval, in seconds').fill('3600')
  await expect.poll(() => times.locator('relative-time').count()).toBe(5)
  await page.getByLabel('Or an interval, in seconds').fill('1')
  await times.getByText('Enter a whole number').waitFor()
  expect(await browserErrors(page)).toEqual([])
})

test('a schedule is edited in fields and as JSON, without and with scripts, on accessible pages', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  await page.goto('/schedules/new?workflowId=count-words')
  await page.locator('[name="variable-path"]').fill('LICENSE')
  await page.getByLabel('Or an interval, in seconds').fill('3600')
  await page.getByRole('button', { name: 'Create schedule' }).click()
  await page.getByText('Schedule created.').waitFor()
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  const path = page.locator('[name="variable-path"]')
  expect(await path.inputValue()).toBe('LICENSE')
  expect(await violations(page)).toEqual([])
  await path.fill('README.md')
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('"path": "README.md"').waitFor()

  const withoutScripts = await dashboard.open(context, { javaScriptEnabled: false, phone: true })
  await signIn(withoutScripts)
  await withoutScripts.goto(`${new URL(page.url()).pathname}/edit`)
  await withoutScripts.getByRole('link', { name: 'Edit as JSON' }).click()
  const variables = withoutScripts.getByRole('textbox', { name: 'Variables' })
  expect(JSON.parse(await variables.inputValue())).toEqual({ path: 'README.md' })
  await variables.fill('{"path": "LICENSE", "top": 3}')
  await withoutScripts.getByRole('button', { name: 'Save changes' }).click()
  await withoutScripts.getByText('"top": 3').waitFor()
  await page.goto(`${new URL(page.url()).pathname}/edit?as=json`)
  expect(await violations(page)).toEqual([])
  expect(await browserErrors(page)).toEqual([])
})
