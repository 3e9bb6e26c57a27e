/** The executor's side: one context of its own in the browser, which ends with its connection. */
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'
import { loadChromium } from './playwright.ts'

export interface OpenBrowser {
  context: BrowserContext
  /** Compact JSON, with IndexedDB. */
  storageState(): Promise<string>
  /** Ends context and connection; takes 5 s at most. */
  close(): Promise<void>
}

const connectMillisecondsMax = 30_000
const closeMillisecondsMax = 5000

/** @param storageState what Playwright's `storageState` gives, as JSON; a fresh context without. */
export async function openBrowser(endpoint: BrowserEndpoint, storageState: string | undefined): Promise<OpenBrowser> {
  const options = storageState === undefined ? {} : { storageState: parsed(storageState) }
  const browser = await connect(endpoint)
  try {
    const context = await newContext(browser, options)
    return {
      context,
      storageState: async () => JSON.stringify(await context.storageState({ indexedDB: true })),
      close: () => close(browser, context),
    }
  } catch (error) {
    await close(browser, undefined)
    throw error
  }
}

async function connect({ protocol, url }: BrowserEndpoint): Promise<Browser> {
  const chromium = await loadChromium()
  const options = { timeout: connectMillisecondsMax }
  try {
    return await (protocol === 'cdp' ? chromium.connectOverCDP(url, options) : chromium.connect(url, options))
  } catch {
    // Playwright's own message has the address, which is a secret.
    throw new Error('The browser could not be reached: it has just ended, or BROWSER_CDP_URL names none.')
  }
}

type State = Exclude<BrowserContextOptions['storageState'], string | undefined>

const notRestored = "The browser context's storage state could not be restored"

function parsed(storageState: string): State {
  try {
    return JSON.parse(storageState)
  } catch {
    // Node's own message quotes the text.
    throw new Error(`${notRestored}: it is not JSON.`)
  }
}

async function newContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  try {
    return await browser.newContext(options)
  } catch (error) {
    if (!browser.isConnected()) throw new Error('The browser ended before its context was open.')
    if (!options.storageState) throw error
    // Of Playwright's message only the place: the rest may quote a cookie.
    const [place] = /\bstorageState(\.\w+|\[\d+\])+/.exec(error instanceof Error ? error.message : '') ?? []
    throw new Error(place ? `${notRestored}: ${place} is not as Playwright writes it.` : `${notRestored}.`)
  }
}

async function close(browser: Browser, context: BrowserContext | undefined): Promise<void> {
  await bounded(context?.close())
  await bounded(browser.close())
}

async function bounded(ending: Promise<void> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, closeMillisecondsMax / 2)
  })
  await Promise.race([ending?.catch(() => {}), late])
  clearTimeout(timer)
}
