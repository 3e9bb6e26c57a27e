/** The executor's connection to the browser, with one context that ends with the connection. */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser, BrowserContext, BrowserContextOptions, BrowserType } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'

export interface OpenBrowser {
  context: BrowserContext
  /** Compact JSON, with IndexedDB. */
  storageState(): Promise<string>
  /** Ends the context and the connection within about 5 s. */
  close(): Promise<void>
}

const connectMillisecondsMax = 30_000
const closeMillisecondsMax = 5000

const require = createRequire(import.meta.url)

/**
 * Loads Playwright at first use: it takes a third of a second and much memory, and most runs do not need it. Nothing else
 * runs meanwhile, so that what it sets in the process can be told from what a workflow sets.
 */
export function loadChromium(): BrowserType {
  // With DEBUG, Playwright would print what it sends, including cookies, to the log of the run or the service.
  const { DEBUG } = process.env
  delete process.env.DEBUG
  try {
    return require('playwright-core').chromium
  } finally {
    if (DEBUG !== undefined) process.env.DEBUG = DEBUG
  }
}

/** @param storageState the result of Playwright's `storageState` as JSON; undefined for an empty context. */
export async function openBrowser(
  endpoint: BrowserEndpoint,
  storageState: string | undefined,
  options: BrowserContextOptions = {},
): Promise<OpenBrowser> {
  const state = storageState === undefined ? {} : { storageState: parse(storageState) }
  const resources = process.getActiveResourcesInfo().length
  const browser = await connect(endpoint)
  try {
    const context = await newContext(browser, { ...options, ...state })
    return {
      context,
      storageState: async () => JSON.stringify(await context.storageState({ indexedDB: true })),
      close: () => close(browser, context, resources),
    }
  } catch (error) {
    await close(browser, undefined, resources)
    throw error
  }
}

async function connect({ url }: BrowserEndpoint): Promise<Browser> {
  const chromium = loadChromium()
  try {
    return await chromium.connect(url, { timeout: connectMillisecondsMax })
  } catch {
    // Playwright's message contains the address, which is a secret.
    throw new Error('The browser could not be reached: it has just ended, or the machine is overloaded.')
  }
}

type State = Exclude<BrowserContextOptions['storageState'], string | undefined>

const notRestored = "The browser context's storage state could not be restored"

function parse(storageState: string): State {
  try {
    return JSON.parse(storageState)
  } catch {
    // Node's message quotes the text.
    throw new Error(`${notRestored}: it is not JSON.`)
  }
}

async function newContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  try {
    return await browser.newContext(options)
  } catch (error) {
    if (!browser.isConnected()) throw new Error('The browser ended before its context was open.')
    if (!options.storageState) throw error
    // Only the path from Playwright's message: the rest may quote a cookie.
    const [path] = /\bstorageState(\.\w+|\[\d+\])+/.exec(error instanceof Error ? error.message : '') ?? []
    throw new Error(path ? `${notRestored}: ${path} is not as Playwright writes it.` : `${notRestored}.`)
  }
}

/** @param resources the process's active resources before the connection, to wait until its sockets are closed. */
async function close(browser: Browser, context: BrowserContext | undefined, resources: number): Promise<void> {
  const timeout = AbortSignal.timeout(closeMillisecondsMax)
  await untilTimeout(timeout, context?.close())
  await untilTimeout(timeout, browser.close())
  // Playwright's socket closes some ticks later, usually within 3 ms. Resources that the workflow leaked stay open: the
  // wait is bounded.
  const deadline = performance.now() + 250
  while (process.getActiveResourcesInfo().length > resources && performance.now() < deadline) await delay(2)
}

/** Ignores rejections: the browser may have ended. */
async function untilTimeout(timeout: AbortSignal, closing: Promise<void> | undefined): Promise<void> {
  if (timeout.aborted) return
  await Promise.race([closing?.catch(() => {}), once(timeout, 'abort')])
}
