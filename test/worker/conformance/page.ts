/** Opens a page. */
import { type BrowserRunContext, defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'page',
  version: '1.0.0',
  title: 'Open a page',
  browser: true,
  variables: { type: 'object', properties: { how: { type: 'string' } } },
  output: {},
  async run({ variables: { how }, browser }: BrowserRunContext<{ how?: string }>) {
    const context = await browser({ locale: 'de-DE', viewport: { width: 300, height: 200 } })
    if ((await browser()) !== context) throw new Error('There are two contexts.')
    const page = await context.newPage()
    await page.setContent('<title>Hello</title><button>Press</button>')
    if (how === 'failing') await page.getByRole('link', { name: 'Missing' }).click({ timeout: 50 })
    if (how === 'closing') await context.close()
    const size = how === 'closing' ? undefined : await page.evaluate('[innerWidth, navigator.language, document.title]')
    return { size, pages: context.pages().length }
  },
})
