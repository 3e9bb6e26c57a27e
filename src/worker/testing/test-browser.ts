/** The browser of a workflow under test: a Chromium of its own, or what the test gives in its place. */
import { existsSync } from 'node:fs'
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import { loadChromium, type OpenBrowser, openBrowser } from '../browser/connection.ts'
import { type FoundBrowser, findBrowser } from '../browser/find-browser.ts'
import type { FakeBrowser } from './run-workflow.ts'

export const noTestBrowser =
  "The workflow asks for a browser, and its test gives none: set the option `browser` of runWorkflow to 'chromium' or to a browser context."

/** Starts a Chromium, which ends when the context is closed. @throws {Error} that says what to install. */
export async function launchChromium(options: BrowserContextOptions): Promise<OpenBrowser> {
  const chromium = await loadChromium()
  const { executable, environment } = await findForTest(chromium.executablePath())
  const server = await chromium.launchServer({
    executablePath: executable,
    env: { ...process.env, ...environment },
    headless: true,
    // The sandbox does not work as root, and needs rights that machines which run tests often lack.
    chromiumSandbox: false,
    host: '127.0.0.1',
  })
  try {
    const opened = await openBrowser({ url: server.wsEndpoint() }, undefined, options)
    return { ...opened, close: () => opened.close().finally(() => server.close()) }
  } catch (error) {
    await server.close()
    throw error
  }
}

/** @param downloaded where `npx playwright-core install chromium` puts its browser. */
async function findForTest(downloaded: string): Promise<Pick<FoundBrowser, 'executable' | 'environment'>> {
  const { BROWSER_PATH } = process.env
  try {
    return await findBrowser(BROWSER_PATH, process.env)
  } catch (error) {
    if (BROWSER_PATH || !existsSync(downloaded)) throw error
    return { executable: downloaded, environment: {} }
  }
}

export async function openFake(fake: FakeBrowser, options: BrowserContextOptions): Promise<BrowserContext> {
  return (typeof fake === 'function' ? await fake(options) : fake) as BrowserContext
}
