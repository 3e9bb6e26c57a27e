/** The dashboard's pages of webhooks with data on them. */
import type { Page } from 'playwright-core'
import type { Dashboard } from './dashboard-browser.ts'
import type { ShownPage } from './dashboard-pages.ts'

const at = (name: string, path: string): ShownPage => ({ name, open: (page) => page.goto(path) })

/** Creates two endpoints: one whose receiver fails, and one that is paused. Names below `.invalid` do not resolve. */
export async function webhookPages(dashboard: Dashboard, page: Page, key: string): Promise<ShownPage[]> {
  const create = async (shown: Page, url: string) => {
    await shown.goto('/webhooks/new')
    await shown.getByLabel('Address').fill(url)
    await shown.getByRole('button', { name: 'Create webhook endpoint' }).click()
    await shown.getByRole('heading', { name: 'Save the secret' }).waitFor()
    return (await shown.getByRole('link', { name: 'Done' }).getAttribute('href')) ?? ''
  }
  const refuse = async (shown: Page) => {
    await shown.goto('/webhooks/new')
    await shown.getByLabel('Address').fill('https://127.0.0.1/hooks')
    await shown.getByRole('button', { name: 'Create webhook endpoint' }).click()
  }
  const paused = await create(page, 'https://archive.invalid/receivers/of/runs/that/ended?key=with-a-long-query')
  await page.goto(paused)
  await page.getByRole('button', { name: 'Pause' }).click()
  const path = await create(page, 'https://shop.invalid/hooks/runs')
  await dashboard.call(key, 'PUT', '/v1/execution/queue-remote/count-words', { variableData: { path: 'LICENSE' } })
  await page.goto(path)
  await page.getByRole('button', { name: 'Send test event' }).click()
  await page.getByRole('heading', { name: 'Last request' }).waitFor()
  const delivery = new URL(page.url()).pathname
  return [
    at('webhooks', '/webhooks'),
    at('webhook-new', '/webhooks/new'),
    { name: 'webhook-refused', open: refuse },
    { name: 'webhook-created', open: (shown) => create(shown, 'https://orders.invalid/hooks') },
    at('webhook', path),
    at('webhook-paused', paused),
    at('webhook-edit', `${path}/edit`),
    at('webhook-delivery', delivery),
    at('webhook-redeliver', `${path}/redeliver`),
    at('webhook-rotate', `${path}/rotate`),
    at('webhook-delete', `${path}/delete`),
  ]
}
