/** Watching the browser of a run, from the dashboard to the page that a worker's browser shows. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, type TestContext, test } from 'vitest'
import { type Browser, browserErrors, startBrowser, testBrowser } from '../support/browser.ts'
import { signIn } from '../support/dashboard.ts'
import { removeDirectory, until } from '../support/service.ts'
import { moduleText } from '../support/worker.ts'
import { clientOf, ownInstallation, queue, untilStatus } from './caller.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const animated = `<!doctype html><title>Animated</title><body><script>
  setInterval(() => { document.body.style.background = 'rgb(' + (performance.now() / 10 % 255 | 0) + ', 90, 90)' }, 20)
</script>`

/** Opens two tabs, of which the second is animated, and waits until a file is there. */
const browse = moduleText(
  'browse-long',
  `browser: true, timeLimitSeconds: 300, retry: { maxAttempts: 2, backoffSeconds: 0 },
  variables: { type: 'object', properties: { until: { type: 'string' } } },
  run: async ({ browser, variables, attempt }) => {
    const { existsSync } = await import('node:fs')
    const context = await browser()
    await (await context.newPage()).goto('data:text/html,first')
    const page = await context.newPage()
    await page.goto('data:text/html,' + encodeURIComponent(${JSON.stringify(animated)}))
    while (!existsSync(variables.until)) await page.waitForTimeout(50)
    return attempt
  }`,
)

/** A dashboard and a worker in processes of their own, a run that browses, and its page for a signed-in user. */
async function watchRun(context: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'execution-service-'))
  onTestFinished(() => removeDirectory(directory))
  writeFileSync(join(directory, 'browse-long.ts'), browse)
  const { executable } = await testBrowser()
  const settings = { WORKFLOWS_DIR: directory, BROWSER_PATH: executable, LEASE_SECONDS: '3', WORKFLOW_MEMORY_MB: '256' }
  const installation = await ownInstallation(context, settings)
  const [service, worker] = await Promise.all([
    installation.startOnly('execution,dashboard'),
    installation.startOnly('worker'),
  ])
  const account = await installation.createAccount()
  const client = clientOf(service, account.key)
  const release = join(directory, 'release')
  const { run } = await queue(client, 'browse-long', { until: release })
  await untilStatus(client, run, 'running')
  const user = await signIn({ ...service, settings: installation.settings }, { accountId: account.id })
  const page = await browser.newPage(context, { baseUrl: service.dashboardUrl })
  const cookies = [...user.visitor.cookies].map(([name, value]) => ({ name, value, url: service.dashboardUrl }))
  await page.context().addCookies(cookies)
  await page.goto(`/runs/${run.id}`)
  return {
    installation,
    worker,
    user,
    page,
    end: async () => {
      writeFileSync(release, '')
      return untilStatus(client, run, 'succeeded')
    },
  }
}

const frameOf = (page: Page) => page.locator('[data-frame]').getAttribute('src')

/** Waits until the page shows this many further frames. */
async function untilFrames(page: Page, count: number): Promise<void> {
  let last = await frameOf(page)
  for (let seen = 0; seen < count; seen++) {
    last = await until('the page shows another frame', async () => {
      const frame = await frameOf(page)
      return frame !== null && frame !== last && frame
    })
  }
}

test('a member watches the browser of a run that another process executes', async (context) => {
  const { page, user, end } = await watchRun(context)
  expect(await page.locator('[data-frame]').isVisible()).toBe(false)
  await page.getByRole('button', { name: 'Watch live' }).click()
  await untilFrames(page, 5)
  expect(await page.locator('[data-tabs] li').allTextContents()).toEqual(['data:text/html,first', expect.any(String)])
  expect(await page.locator('[data-address]').textContent()).toContain('Animated')
  const size = await page.locator('[data-frame]').evaluate((image) => (image as HTMLImageElement).naturalWidth)
  expect(size).toBeGreaterThan(500)
  await page.getByRole('button', { name: 'Stop watching' }).click()
  await page.getByRole('button', { name: 'Watch live' }).click()
  await untilFrames(page, 1)
  const log = await user.visitor.get('/settings/audit-log')
  expect(log.text.split('watched the browser of a run').length - 1, 'one entry, and the filter').toBe(2)
  await end()
  await page.locator('#live-view').waitFor({ state: 'detached' })
  expect(await browserErrors(page)).toEqual([])
})

test('a viewer is told that the worker was killed, and sees the next attempt', async (context) => {
  const { installation, page, worker, end } = await watchRun(context)
  await page.getByRole('button', { name: 'Watch live' }).click()
  await untilFrames(page, 1)
  await worker.killAll()
  await page.getByText('The connection to the browser has ended.').waitFor()
  expect(await frameOf(page)).toBe(null)
  await installation.startOnly('worker')
  await untilFrames(page, 2)
  await end()
})
