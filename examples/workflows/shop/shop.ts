/** What the workflows of the shop share: how it is named in variables, and how its orders are read from their page. */
import type { Page } from 'playwright-core'

/** A variable. */
export const url = {
  type: 'string',
  format: 'uri',
  pattern: '^https?://',
  description: 'The shop, such as the website in examples/site.',
  examples: ['http://127.0.0.1:3080/'],
} as const

/** An output. */
export const output = {
  type: 'object',
  additionalProperties: false,
  required: ['orders'],
  properties: {
    orders: {
      type: 'array',
      description: "The customer's orders, in the order of the page.",
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

/** Opens a page of the shop; another answer than a page is told at once, and not by what is then missing from it. */
export async function openShop(page: Page, shop: string, path: string): Promise<void> {
  const answer = await page.goto(new URL(path, shop).href)
  if (answer?.ok()) return
  throw new Error(`${page.url()} answered ${answer?.status()}: set url to the shop's address.`)
}

/** The heading of the page that only customers see who have signed in. */
export const ordersHeading = (page: Page) => page.getByRole('heading', { name: 'Your orders' })

export async function readOrders(page: Page) {
  const rows = await page
    .getByRole('row')
    .filter({ has: page.getByRole('cell') })
    .all()
  const cells = await Promise.all(rows.map((row) => row.getByRole('cell').allInnerTexts()))
  return cells.map(([number = '', date = '', item = '', total = '']) => ({ number, date, item, total }))
}
