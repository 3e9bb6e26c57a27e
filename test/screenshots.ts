/** `npm run screenshots`: captures each page of the dashboard in light, dark and phone width to docs/screenshots. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { readConfig } from '../src/config/config.ts'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { openStore } from '../src/domain/installation.ts'
import type { Store } from '../src/storage/store.ts'
import { acceptWelcomeLink, type Dashboard, inNewWindow, startDashboard } from './support/dashboard-browser.ts'
import {
  emptyPages,
  exampleSettings,
  populateDashboard,
  type ShownPage,
  signedOutPages,
} from './support/dashboard-pages.ts'
import { attributeSampleHistory, writeSampleHistory } from './support/sample-history.ts'

const directory = fileURLToPath(new URL('../docs/screenshots', import.meta.url))

const variants = [
  { variant: 'light', colorScheme: 'light', width: 1200, height: 760 },
  { variant: 'dark', colorScheme: 'dark', width: 1200, height: 760 },
  { variant: 'phone', colorScheme: 'light', width: 390, height: 844 },
] as const

/** Reduces the size of the files. */
const scale = 0.75

async function capturePages(page: Page, pages: ShownPage[]): Promise<void> {
  for (const { name, open } of pages) {
    await open(page)
    for (const { variant, colorScheme, width, height } of variants) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize({ width, height })
      await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)))
      await capture(page, join(directory, `${name}.${variant}.webp`))
    }
    process.stdout.write(`${name}\n`)
  }
}

/** Uses the debugging protocol, because Playwright cannot write WebP, which is half the size of PNG. */
async function capture(page: Page, path: string): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  await session.detach()
  writeFileSync(path, data, 'base64')
}

async function withDashboard(use: (dashboard: Dashboard, page: Page) => Promise<void>): Promise<void> {
  const dashboard = await startDashboard(exampleSettings)
  try {
    await inNewWindow(dashboard.open, (page) => use(dashboard, page), { scale })
  } finally {
    await dashboard.stop()
  }
}

/** Opens the store of the running service and its only account. */
async function withStore(dashboard: Dashboard, use: (store: Store, accountId: string) => Promise<void>): Promise<void> {
  const store = await openStore(readConfig(dashboard.installation.settings))
  const [account] = await new Accounts(store).list()
  await use(store, account?.id ?? '')
  await store.close()
}

rmSync(directory, { recursive: true, force: true })
mkdirSync(directory)
await withDashboard(async ({ welcomeUrl }, page) => {
  await capturePages(page, signedOutPages(welcomeUrl))
  await acceptWelcomeLink(page, welcomeUrl)
  await capturePages(page, emptyPages)
})
await withDashboard(async (dashboard, page) => {
  await withStore(dashboard, writeSampleHistory)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  const pages = await populateDashboard(dashboard, page)
  await withStore(dashboard, attributeSampleHistory)
  await capturePages(page, pages)
})
