/** Every page of the dashboard, for everybody: in light and wide, in dark and narrower than a phone. */
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { violations } from '../support/accessibility.ts'
import { complaints } from '../support/browser.ts'
import { becomeOwner, type Dashboard, signIn, startDashboard } from '../support/dashboard-browser.ts'
import { emptyPages, fill, openPages, type ShownPage } from '../support/dashboard-pages.ts'

let dashboard: Dashboard

beforeAll(async () => {
  dashboard = await startDashboard({
    WORKFLOWS_DIR: fileURLToPath(new URL('../../examples/workflows', import.meta.url)),
  })
})

afterAll(() => dashboard.stop())

/** Rules that depend on more than the document: on what is shown, where, and in which colors. */
const ofLook = ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-name', 'button-name', 'label']

/** The second look is at all that may differ from the first. */
const looks: { look: string; colorScheme: 'light' | 'dark'; width: number; rules?: string[] }[] = [
  { look: 'light and wide', colorScheme: 'light', width: 1280 },
  // WCAG 2.2, 1.4.10: what 1280 pixels at 400 % leave; a phone has more.
  { look: 'dark, at the least width', colorScheme: 'dark', width: 320, rules: ofLook },
]

/** What is wrong with the page, in any look. */
async function faults(page: Page, { name, open }: ShownPage): Promise<string[]> {
  const found: string[] = []
  await open(page)
  for (const { look, colorScheme, width, rules } of looks) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: 800 })
    await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)))
    found.push(...(await violations(page, rules)).map((line) => `${name}, ${look}: ${line}`))
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wide > 0) found.push(`${name}, ${look}: is ${wide} px wider than the window`)
  }
  return found
}

async function faultsOf(page: Page, pages: ShownPage[]): Promise<string[]> {
  const found: string[] = []
  for (const shown of pages) found.push(...(await faults(page, shown)))
  return found
}

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

test('pages of an account with keys, members and runs have no fault', async (context) => {
  const page = await dashboard.open(context)
  await signIn(page)
  expect(await faultsOf(page, await fill(dashboard, page))).toEqual([])
  // More than thirty pages, each in four looks.
}, 120_000)
