/** Accessibility and layout of every page of an account with data: light and wide, dark and narrow. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { findAccessibilityViolations } from '../support/accessibility.ts'
import { acceptWelcomeLink, startDashboard } from '../support/dashboard-browser.ts'
import { populateDashboard } from '../support/dashboard-pages.ts'

test('pages of an account with keys, members and runs have no violations', async (context) => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
  const dashboard = await startDashboard({ WORKFLOWS_DIR })
  context.onTestFinished(() => dashboard.stop())
  const page = await dashboard.open(context)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  expect(await findAccessibilityViolations(page, await populateDashboard(dashboard, page))).toEqual([])
})
