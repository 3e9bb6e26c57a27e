/** Accessibility of the pages that a new user sees. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findAccessibilityViolations } from '../support/accessibility.ts'
import { browserErrors } from '../support/browser.ts'
import { acceptWelcomeLink, type Dashboard, startDashboard } from '../support/dashboard-browser.ts'
import { emptyPages, exampleSettings, signedOutPages } from '../support/dashboard-pages.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard(exampleSettings)
})

afterAll(() => dashboard.stop())

test('pages for signed-out users have no violations', async (context) => {
  const page = await dashboard.open(context)
  expect(await findAccessibilityViolations(page, signedOutPages(dashboard.welcomeUrl))).toEqual([])
})

test('pages of an empty account have no violations', async (context) => {
  const page = await dashboard.open(context)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  expect(await findAccessibilityViolations(page, emptyPages)).toEqual([])
  expect(await browserErrors(page)).toEqual([])
})
