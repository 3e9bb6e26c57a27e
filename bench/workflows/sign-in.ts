/** Signs in to a site five times, without evidence. */
import { type BrowserRunContext, defineWorkflow } from 'execution-service/workflow'

interface Variables {
  url: string
}

export const definition = {
  id: 'sign-in',
  version: '1.0.0',
  title: 'Sign in five times',
  variables: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
  output: {},
  browser: true,
  run: async ({ variables, browser }: BrowserRunContext<object>) => {
    const { url } = variables as Variables
    const page = await (await browser()).newPage()
    for (let count = 0; count < 5; count += 1) {
      await page.goto(url)
      await page.fill('#user', 'somebody')
      await page.fill('#password', 'a password')
      await page.click('button')
      await page.waitForLoadState()
    }
    return null
  },
} as const

export default defineWorkflow({ ...definition, evidence: 'off' })
