/**
 * Runs a real browser for tests: headless Chromium with a fresh profile for each page and no network beyond this machine.
 * It exits with the process that started it, when the pipe between them closes.
 */
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { type FoundBrowser, findBrowser, findBundled } from '../../src/worker/browser/find-browser.ts'
import type { Test } from './domain.ts'
import { waitLimits } from './timeouts.ts'

export interface PageOptions {
  /** Base of relative URLs in `page.goto`. */
  baseUrl?: string
  /** Prefers the dark color scheme; default light. */
  dark?: boolean
  /** A phone's viewport with touch, 390×844; default 1280×720. */
  phone?: boolean
  javaScriptEnabled?: boolean
  /** IANA name of the time zone; default UTC. */
  timezone?: string
  reducedMotion?: boolean
  /** Device pixels per CSS pixel; default 1, and 3 on a phone. */
  scale?: number
}

export interface Browser {
  /** Opens a page in a new profile, which is closed with the test. */
  newPage(test: Test, options?: PageOptions): Promise<Page>
  close(): Promise<void>
}

// Host names and addresses outside this machine are not resolved.
const hosts = 'MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]'

/** In addition to Playwright's flags, which disable updates and background services. */
const flags = [
  `--host-resolver-rules=${hosts}`,
  '--no-proxy-server',
  '--no-pings',
  '--disable-domain-reliability',
  '--disable-quic',
  // Renders text with the same widths on every machine.
  '--font-render-hinting=none',
]

/** Uses npm's browser, for the same layout and pictures everywhere, unless BROWSER_PATH names another. */
export function testBrowser(): Promise<FoundBrowser> {
  const { BROWSER_PATH } = process.env
  return BROWSER_PATH ? findBrowser(BROWSER_PATH, process.env) : findBundled(process.env)
}

/** Starts a browser. The first start after an installation unpacks it, which takes some seconds; later ones take 0.1 s. */
export async function startBrowser(): Promise<Browser> {
  const { executable, environment } = await testBrowser()
  const browser = await chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...environment },
    args: flags,
    // Neither root nor most containers can use the sandbox, and the pages are trusted.
    chromiumSandbox: false,
  })
  return {
    async newPage(test, options = {}) {
      const context = await browser.newContext(contextOptions(options))
      // `inNewWindow` calls this without a task.
      test.onTestFinished(async (ended) => {
        const pageStates = ended?.task.result?.state === 'fail' ? await describePages(context) : undefined
        await context.close()
        // An additional error of the failed test, so that it is part of every report.
        if (pageStates !== undefined) throw new Error(`Pages at the time of the failure:\n${pageStates}`)
      })
      context.setDefaultTimeout(waitLimits.timeout)
      collectErrors(context)
      return context.newPage()
    },
    close: () => browser.close(),
  }
}

const textMax = 2000

/** Returns the URL and the ARIA snapshot of each page. */
async function describePages(context: BrowserContext): Promise<string> {
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

// The console reports responses of 400 and above as errors, and violations of an enforced Content-Security-Policy, too.
// Violations of a report-only policy have the level `info`.
const isError = /^console (error|warning|assert): |Content Security Policy/

const errorsByContext = new WeakMap<BrowserContext, string[]>()

function collectErrors(context: BrowserContext): void {
  const lines: string[] = []
  errorsByContext.set(context, lines)
  context.on('console', (message) => {
    const { url, line } = message.location()
    const text = `console ${message.type()}: ${message.text()} (${url}:${line + 1})`
    if (isError.test(text)) lines.push(text)
  })
  context.on('weberror', (error) => lines.push(`uncaught: ${error.error().stack ?? error.error()}`))
  context.on('requestfailed', (request) => {
    const { errorText = 'failed' } = request.failure() ?? {}
    // The page aborted the request or was left, which is how event streams end.
    if (errorText !== 'net::ERR_ABORTED') lines.push(`request: ${request.method()} ${request.url()} ${errorText}`)
  })
  context.on('page', (page) => page.on('crash', () => lines.push(`crash: ${page.url()}`)))
}

/**
 * Returns the errors of the page and of pages that it opened: errors and warnings of the console, violations of the
 * Content-Security-Policy, uncaught errors, failed requests, and crashes.
 */
export async function browserErrors(page: Page): Promise<readonly string[]> {
  const lines = errorsByContext.get(page.context())
  if (!lines) throw new Error('The page was not opened by startBrowser().')
  // Messages arrive in order, so all earlier errors precede this result. A closed or crashed page returns none.
  await page.evaluate('0').catch(() => undefined)
  return [...lines]
}
