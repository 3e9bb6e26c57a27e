/** Shared by the shop workflows: the variable `url`, the output, reading the page of orders, and whether it is there. */
import type { Page } from 'playwright-core'
import { requirePublic } from '../access/browser.ts'

export const url = {
  type: 'string',
  format: 'uri',
  pattern: '^https?://',
  description: 'Address of the shop, such as the website in examples/site.',
  examples: ['http://127.0.0.1:3080/'],
} as const

export const output = {
  type: 'object',
  additionalProperties: false,
  required: ['orders'],
  properties: {
    orders: {
      type: 'array',
      description: "The customer's orders, in page order.",
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['number', 'date', 'item', 'total'],
        properties: {
          number: { type: 'string' },
          date: { type: 'string' },
          item: { type: 'string' },
          total: { type: 'string' },
        },
      },
    },
  },
} as const

/** Opens a page of the shop. Fails at once on an error status, rather than later on a missing element. */
export async function openShop(page: Page, shop: string, path: string): Promise<void> {
  const response = await page.goto(new URL(path, shop).href)
  if (response?.ok()) return
  throw new Error(`${page.url()} responded with ${response?.status()}: set url to the shop's address.`)
}

/** Only signed-in customers see this heading. */
export const ordersHeading = (page: Page) => page.getByRole('heading', { name: 'Your orders' })

/** Without a session, the shop redirects to the form with this heading. */
export const signInHeading = (page: Page) => page.getByRole('heading', { name: 'Sign in' })

/** Loads one page, by which the shop shows whether there is a session. */
export async function signedOut(page: Page, { variables }: { variables: { url: string } }): Promise<boolean> {
  await requirePublic(variables.url)
  await openShop(page, variables.url, '/orders')
  return signInHeading(page).isVisible()
}

export async function readOrders(page: Page) {
  const rows = await page
    .getByRole('row')
    .filter({ has: page.getByRole('cell') })
    .all()
  const cells = await Promise.all(rows.map((row) => row.getByRole('cell').allInnerTexts()))
  return cells.map(([number = '', date = '', item = '', total = '']) => ({ number, date, item, total }))
}
