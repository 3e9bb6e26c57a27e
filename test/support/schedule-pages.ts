/** The dashboard's pages of schedules with data on them. */
import type { Page } from 'playwright-core'
import type { ShownPage } from './dashboard-pages.ts'

const at = (name: string, path: string): ShownPage => ({ name, open: (page) => page.goto(path) })

/** Creates two schedules: one with a run, and one that is paused. */
export async function schedulePages(page: Page): Promise<ShownPage[]> {
  const create = async (name: string, fields: Record<string, string>) => {
    await page.goto('/schedules/new?workflowId=count-words')
    await page.getByLabel('Name', { exact: true }).fill(name)
    await page.locator('[name="variable-path"]').fill('LICENSE')
    await page.getByText('Options of its runs').click()
    for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value)
    await page.getByRole('button', { name: 'Create schedule' }).click()
    await page.getByRole('heading', { name }).waitFor()
    return new URL(page.url()).pathname
  }
  const refuse = async (shown: Page) => {
    await shown.goto('/schedules/new?workflowId=count-words')
    await shown.locator('[name="variable-path"]').fill('LICENSE')
    await shown.getByLabel('Cron expression').fill('0 25 * * *')
    await shown.getByRole('button', { name: 'Create schedule' }).click()
  }
  const paused = await create('Hourly count', { 'Or an interval, in seconds': '3600' })
  await page.getByRole('button', { name: 'Pause' }).click()
  const path = await create('Morning report', {
    'Cron expression': '0 7 * * MON-FRI',
    'Time zone': 'Europe/Berlin',
    Tags: 'report',
  })
  await page.getByRole('button', { name: 'Run now' }).click()
  return [
    at('schedules', '/schedules'),
    at('schedule-new', '/schedules/new'),
    { name: 'schedule-refused', open: refuse },
    at('schedule', path),
    at('schedule-paused', paused),
    at('schedule-edit', `${path}/edit`),
    at('schedule-delete', `${path}/delete`),
  ]
}
