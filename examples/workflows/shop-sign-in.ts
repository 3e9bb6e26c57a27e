/** Signs in to a shop. The run's browser context then has the session for later runs. */
import { defineWorkflow } from 'execution-service/workflow'
import { openPublicBrowser } from './access/browser.ts'
import { openShop, ordersHeading, output, readOrders, url } from './shop/shop.ts'

export default defineWorkflow({
  id: 'shop-sign-in',
  version: '1.0.0',
  title: 'Sign in to a shop',
  description:
    "Signs in with the shop's form and reads the orders. Queue it with a browser context to keep the session.",
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url', 'userName', 'password'],
    properties: {
      url,
      userName: { type: 'string', minLength: 1, description: "The customer's name.", examples: ['ada'] },
      password: {
        type: 'string',
        minLength: 1,
        // A secret: encrypted at rest, and masked in everything that shows the run.
        writeOnly: true,
        description: "The customer's password.",
      },
    },
  },
  output,
  timeLimitSeconds: 60,
  browser: true,
  async run({ variables, log, progress, browser }) {
    const context = await openPublicBrowser(browser, variables.url)
    const page = await context.newPage()
    await openShop(page, variables.url, '/sign-in')
    progress(30, 'Opened the sign-in form')
    await page.getByLabel('User name').fill(variables.userName)
    await page.getByLabel('Password').fill(variables.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    // Wait for whichever appears, never for a fixed time.
    const refusal = page.getByRole('alert')
    await ordersHeading(page).or(refusal).waitFor()
    if (await refusal.isVisible()) throw new Error(`The shop refused the sign-in: ${await refusal.innerText()}`)
    progress(70, 'Signed in')
    const orders = await readOrders(page)
    log(`${variables.userName} has ${orders.length} orders`)
    return { orders }
  },
})
