/** Opens and closes a browser twice, as an executor does, and sends the resources that were open before and after. */
import { openBrowser } from '../../src/worker/browser/connection.ts'

// As in an executor: Node opens them lazily, and Playwright would be the first to use them.
void [process.stdout, process.stderr]
const open = [process.getActiveResourcesInfo()]
for (const state of [undefined, '{"cookies":[],"origins":[]}']) {
  const { context, close } = await openBrowser({ url: process.argv[2] ?? '' }, state)
  const page = await context.newPage()
  await page.goto('data:text/html,<title>Mine</title>')
  // A pending call must not keep the browser open.
  page.evaluate('new Promise(() => {})').catch(() => {})
  await close()
  open.push(process.getActiveResourcesInfo())
}
process.send?.(JSON.stringify(open))
