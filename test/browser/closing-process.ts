/** A process as an executor is one: it opens and closes a browser, twice, and tells what it had open before and then. */
import { openBrowser } from '../../src/worker/browser/connection.ts'

// As an executor has them open: Node opens them for whoever looks at them first, and Playwright does.
void [process.stdout, process.stderr]
const open = [process.getActiveResourcesInfo()]
for (const state of [undefined, '{"cookies":[],"origins":[]}']) {
  const { context, close } = await openBrowser({ url: process.argv[2] ?? '' }, state)
  const page = await context.newPage()
  await page.goto('data:text/html,<title>Mine</title>')
  // What is under way then is given up.
  page.evaluate('new Promise(() => {})').catch(() => {})
  await close()
  open.push(process.getActiveResourcesInfo())
}
process.send?.(JSON.stringify(open))
