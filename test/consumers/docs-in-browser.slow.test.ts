/** The docs in a real browser: from a folder and from a service, in light and dark, on a phone, and by keyboard. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findAccessibilityViolations } from '../support/accessibility.ts'
import { type Browser, browserErrors, type PageOptions, startBrowser } from '../support/browser.ts'
import { acceptWelcomeLink, startDashboard } from '../support/dashboard-browser.ts'
import { type DocsFolder, docsFolder, docsPages, openDocs, operationPages } from '../support/docs-pages.ts'
import type { Test } from '../support/domain.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let browser: Browser
let folder: DocsFolder

beforeAll(async () => {
  ;[service, browser, folder] = await Promise.all([startTestService({ worker: false }), startBrowser(), docsFolder()])
})

afterAll(async () => {
  await browser.close()
  await service.stop()
  folder.remove()
})

const sites: [string, () => string][] = [
  ['from a folder', () => folder.url],
  ['from the Execution API', () => `${service.executionUrl}/docs/`],
]

/** Redoc's attribution asks a CDN for a logo, which the page's policy blocks; Chromium reports that in the console. */
const redocLogo = 'https://cdn.redoc.ly/redoc/logo-mini'

const themeOf = (page: Page) =>
  page.evaluate(() => [document.documentElement.className, document.documentElement.dataset.theme])

async function openPage(test: Test, url: string, options?: PageOptions): Promise<Page> {
  const page = await browser.newPage(test, options)
  await openDocs(page, url)
  return page
}

const results = (page: Page) => page.getByRole('listbox', { name: 'Results' }).getByRole('option')

async function search(page: Page, words: string): Promise<void> {
  await page.keyboard.press('/')
  await page.keyboard.type(words)
  await results(page).first().waitFor()
}

