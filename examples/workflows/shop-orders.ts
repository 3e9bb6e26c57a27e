/** Reads a customer's orders without signing in: the browser context that the run was queued with holds the session. */
import { defineWorkflow } from 'execution-service/workflow'
import { openShop, ordersHeading, output, readOrders, url } from './shop/shop.ts'

export default defineWorkflow({
  id: 'shop-orders',
  version: '1.0.0',
  title: 'Read the orders of a customer of a shop',
  description: 'Reads the orders with the session of its browser context, which shop-sign-in has put there.',
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
    const context = await browser()
    const page = await context.newPage()
    await openShop(page, variables.url, '/orders')
    // Without a session, the shop has led to its form.
    const form = page.getByRole('heading', { name: 'Sign in' })
    await ordersHeading(page).or(form).waitFor()
    if (await form.isVisible()) {
      throw new Error(
        'The browser context has no session in the shop, or it is over: run shop-sign-in with the same ' +
          'browserContextId, then this again.',
      )
    }
    const orders = await readOrders(page)
    log(`${orders.length} orders, without signing in`)
    return { orders }
  },
})
