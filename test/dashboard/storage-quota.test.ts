/** The storage of an account: its sum on the overview, and the page that refuses to store more. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, signIn } from '../support/dashboard.ts'
import { pageText } from '../support/html.ts'
import { createState, newContext, startBrowserDashboard, upload } from './browser-context-helpers.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard({ STORAGE_QUOTA_MB: '1' })
})

afterAll(() => dashboard.stop())

test('the overview shows the storage of the account, and refuses to store more than its quota', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  const overview = async () => pageText(await ada.visitor.get('/'))
  expect(await overview()).toMatch(/Storage\s+0\sB\s+of 1\sMiB/)
  const { id } = await newContext(dashboard, ada)
  const large = createState(['.shop.example'])
  const state = JSON.stringify({ ...large, filler: 'x'.repeat(1024 * 1024) })
  expect((await upload(ada, id, state)).headers.location).toBe(`/browser-contexts/${id}?done=uploaded`)
  expect(await overview()).toMatch(/Storage\s+1\sMiB\s+full: of 1\sMiB/)
  for (const refused of [
    await upload(ada, id, state),
    await ada.visitor.post('/browser-contexts/new', { name: 'Shop' }),
  ]) {
    expect(refused.status).toBe(507)
    expect(pageText(refused)).toContain('This account has reached its storage quota of 1 MB.')
  }
  expect((await bo.visitor.post('/browser-contexts/new', { name: 'Shop' })).status).toBe(303)
})
