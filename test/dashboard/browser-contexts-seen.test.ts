/** Browser contexts and artifacts as somebody with a browser sees them, under the policy that the pages set. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { type DashboardService, signIn } from '../support/dashboard.ts'
import { until } from '../support/service.ts'
import { holdContext, serveBrowsers, stateOf } from './context-pages.ts'

let served: DashboardService
let browser: Browser

beforeAll(async () => {
  ;[served, browser] = await Promise.all([serveBrowsers(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await served.stop()
})

test('a file is uploaded, who holds the context is told live, and an image is drawn', async (context) => {
  const ada = await signIn(served)
  const page = await browser.newPage(context, { baseUrl: served.url })
  await page.context().addCookies([...ada.visitor.cookies].map(([name, value]) => ({ name, value, url: served.url })))
  await page.goto('/')
  await page.getByRole('link', { name: 'Browser Contexts' }).click()
  await page.getByRole('link', { name: 'Create browser context' }).click()
  await page.getByLabel('Name').fill('Shop')
  await page.getByRole('button', { name: 'Create browser context' }).click()
  const buffer = Buffer.from(JSON.stringify(stateOf(['shop.example'])))
  await page.getByLabel('File').setInputFiles({ name: 'state.json', mimeType: 'application/json', buffer })
  await page.getByRole('button', { name: 'Upload', exact: true }).click()
  await page.getByText('Storage state uploaded.').waitFor()

  const badge = (word: string) => page.locator('#browser-context > .badge', { hasText: word }).waitFor()
  await badge('ready')
  const { contexts } = (await served.domain.browserContexts.list(ada.accountId, { limit: 1 })) ?? { contexts: [] }
  const lease = await holdContext(served, ada, contexts[0]?.id ?? '')
  await badge('in use')
  const image = { name: 'page.png', mediaType: 'image/png', content: await page.screenshot() } as const
  await served.domain.queue.keepArtifact(lease, image, [])
  const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
  await served.domain.queue.complete(lease, { kind: 'succeeded', output: null }, retry)
  await badge('ready')

  await page.goto(`/runs/${lease.runId}`)
  await until('the image is drawn', () =>
    page.getByRole('img', { name: 'page.png' }).evaluate((drawn) => (drawn as HTMLImageElement).naturalWidth > 0),
  )
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'page.png' }).click(),
  ])
  expect([download.suggestedFilename(), await download.failure()]).toEqual(['page.png', null])
  expect(await browserErrors(page)).toEqual([])
})
