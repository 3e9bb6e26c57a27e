/**
 * Runs a real browser for tests: Chromium without a window, a fresh profile for each page, and no network but this
 * machine's own. It ends with the process that started it, because it ends when its pipe to that process does.
 */
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { bundled, type FoundBrowser, findBrowser } from '../../src/worker/browser/find-browser.ts'
import type { Test } from './domain.ts'
import { waitLimits } from './timeouts.ts'

export interface PageOptions {
  /** What `page.goto('/…')` is relative to. */
  baseUrl?: string
  /** The dark color scheme is preferred; the light one otherwise. */
  dark?: boolean
  /** A phone's window, 390×844, with touch; 1280×720 otherwise. */
  phone?: boolean
  javaScriptEnabled?: boolean
  /** IANA name of the time zone; UTC otherwise, wherever the machine is. */
  timezone?: string
  reducedMotion?: boolean
  /** Device pixels for each CSS pixel; 1, and 3 on a phone, otherwise. */
  scale?: number
}

export interface Browser {
  /** A page in a profile of its own, which is closed when the test ends. */
  newPage(test: Test, options?: PageOptions): Promise<Page>
  close(): Promise<void>
}

// A name that is mapped to nothing is not looked up, and an address that is mapped to nothing is not called.
const hosts = 'MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]'

/** Beside Playwright's own, which give it a fresh profile, and neither updates nor anything else in the background. */
const flags = [
  `--host-resolver-rules=${hosts}`,
  '--no-proxy-server',
  '--no-pings',
  '--disable-domain-reliability',
  '--disable-quic',
  // Letters are as wide as their font says, on every machine.
  '--font-render-hinting=none',
]

/** An installed one only where BROWSER_PATH names it: layout and pictures are the same wherever npm's own is used. */
export function testBrowser(): Promise<FoundBrowser> {
  const { BROWSER_PATH } = process.env
  return BROWSER_PATH ? findBrowser(BROWSER_PATH) : bundled()
}

/** The first start after an installation unpacks the browser, which takes some seconds; others take a tenth of one. */
export async function startBrowser(): Promise<Browser> {
  const { executable, environment } = await testBrowser()
  const browser = await chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...environment },
    args: flags,
    // Root cannot have a sandbox, and neither can most containers; the pages are the tests' own.
    chromiumSandbox: false,
  })
  return {
    async newPage(test, options = {}) {
      const context = await browser.newContext(contextOptions(options))
      // Windows of `inOwnWindow` end without a test.
      test.onTestFinished(async (ended) => {
        const shown = ended?.task.result?.state === 'fail' ? await textOf(context) : undefined
        await context.close()
        // One more error of the test that has failed, so that every report has it.
        if (shown !== undefined) throw new Error(`When the test failed, the browser showed\n${shown}`)
      })
      context.setDefaultTimeout(waitLimits.timeout)
      listen(context)
      return context.newPage()
    },
    close: () => browser.close(),
  }
}

const textMax = 2000

/** The address and the elements of each page, as somebody would be told them who cannot see it. */
async function textOf(context: BrowserContext): Promise<string> {
  const pages = context.pages().map(async (page) => {
    const text = await page.ariaSnapshot({ timeout: 1000 }).catch((error) => String(error))
    return `${page.url()}\n${text.slice(0, textMax)}`
  })
  return (await Promise.all(pages)).join('\n')
}

function contextOptions(options: PageOptions): BrowserContextOptions {
  const { baseUrl, dark, phone, javaScriptEnabled = true, timezone = 'UTC', reducedMotion, scale } = options
  return {
    ...(baseUrl && { baseURL: baseUrl }),
    ...(phone && { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true }),
    ...(scale && { deviceScaleFactor: scale }),
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
    javaScriptEnabled,
    locale: 'en-US',
    timezoneId: timezone,
  }
}

// Answers of 400 and above are errors of the console, and so is what a Content-Security-Policy refuses; what a policy
// would refuse that only reports is mere information.
const isComplaint = /^console (error|warning|assert): |Content Security Policy/

const heard = new WeakMap<BrowserContext, string[]>()

function listen(context: BrowserContext): void {
  const lines: string[] = []
  heard.set(context, lines)
  context.on('console', (message) => {
    const { url, line } = message.location()
    const said = `console ${message.type()}: ${message.text()} (${url}:${line + 1})`
    if (isComplaint.test(said)) lines.push(said)
  })
  context.on('weberror', (error) => lines.push(`uncaught: ${error.error().stack ?? error.error()}`))
  context.on('requestfailed', (request) => {
    const { errorText = 'failed' } = request.failure() ?? {}
    // The page's own doing, or that of whoever leaves it: a stream ends with its page in no other way.
    if (errorText !== 'net::ERR_ABORTED') lines.push(`request: ${request.method()} ${request.url()} ${errorText}`)
  })
  context.on('page', (page) => page.on('crash', () => lines.push(`crash: ${page.url()}`)))
}

/**
 * What the page, and others that it opened, have complained about: errors and warnings of the console, with what a
 * Content-Security-Policy refused; errors that nothing caught; requests that failed. Empty when all is well.
 */
export async function browserErrors(page: Page): Promise<readonly string[]> {
  const lines = heard.get(page.context())
  if (!lines) throw new Error('Only pages of startBrowser() are listened to.')
  // Complaints arrive in the order of the page's messages: behind its next answer, none is under way. A page that is
  // closed or has crashed gives none.
  await page.evaluate('0').catch(() => undefined)
  return [...lines]
}
