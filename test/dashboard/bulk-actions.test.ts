/** Bulk actions of the tab "Runs": the preview, the start and the progress. */
import { v7 as uuid } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inputValue, pageText } from '../support/html.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { newUser, page, queue, type User } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

const delayed = (user: User, workflowId = 'greet') => queue(user, workflowId, { name: 'Ada' }, '?delaySeconds=3600')

/** Opens the preview and submits its form. */
async function submit({ visitor }: User, path: string) {
  const id = inputValue(await visitor.get(path), 'id') ?? ''
  const submitted = await visitor.post(path, { id })
  return { id, ...submitted, location: String(submitted.headers.location) }
}

const untilFinished = (user: User, path: string) =>
  until('the bulk action has finished', async () => {
    const text = await page(user, path)
    return text.includes('Finished Cancelled') || text.includes('Finished Queued again') ? text : undefined
  })

test('the list of runs offers what its filter allows', async () => {
  const user = await newUser(service)
  const offered = async (path: string) => {
    const { text } = await user.visitor.get(path)
    return ['cancel', 'rerun'].filter((kind) => text.includes(`href="/runs/bulk-${kind}?`))
  }
  expect(await offered('/runs')).toEqual([])
  const id = await delayed(user)
  expect(await offered('/runs')).toEqual(['cancel', 'rerun'])
  expect(await offered('/runs?status=queued')).toEqual(['cancel'])
  await user.visitor.post(`/runs/${id}/cancel`)
  expect(await offered('/runs?status=cancelled')).toEqual(['rerun'])
})

test('the preview shows the filter and how many runs it selects, and changes nothing', async () => {
  const user = await newUser(service)
  for (let count = 0; count < 3; count += 1) await delayed(user)
  await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=3600')
  await delayed(await newUser(service))
  expect(await page(user, '/runs/bulk-cancel')).toMatch(/Runs 4 runs Workflow All workflows Status Queued, Running/)
  const preview = await page(user, '/runs/bulk-cancel?workflow=greet&status=queued&status=failed')
  expect(preview).toMatch(/Runs 3 runs Workflow Greet somebody Status Queued Cancel 3 runs/)
  expect(await page(user, '/runs/bulk-rerun')).toContain('No runs to run again')
  expect(await page(user, '/runs/bulk-cancel?status=failed')).toContain('No runs to cancel')
  expect(await page(user, '/runs/bulk-cancel?until=2020-01-01T00:00')).toContain('No runs to cancel')
  expect(await page(user, '/runs?status=queued')).not.toContain('No runs match')
})

test('a search is refused, with a link to the same without it', async () => {
  const user = await newUser(service)
  await delayed(user)
  const { text } = await user.visitor.get('/runs/bulk-cancel?workflow=greet&search=timeout')
  expect(text).toContain('href="/runs/bulk-cancel?workflow=greet"')
  expect((await user.visitor.post('/runs/bulk-cancel?search=timeout', {})).status).toBe(400)
  expect(await page(user, '/runs?status=cancelled')).toContain('No runs match these filters')
})

test('runs of the filter are cancelled and run again, with an entry in the audit log for each action', async () => {
  const user = await newUser(service)
  const ids = [await delayed(user), await delayed(user)]
  const kept = await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=3600')
  const cancelled = await submit(user, '/runs/bulk-cancel?workflow=greet')
  expect(cancelled.status).toBe(303)
  expect(await untilFinished(user, cancelled.location)).toMatch(/Finished Cancelled 2 Ended before 0 Workflow Greet/)
  const changes = await user.visitor.get(`${cancelled.location}/changes`)
  expect(changes.text).toBe('event: change\ndata: {}\n\nevent: end\ndata: {}\n\n')
  for (const id of ids) expect(await page(user, `/runs/${id}`)).toContain('Cancelled')
  expect(await page(user, `/runs/${kept}`)).not.toContain('Cancelled')

  const again = await submit(user, '/runs/bulk-rerun?status=cancelled')
  const progress = await untilFinished(user, again.location)
  expect(progress).toMatch(/Finished Queued again 2 Not ended 0 Could not be run again 0/)
  const runs = await service.rows<{ rerun_of: string }>('SELECT rerun_of FROM runs WHERE rerun_of IS NOT NULL')
  expect(runs.map(({ rerun_of }) => rerun_of).sort()).toEqual(ids.toSorted())

  const entries = await service.rows<{ actor_kind: string; action: string; details: string }>(
    "SELECT actor_kind, action, details FROM audit_log WHERE action LIKE 'bulkAction.%' ORDER BY at",
  )
  expect(entries.map(({ details, ...entry }) => ({ ...entry, ...JSON.parse(details) }))).toEqual([
    expect.objectContaining({ actor_kind: 'user', action: 'bulkAction.cancelStarted', workflowId: 'greet' }),
    expect.objectContaining({ actor_kind: 'user', action: 'bulkAction.rerunStarted', status: ['cancelled'] }),
  ])
})

test('a form that is submitted twice starts one action, and no other account sees it', async () => {
  const user = await newUser(service)
  await delayed(user)
  const path = '/runs/bulk-cancel?status=queued'
  const { id, location } = await submit(user, path)
  expect((await user.visitor.post(path, { id })).headers.location).toBe(location)
  const other = await user.visitor.post('/runs/bulk-cancel', { id })
  expect([other.status, pageText(other)]).toEqual([409, expect.stringContaining('submitted with other filters')])
  expect((await (await newUser(service)).visitor.get(location)).status).toBe(404)
  await untilFinished(user, location)
})

test('an account has at most ten unfinished actions, which the list of runs shows', async () => {
  const user = await newUser(service)
  await delayed(user)
  const ids = Array.from({ length: 10 }, () => uuid())
  for (const id of ids) {
    // Not due within the test.
    await service.change(
      `INSERT INTO bulk_actions (id, account_id, kind, filter, uses_browser_contexts, matched, done, skipped, failed,
        limit_reached, next_at, created_at) VALUES (?, ?, 'cancel', '{}', 1, 1200, 1200, 0, 0, 0, ?, 0)`,
      id,
      user.accountId,
      Date.now() + 3_600_000,
    )
  }
  expect(await page(user, '/runs')).toContain('Runs are being cancelled: 1,200 so far. See progress')
  await service.change('UPDATE bulk_actions SET total = 3000 WHERE account_id = ?', user.accountId)
  expect(await page(user, '/runs')).toContain('Runs are being cancelled: 1,200 of 3,000. See progress')
  expect(await page(user, `/runs/bulk-actions/${ids[0]}`)).toMatch(/Working 1,200 of 3,000, [0-9.]+ per second/)
  const refused = await submit(user, '/runs/bulk-cancel?status=queued')
  expect([refused.status, pageText(refused)]).toEqual([409, expect.stringContaining('10 bulk actions')])
})
