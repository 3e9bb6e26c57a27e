/** `npm run screenshots`: a picture of each page of the dashboard in light, in dark and on a phone, in docs/screenshots. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { acceptWelcomeLink, inNewWindow, signIn, startDashboard } from './support/dashboard-browser.ts'
import { emptyPages, populateDashboard, type ShownPage, signedOutPages } from './support/dashboard-pages.ts'

const directory = fileURLToPath(new URL('../docs/screenshots', import.meta.url))
const workflows = fileURLToPath(new URL('../examples/workflows', import.meta.url))

const looks = [
  { look: 'light', colorScheme: 'light', width: 1200, height: 760 },
  { look: 'dark', colorScheme: 'dark', width: 1200, height: 760 },
  { look: 'phone', colorScheme: 'light', width: 390, height: 844 },
] as const

/** Enough to see what a page looks like. */
const small = { scale: 0.75 }

async function takeAll(page: Page, pages: ShownPage[]): Promise<void> {
  for (const { name, open } of pages) {
    await open(page)
    for (const { look, colorScheme, width, height } of looks) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize({ width, height })
      await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)))
      await takeOne(page, join(directory, `${name}.${look}.webp`))
    }
    process.stdout.write(`${name}\n`)
  }
}

/** As WebP, which takes half the room of PNG; Playwright itself does not offer it. */
async function takeOne(page: Page, path: string): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  await session.detach()
  writeFileSync(path, data, 'base64')
}

rmSync(directory, { recursive: true, force: true })
mkdirSync(directory)
const dashboard = await startDashboard({ WORKFLOWS_DIR: workflows })
try {
  await inNewWindow(
    dashboard.open,
    async (page) => {
      await takeAll(page, signedOutPages(dashboard.welcomeUrl))
      await acceptWelcomeLink(page, dashboard.welcomeUrl)
      await takeAll(page, emptyPages)
    },
    small,
  )
  await inNewWindow(
    dashboard.open,
    async (page) => {
      await signIn(page)
      await takeAll(page, await populateDashboard(dashboard, page))
    },
    small,
  )
} finally {
  await dashboard.stop()
}
