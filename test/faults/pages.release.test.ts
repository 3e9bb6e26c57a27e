/** Accessibility and layout of every page of an account with data: light and wide, dark and narrow. */
import { expect, test } from 'vitest'
import { findAccessibilityViolations } from '../support/accessibility.ts'
import { acceptWelcomeLink, startDashboard } from '../support/dashboard-browser.ts'
import { exampleSettings, populateDashboard } from '../support/dashboard-pages.ts'

// Some sixty pages, each in two variants.
test('pages of an account with keys, members and runs have no violations', { timeout: 600_000 }, async (context) => {
  const dashboard = await startDashboard(exampleSettings)
  context.onTestFinished(() => dashboard.stop())
  const page = await dashboard.open(context)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  expect(await findAccessibilityViolations(page, await populateDashboard(dashboard, page))).toEqual([])
})
