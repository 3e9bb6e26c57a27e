/** The page of the account's usage, and its download. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import { type DashboardService, signIn, startDashboardService } from '../support/dashboard.ts'
import { pageText, readRows } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

const insert = `INSERT INTO run_usage (account_id, day, workflow_id, succeeded, failed, timed_out, cancelled, expired,
  attempts, executed_ms, browser_ms, artifact_bytes) VALUES (?, ?, ?, 2, 1, 0, 0, 0, 4, 600000, 60000, 2048)`

test('shows the usage of the account by workflow, and downloads it as CSV', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  const store = await openStore(readConfig(dashboard.settings))
  for (const day of ['2025-11-01', '2025-11-02'])
    for (const id of ['count-words', 'greet']) await store.write((tx) => tx.all(insert, [ada.accountId, day, id]))
  await store.close()
  const query = 'from=2025-11-01&to=2025-11-30'
  const page = await ada.visitor.get(`/settings/usage?${query}`)
  const rows = readRows(page)
  expect(rows).toContain('count-words 6 2 8 20 min 2 min 4 KiB')
  expect(rows).toContain('All workflows 12 4 16 40 min 4 min 8 KiB')
  const csv = await ada.visitor.get(`/settings/usage.csv?${query}`)
  expect(csv.headers).toMatchObject({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename=usage-2025-11-01-2025-11-30.csv',
  })
  expect(csv.text.split('\r\n')).toHaveLength(6)
  expect(pageText(await bo.visitor.get(`/settings/usage?${query}`))).toContain('No run finished on these days')
  expect((await bo.visitor.get(`/settings/usage.csv?${query}`)).text.split('\r\n')).toHaveLength(2)
})

test.each(['from=yesterday', 'from=2025-11-02&to=2025-11-01', 'from=2024-01-01&to=2025-11-01'])(
  'refuses the days %s with the name of the field',
  async (query) => {
    const { visitor } = await signIn(dashboard)
    const page = await visitor.get(`/settings/usage?${query}`)
    expect([page.status, pageText(page)]).toEqual([400, expect.stringMatching(/The day in (from|to) must/)])
    expect((await visitor.get(`/settings/usage.csv?${query}`)).status).toBe(404)
  },
)
