/** Browser contexts and artifacts in a real browser, under the Content-Security-Policy of the pages. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { type DashboardService, signIn } from '../support/dashboard.ts'
import { until } from '../support/service.ts'
import { createState, leaseContext, startBrowserDashboard } from './browser-context-helpers.ts'

let dashboard: DashboardService
let browser: Browser

beforeAll(async () => {
  ;[dashboard, browser] = await Promise.all([startBrowserDashboard(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await dashboard.stop()
})

test('the dashboard uploads a storage state, updates the status of a run live, and shows an image artifact', async (context) => {
  const ada = await signIn(dashboard)
  const page = await browser.newPage(context, { baseUrl: dashboard.url })
  await page
    .context()
    .addCookies([...ada.visitor.cookies].map(([name, value]) => ({ name, value, url: dashboard.url })))
  await page.goto('/')
  await page.getByRole('link', { name: 'Browser Contexts' }).click()
  await page.getByRole('link', { name: 'Create browser context' }).click()
  await page.getByLabel('Name').fill('Shop')
  await page.getByRole('button', { name: 'Create browser context' }).click()
  const buffer = Buffer.from(JSON.stringify(createState(['shop.example'])))
  await page.getByLabel('File').setInputFiles({ name: 'state.json', mimeType: 'application/json', buffer })
  await page.getByRole('button', { name: 'Upload', exact: true }).click()
  await page.getByText('Storage state uploaded.').waitFor()

  const badge = (word: string) => page.locator('#browser-context > .badge', { hasText: word }).waitFor()
  await badge('ready')
  const { contexts } = (await dashboard.domain.browserContexts.list(ada.accountId, { limit: 1 })) ?? { contexts: [] }
  const lease = await leaseContext(dashboard, ada, contexts[0]?.id ?? '')
  await badge('in use')
  const image = { name: 'page.png', mediaType: 'image/png', content: await page.screenshot() } as const
  await dashboard.domain.queue.keepArtifact(lease, image, [])
  const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
  await dashboard.domain.queue.complete(lease, { kind: 'succeeded', output: null }, retry)
  await badge('ready')

  await page.goto(`/runs/${lease.runId}`)
  await until('the image is displayed', () =>
    page.getByRole('img', { name: 'page.png' }).evaluate((element) => (element as HTMLImageElement).naturalWidth > 0),
  )
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'page.png' }).click(),
  ])
  expect([download.suggestedFilename(), await download.failure()]).toEqual(['page.png', null])
  expect(await browserErrors(page)).toEqual([])
})
