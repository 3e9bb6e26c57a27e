/** The dashboard's pages of notification rules with data on them. */
import type { Page } from 'playwright-core'
import type { ShownPage } from './dashboard-pages.ts'

const at = (name: string, path: string): ShownPage => ({ name, open: (page) => page.goto(path) })

/** Creates two rules: one whose webhook fails, and one that is paused. Names below `.invalid` do not resolve. */
export async function notificationPages(page: Page): Promise<ShownPage[]> {
  const create = async (name: string) => {
    await page.goto('/settings/notifications/new')
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Run waits for a person').check()
    await page.getByLabel('Channel').selectOption('slack')
    await page.getByLabel('Address of the webhook').fill('https://chat.invalid/services/T000/B000')
    await page.getByRole('button', { name: 'Create notification rule' }).click()
    await page.getByRole('heading', { name }).waitFor()
    return new URL(page.url()).pathname
  }
  const refuse = async (shown: Page) => {
    await shown.goto('/settings/notifications/new')
    await shown.getByLabel('Name').fill('Failures')
    await shown.getByLabel('Channel').selectOption('webhook')
    await shown.getByLabel('Address of the webhook').fill('https://127.0.0.1/hooks')
    await shown.getByRole('button', { name: 'Create notification rule' }).click()
  }
  await create('Approvals of the night shift')
  await page.getByRole('button', { name: 'Pause' }).click()
  const path = await create('Failed runs')
  await page.getByRole('button', { name: 'Send test message' }).click()
  return [
    at('notifications', '/settings/notifications'),
    at('notification-new', '/settings/notifications/new'),
    { name: 'notification-refused', open: refuse },
    at('notification-rule', path),
    at('notification-edit', `${path}/edit`),
    at('notification-delete', `${path}/delete`),
  ]
}
