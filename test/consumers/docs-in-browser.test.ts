/** The docs as their readers have them: from a folder and from a service, in light and dark, on a phone, by keyboard. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { faultsOf } from '../support/accessibility.ts'
import { type Browser, complaints, type PageOptions, startBrowser } from '../support/browser.ts'
import { becomeOwner, startDashboard } from '../support/dashboard-browser.ts'
import { type DocsFolder, docsFolder, docsPages, openDocs, operationPages } from '../support/docs-pages.ts'
import { startTestService, type TestService } from '../support/service.ts'
import type { Test } from '../support/store.ts'

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

const places: [string, () => string][] = [
  ['from a folder', () => folder.url],
  ['from the Execution API', () => `${service.executionUrl}/docs/`],
]

const classesOf = (page: Page) =>
  page.evaluate(() => [document.documentElement.className, document.documentElement.dataset.theme])

async function opened(test: Test, url: string, options?: PageOptions): Promise<Page> {
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

describe.each(places)('%s', (_place, at) => {
  test('every page is drawn without a complaint, a broken image, or a request to another host', async (context) => {
    const page = await browser.newPage(context)
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    for (const { name, open } of docsPages(at())) {
      await open(page)
      const broken = await page.evaluate(() =>
        [...document.images]
          .filter(({ complete, naturalWidth }) => complete && naturalWidth === 0)
          .map(({ src }) => src),
      )
      expect([name, broken]).toEqual([name, []])
    }
    const { origin, protocol } = new URL(at())
    const own = protocol === 'file:' ? folder.url : origin
    expect(requests.length).toBeGreaterThan(20)
    expect(requests.filter((url) => !url.startsWith(own) && !/^(data|blob):/.test(url))).toEqual([])
    expect(await complaints(page)).toEqual([])
  })

  test('the search finds an operation and a section of a guide, and Enter leads there', async (context) => {
    const page = await opened(context, `${at()}index.html`)
    await search(page, 'cancel a run')
    expect(await results(page).first().innerText()).toContain('POST /v1/execution/runs/{runId}/cancel')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/execution.html#/runs/cancelrun')
    await page.locator('#redoc h2').first().waitFor()
    await search(page, 'name-taken')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/errors.html#name-taken')
    await search(page, 'leaked')
    await page.keyboard.press('Escape')
    await page.getByRole('combobox').waitFor({ state: 'hidden' })
  })

  test('colours are the system’s until others are chosen, which then hold for guides and reference alike', async (context) => {
    const page = await opened(context, `${at()}index.html`, { dark: true })
    expect(await classesOf(page)).toEqual(['dark', 'dark'])
    await openDocs(page, `${at()}execution.html`)
    expect(await classesOf(page)).toEqual(['dark', 'dark'])
    await page.getByRole('button', { name: 'Dark colours', pressed: true }).click()
    await page.getByRole('button', { name: 'Dark colours', pressed: false }).waitFor()
    await openDocs(page, `${at()}errors.html`)
    expect(await classesOf(page)).toEqual(['light', 'light'])
    await page.getByRole('button', { name: 'Dark colours' }).click()
    await openDocs(page, `${at()}browser-context.html`)
    expect(await classesOf(page)).toEqual(['dark', 'dark'])
  })

  test('no page scrolls sideways on a phone, and its guides are behind one tap', async (context) => {
    const page = await browser.newPage(context, { phone: true })
    for (const { name, open } of docsPages(at())) {
      await open(page)
      // Not `innerWidth`: a phone shows a page that is too wide in a smaller scale.
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      expect([name, wide]).toEqual([name, page.viewportSize()?.width])
    }
    await openDocs(page, `${at()}index.html`)
    await page.locator('.above summary').tap()
    await page.getByRole('link', { name: 'Limits' }).first().tap()
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor()
  })

  test('whoever has no JavaScript reads all guides, and is told where the contract is', async (context) => {
    const page = await browser.newPage(context, { javaScriptEnabled: false })
    await page.goto(`${at()}index.html`)
    await page.getByRole('link', { name: 'Run life cycle' }).first().click()
    await page.getByRole('img', { name: 'The life cycle of a run' }).waitFor()
    expect(await page.getByRole('button').count()).toBe(0)
    await page.getByRole('link', { name: 'Execution API' }).first().click()
    await page.getByRole('link', { name: 'YAML' }).waitFor()
  })
})

test('every page is sound for screen readers, in light and in dark, wide and at the least width', async (context) => {
  const page = await browser.newPage(context)
  const faults = await faultsOf(page, docsPages(`${service.executionUrl}/docs/`))
  // Redoc's headings leave out a level between an operation and its parts.
  expect(faults.filter((fault) => !fault.includes(': heading-order | '))).toEqual([])
})

test('the address of each operation, which guides and search lead to, is the one that the reference has', async (context) => {
  for (const { path, summary } of operationPages) {
    const page = await opened(context, `${folder.url}${path}`)
    await page.locator('#redoc h2', { hasText: summary }).waitFor()
    const marked = page.locator('.menu-content [data-active="true"]')
    expect([path, await marked.last().innerText()]).toEqual([path, expect.stringContaining(summary)])
    await page.close()
  }
})

test('the first key leads past the bar to the text, and code can be scrolled and copied without a mouse', async (context) => {
  const page = await opened(context, `${service.executionUrl}/docs/quick-start`)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content')
  await page.keyboard.press('Enter')
  await page.waitForURL('**#main')
  await page.locator('article pre').first().focus()
  await page.keyboard.press('Tab')
  // It stands there for two seconds only.
  await Promise.all([page.getByText('Copied', { exact: true }).first().waitFor(), page.keyboard.press('Enter')])
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^export API_KEY=/)
})

test('on paper there is the text, and nothing to press', async (context) => {
  const page = await opened(context, `${service.executionUrl}/docs/authentication`)
  await page.emulateMedia({ media: 'print' })
  expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true)
  expect(await page.locator('.bar, .guides, .contents, .turn, .copy').filter({ visible: true }).count()).toBe(0)
})

test('whoever signs in to the dashboard finds the docs in its frame; nobody has to sign in for them', async (context) => {
  const dashboard = await startDashboard()
  context.onTestFinished(() => dashboard.stop())
  const page = await dashboard.open(context)
  await page.goto('/docs/')
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Introduction')
  await becomeOwner(page, dashboard.welcomeUrl)
  await page.getByRole('link', { name: 'Docs', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Introduction' }).waitFor()
  expect(await complaints(page)).toEqual([])
})