describe.each(sites)('%s', (_place, at) => {
  test('every page is drawn without an error, a broken image, or a request to another host', async (context) => {
    const page = await browser.newPage(context)
    const requests: string[] = []
    const blocked: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    page.on('requestfailed', (request) => request.failure()?.errorText === 'csp' && blocked.push(request.url()))
    for (const { name, open } of docsPages(at())) {
      await open(page)
      const broken = await page.evaluate(() =>
        [...document.images]
          .filter(({ complete, naturalWidth, src }) => complete && naturalWidth === 0 && !src.includes('redoc'))
          .map(({ src }) => src),
      )
      expect([name, broken]).toEqual([name, []])
    }
    const { origin, protocol } = new URL(at())
    const siteUrl = protocol === 'file:' ? folder.url : origin
    const sent = requests.filter((url) => !blocked.includes(url))
    expect(sent.length).toBeGreaterThan(20)
    expect(sent.filter((url) => !url.startsWith(siteUrl) && !/^(data|blob):/.test(url))).toEqual([])
    expect(blocked.filter((url) => !url.startsWith(redocLogo))).toEqual([])
    expect((await browserErrors(page)).filter((line) => !line.includes(redocLogo))).toEqual([])
  })

  test('the search finds an operation and a section of a guide, and Enter opens it', async (context) => {
    const page = await openPage(context, `${at()}index.html`)
    await search(page, 'cancelRun')
    expect(await results(page).first().innerText()).toContain('POST /v1/execution/runs/{runId}/cancel')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/execution-runs.html#/runs/cancelrun')
    await page.locator('#redoc h2').first().waitFor()
    await search(page, 'name-taken')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/errors.html#name-taken')
    await search(page, 'leaked')
    await page.keyboard.press('Escape')
    await page.getByRole('combobox').waitFor({ state: 'hidden' })
  })

  test('an address in the reference of one page, which it was, leads to the page of its tag', async (context) => {
    const page = await browser.newPage(context)
    const moved = {
      '/runs/cancelrun': 'execution-runs.html#/runs/cancelrun',
      '/schedules/createschedule/request': 'execution-schedules.html#/schedules/createschedule',
      'operation/rotateWebhookSecret': 'execution-webhooks.html#/webhooks/rotatewebhooksecret',
      'tag/Runs': 'execution-runs.html#/runs/queueremoterun',
    }
    for (const [hash, to] of Object.entries(moved)) {
      await page.goto('about:blank')
      await page.goto(`${at()}execution.html#${hash}`)
      await page.waitForURL(`**/${to}`)
    }
    await page.goto(`${at()}browser-context.html#tag/Storage-state`)
    await page.waitForURL('**/browser-context-storage-state.html#/storage-state/getstoragestate')
  })

  test('the colour scheme is the system’s until one is chosen, which then applies to guides and reference', async (context) => {
    const page = await openPage(context, `${at()}index.html`, { dark: true })
    expect(await themeOf(page)).toEqual(['dark', 'dark'])
    await openDocs(page, `${at()}execution-schedules.html`)
    expect(await themeOf(page)).toEqual(['dark', 'dark'])
    await page.getByRole('button', { name: 'Dark colours', pressed: true }).click()
    await page.getByRole('button', { name: 'Dark colours', pressed: false }).waitFor()
    await openDocs(page, `${at()}errors.html`)
    expect(await themeOf(page)).toEqual(['light', 'light'])
    await page.getByRole('button', { name: 'Dark colours' }).click()
    await openDocs(page, `${at()}browser-context-storage-state.html`)
    expect(await themeOf(page)).toEqual(['dark', 'dark'])
  })

  test('no page scrolls sideways on a phone, and the list of guides opens with one tap', async (context) => {
    const page = await browser.newPage(context, { phone: true })
    for (const { name, open } of docsPages(at())) {
      await open(page)
      // `innerWidth` is no indication: a phone zooms out of a page that is too wide.
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect([name, width]).toEqual([name, page.viewportSize()?.width])
    }
    await openDocs(page, `${at()}index.html`)
    await page.locator('.guide-menu summary').tap()
    await page.getByRole('link', { name: 'Limits' }).first().tap()
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor()
  })

  test('without JavaScript all guides and overviews of the reference can be read', async (context) => {
    const page = await browser.newPage(context, { javaScriptEnabled: false })
    await page.goto(`${at()}index.html`)
    await page.getByRole('link', { name: 'Run life cycle' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Run life cycle' }).waitFor()
    expect(await page.getByRole('button').count()).toBe(0)
    await page.getByRole('link', { name: 'Execution API' }).first().click()
    await page.getByRole('link', { name: 'YAML' }).waitFor()
  })
})

test('every page passes the accessibility checks, in light and dark, wide and narrow', async (context) => {
  const page = await browser.newPage(context)
  const violations = await findAccessibilityViolations(page, docsPages(`${service.executionUrl}/docs/`))
  // Redoc skips a heading level between an operation and its parts.
  expect(violations.filter((line) => !line.includes(': heading-order | '))).toEqual([])
})

test('the anchor of each operation, which guides and search use, is the one in the reference', async (context) => {
  const page = await openPage(context, `${folder.url}index.html`)
  for (const { path, summary } of operationPages) {
    // Within a tag's page this changes the fragment only, which shows the operation as a load of the page does.
    await page.goto(`${folder.url}${path}`)
    await page.locator('#redoc h2', { hasText: summary }).waitFor()
    const active = page.locator('.menu-content [data-active="true"]').last()
    await expect.poll(() => active.innerText(), { message: path }).toContain(summary)
  }
})

test('the first Tab skips the bar, and code can be focused and copied by keyboard', async (context) => {
  const page = await openPage(context, `${service.executionUrl}/docs/quick-start`)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content')
  await page.keyboard.press('Enter')
  await page.waitForURL('**#main')
  await page.locator('article pre').first().focus()
  await page.keyboard.press('Tab')
  // The confirmation is shown for two seconds.
  await Promise.all([page.getByText('Copied', { exact: true }).first().waitFor(), page.keyboard.press('Enter')])
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^export API_KEY=/)
})

test('a printed guide has its text and no controls', async (context) => {
  const page = await openPage(context, `${service.executionUrl}/docs/authentication`)
  await page.emulateMedia({ media: 'print' })
  expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true)
  expect(await page.locator('.bar, .guides, .contents, .pager, .copy').filter({ visible: true }).count()).toBe(0)
})

test('the docs need no sign-in, and the dashboard links to them', async (context) => {
  const dashboard = await startDashboard()
  context.onTestFinished(() => dashboard.stop())
  const page = await dashboard.open(context)
  await page.goto('/docs/')
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Introduction')
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  await page.getByRole('link', { name: 'Docs', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Introduction' }).waitFor()
  expect(await browserErrors(page)).toEqual([])
})

test('the pages of an account’s workflows are accessible, and their search finds a workflow', async (context) => {
  const dashboard = await startDashboard()
  context.onTestFinished(() => dashboard.stop())
  const page = await dashboard.open(context)
  await acceptWelcomeLink(page, dashboard.welcomeUrl)
  const names = ['', 'greet']
  const pages = names.map((name) => ({
    name: `workflows/${name}`,
    open: (shown: Page) => shown.goto(`/docs/workflows/${name}`),
  }))
  expect(await findAccessibilityViolations(page, pages)).toEqual([])
  await page.goto('/docs/workflows/')
  await search(page, 'greet')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/docs/workflows/greet')
  expect(await browserErrors(page)).toEqual([])
})
