/** The browser of other tests: it reports problems of a page, isolates pages, and leaves no process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest'
import { violations } from '../support/accessibility.ts'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const pages: Record<string, string> = {
  '/': '<link rel="stylesheet" href="/style.css"><main><h1>Good</h1><p>A page.</p></main>',
  '/style.css': 'body { color: #222; background: #fff } button { padding: 0; border: 0; width: 9px; height: 9px }',
  '/hard-to-use': `<link rel="stylesheet" href="/style.css">
    <main><h1>Bad</h1><img src="data:,"><button>a</button><button>b</button></main>`,
  '/refused': '<main><h1>Refused</h1></main><script>document.title = "Run"</script>',
  '/broken': '<main><h1>Broken</h1></main><script src="/broken.js"></script><script src="/missing.js"></script>',
  '/broken.js': 'console.warn("Take care.")\nthrow new Error("Out of paper.")',
}

const server = createServer(({ url = '' }, response) => {
  const page = pages[url]
  const type = { css: 'text/css', js: 'text/javascript' }[url.split('.')[1] ?? ''] ?? 'text/html; charset=utf-8'
  const text = type.startsWith('text/html') ? `<!doctype html><html lang="en"><title>A page</title>${page}` : page
  response.writeHead(page === undefined ? 404 : 200, {
    'Content-Type': type,
    'Content-Security-Policy': "default-src 'self'; img-src data:; require-trusted-types-for 'script'",
  })
  response.end(text)
})

let browser: Browser
let baseUrl: string

beforeAll(async () => {
  browser = await startBrowser()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  await browser.close()
  server.close()
})

async function open(test: TestContext, path: string) {
  const page = await browser.newPage(test, { baseUrl })
  await page.goto(path)
  return page
}

test('a correct page has no violations and no complaints, under a strict policy', async (test) => {
  const page = await open(test, '/')
  expect(await page.getByRole('heading').innerText()).toBe('Good')
  expect(await violations(page)).toEqual([])
  expect(await browserErrors(page)).toEqual([])
})

test('an accessibility violation is reported with its rule, element and reason', async (test) => {
  const page = await open(test, '/hard-to-use')
  expect(await violations(page)).toEqual([
    expect.stringMatching(/^image-alt \| img \| <img src="data:,"> \| Images must have alternative text \| Fix/),
    expect.stringMatching(/^target-size \| button:nth-child\(3\) \| /),
    expect.stringMatching(/^target-size \| button:nth-child\(4\) \| /),
  ])
})

test('a violation of the content security policy is blocked and reported', async (test) => {
  const page = await open(test, '/refused')
  expect(await page.title()).toBe('A page')
  expect(await browserErrors(page)).toEqual([expect.stringContaining('Executing inline script violates')])
})

test('warnings, uncaught errors and missing files are reported', async (test) => {
  const page = await open(test, '/broken')
  const errors = await browserErrors(page)
  expect(errors.toSorted()).toEqual([
    expect.stringMatching(/^console error: .*404.*missing\.js/),
    `console warning: Take care. (${baseUrl}/broken.js:1)`,
    expect.stringContaining('uncaught: Error: Out of paper.'),
  ])
})

test('each page has its own profile', async (test) => {
  const page = await open(test, '/')
  const other = await open(test, '/')
  await page.evaluate(() => {
    // biome-ignore lint/suspicious/noDocumentCookie: the cookie is what pages could share.
    document.cookie = 'seen=1'
  })
  expect([await page.evaluate('document.cookie'), await other.evaluate('document.cookie')]).toEqual(['seen=1', ''])
})

test('a page can emulate a phone, dark mode, a time zone and reduced motion', async (test) => {
  const page = await browser.newPage(test, {
    baseUrl,
    phone: true,
    dark: true,
    reducedMotion: true,
    timezone: 'Pacific/Auckland',
  })
  await page.goto('/')
  const seen = await page.evaluate(() => ({
    width: screen.width,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    calm: matchMedia('(prefers-reduced-motion: reduce)').matches,
    hour: new Date('2026-01-01T00:00:00Z').getHours(),
  }))
  expect(seen).toEqual({ width: 390, dark: true, calm: true, hour: 13 })
})

test('a page can be viewed without JavaScript', async (test) => {
  const page = await browser.newPage(test, { baseUrl, javaScriptEnabled: false })
  await page.goto('/broken')
  expect(await page.getByRole('heading').innerText()).toBe('Broken')
  expect(await browserErrors(page)).toEqual([])
  await expect(violations(page)).rejects.toThrow('axe-core needs timers')
})

test.for(['http://example.com/', 'http://192.0.2.1/'])(
  'requests to other machines are blocked: %s',
  async (url, test) => {
    const page = await browser.newPage(test)
    await expect(page.goto(url)).rejects.toThrow('net::ERR_NAME_NOT_RESOLVED')
  },
)

test('no process of the browser outlives the killed process that started it', async (test) => {
  // A killed process leaves its profile behind.
  const directory = temporaryDirectory()
  test.onTestFinished(() => removeDirectory(directory))
  const module = fileURLToPath(new URL('../support/browser-process.ts', import.meta.url))
  const child = fork(module, { execArgv: [], env: { ...process.env, TMPDIR: directory } })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  const [processes] = (await once(child, 'message')) as [{ type: string; id: number }[]]
  expect(processes.map(({ type }) => type)).toEqual(expect.arrayContaining(['browser', 'renderer']))
  child.kill('SIGKILL')
  await Promise.all(processes.map(({ id }) => waitForProcessEnd(id)))
})
