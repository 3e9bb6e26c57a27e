/** A process that a test ends: it has a browser, with a page that is busy for good, and says which processes those are. */
import { startBrowser } from './browser.ts'

const browser = await startBrowser()
const page = await browser.newPage({ onTestFinished: () => undefined })
const session = await page.context().browser()?.newBrowserCDPSession()
const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {}
page.evaluate('for (;;);').catch(() => undefined)
process.send?.(processInfo)
