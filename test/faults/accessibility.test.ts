/** What a newcomer sees of the dashboard, for everybody. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf } from '../support/accessibility.ts'
import { complaints } from '../support/browser.ts'
import { becomeOwner, type Dashboard, startDashboard } from '../support/dashboard-browser.ts'
import { emptyPages, openPages } from '../support/dashboard-pages.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard({
    WORKFLOWS_DIR: fileURLToPath(new URL('../../examples/workflows', import.meta.url)),
  })
})

afterAll(() => dashboard.stop())

test('pages for whoever is not signed in have no fault', async (context) => {
  const page = await dashboard.open(context)
  expect(await faultsOf(page, openPages(dashboard.welcomeUrl))).toEqual([])
})

test('pages of an account in which nothing has happened have no fault', async (context) => {
  const page = await dashboard.open(context)
  await becomeOwner(page, dashboard.welcomeUrl)
  expect(await faultsOf(page, emptyPages)).toEqual([])
  expect(await complaints(page)).toEqual([])
})
