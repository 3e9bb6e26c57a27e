/** A process for tests to kill: it starts a browser with a page in an endless loop, and sends the browser's process ids. */
import { startBrowser } from './browser.ts'

const browser = await startBrowser()
const page = await browser.newPage({ onTestFinished: () => undefined })
const session = await page.context().browser()?.newBrowserCDPSession()
const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {}
page.evaluate('for (;;);').catch(() => undefined)
process.send?.(processInfo)
