/** Reads a customer's orders without signing in: the session is in the run's browser context. */
import { defineWorkflow, SignedOut } from 'execution-service/workflow'
import { openPublicBrowser } from './access/browser.ts'
import { openShop, ordersHeading, output, readOrders, signInHeading, url } from './shop/shop.ts'

export default defineWorkflow({
  id: 'shop-orders',
  version: '1.0.0',
  title: 'Read the orders of a shop customer',
  description: 'Reads the orders with the session that shop-sign-in has stored in the browser context.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url'],
    properties: { url },
  },
  output,
  timeLimitSeconds: 60,
  browser: true,
  async run({ variables, log, browser }) {
    const context = await openPublicBrowser(browser, variables.url)
    const page = await context.newPage()
    await openShop(page, variables.url, '/orders')
    await ordersHeading(page).or(signInHeading(page)).waitFor()
    if (await signInHeading(page).isVisible()) {
      // With a sign-in of the browser context, the run waits until another one has signed in, and starts again.
      throw new SignedOut(
        'The browser context has no session in the shop, or the session has expired: set its sign-in, or run ' +
          'shop-sign-in with the same browserContextId first.',
      )
    }
    const orders = await readOrders(page)
    log(`Read ${orders.length} orders without signing in`)
    return { orders }
  },
})
