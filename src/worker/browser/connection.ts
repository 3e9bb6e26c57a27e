/** The executor's side: one context of its own in the browser, which ends with its connection. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'
import { loadChromium } from './playwright.ts'

export interface OpenBrowser {
  context: BrowserContext
  /** Compact JSON, with IndexedDB. */
  storageState(): Promise<string>
  /** Ends context and connection; takes little more than 5 s at most. */
  close(): Promise<void>
}

const connectMillisecondsMax = 30_000
const closeMillisecondsMax = 5000

/** @param storageState what Playwright's `storageState` gives, as JSON; a fresh context without. */
export async function openBrowser(endpoint: BrowserEndpoint, storageState: string | undefined): Promise<OpenBrowser> {
  const options = storageState === undefined ? {} : { storageState: parsed(storageState) }
  const handles = process.getActiveResourcesInfo().length
  const browser = await connect(endpoint)
  try {
    const context = await newContext(browser, options)
    return {
      context,
      storageState: async () => JSON.stringify(await context.storageState({ indexedDB: true })),
      close: () => close(browser, context, handles),
    }
  } catch (error) {
    await close(browser, undefined, handles)
    throw error
  }
}

async function connect({ url }: BrowserEndpoint): Promise<Browser> {
  const chromium = await loadChromium()
  try {
    return await chromium.connect(url, { timeout: connectMillisecondsMax })
  } catch {
    // Playwright's own message has the address, which is a secret.
    throw new Error('The browser could not be reached: it has just ended, or the machine is too busy.')
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

/** @param handles how many this process had before: whoever closes the browser sees whether it left anything open. */
async function close(browser: Browser, context: BrowserContext | undefined, handles: number): Promise<void> {
  const time = AbortSignal.timeout(closeMillisecondsMax)
  await unless(time, context?.close())
  await unless(time, browser.close())
  // Playwright's socket is closed some turns after it says so, within 3 ms where the machine has time. What a workflow
  // has left open is waited for as well, and in vain.
  const deadline = performance.now() + 250
  while (process.getActiveResourcesInfo().length > handles && performance.now() < deadline) await delay(2)
}

/** Resolves when the time is over, too, or the promise was rejected: the browser may have ended. */
async function unless(time: AbortSignal, ending: Promise<void> | undefined): Promise<void> {
  if (time.aborted) return
  const over = once(time, 'abort')
  await Promise.race([ending?.catch(() => {}), over])
}
