/** Workers outside of the service in the dashboard: their page, and the pages of their workflows and runs. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { openStore } from '../../src/domain/installation.ts'
import { Workers } from '../../src/domain/queue/workers.ts'
import { invoice, newWorker } from '../operations/example-runs.ts'
import { send } from '../operations/requests.ts'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { pageText, readRows } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

async function createKey({ accountId, id: userId }: SignedInUser): Promise<string> {
  const key = { accountId, userId, name: 'worker', scopes: null, expiresAt: null }
  return (await dashboard.domain.apiKeys.create(key, operator)).value
}

test('an account sees its workers and their workflows, and other accounts see neither', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  const key = await createKey(ada)
  const path = { workerId: crypto.randomUUID() }
  const body = { ...newWorker, host: 'desk-7', version: '2.1' }
  expect((await send(dashboard, 'registerWorker', key, { path, body })).status).toBe(200)
  expect((await send(dashboard, 'queueRemoteRun', key, invoice)).status).toBe(202)
  expect((await send(dashboard, 'claimRuns', key, { path, body: { countMax: 1 } })).status).toBe(200)

  const row = readRows(await ada.visitor.get('/settings/workers')).find((text) => text.includes(path.workerId))
  for (const text of ['billing', 'Python 3.12, version 2.1', 'desk-7 1 4', 'send-invoice 1.0.0'])
    expect(row).toContain(text)
  expect(pageText(await ada.visitor.get('/workflows/send-invoice'))).toContain('workers outside of the service')
  const [entry] = readRows(await ada.visitor.get('/settings/audit-log?action=workflows.deployed'))
  expect(entry).toMatch(/ worker deployed workflows send-invoice 1\.0\.0 workflows 1, for this account$/)
  for (const page of ['/settings/workers', '/'])
    expect(pageText(await bo.visitor.get(page))).not.toMatch(/desk-7|billing|send-invoice/)
})

test('the page shows the last heartbeat of the workers of the service', async () => {
  const ada = await signIn(dashboard)
  const store = await openStore(readConfig(dashboard.settings))
  onTestFinished(() => store.close())
  const at = Date.now() + 1000
  const worker = { id: crypto.randomUUID(), host: 'rack-3', slots: 2, startedAt: at - 60_000 }
  await new Workers(store, () => at - 30_000).announce(worker, 15)
  await new Workers(store, () => at).announce(worker, 15)
  const row = readRows(await ada.visitor.get('/settings/workers')).find((text) => text.includes(worker.id))
  const shown = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
  expect(row).toContain(`rack-3 0 2 ${shown} Deployed workflows`)
})

test('a queued run says that no worker of its workflow and major version is there', async () => {
  const ada = await signIn(dashboard)
  const key = await createKey(ada)
  const register = (workerId: string, version: string) => {
    const workflows = [{ ...newWorker.workflows[0], version }]
    return send(dashboard, 'registerWorker', key, { path: { workerId }, body: { ...newWorker, workflows } })
  }
  const [first, second] = [crypto.randomUUID(), crypto.randomUUID()]
  expect((await register(first, '1.0.0')).status).toBe(200)
  const { body: queued } = await send(dashboard, 'queueRemoteRun', key, invoice)
  const read = async () => (await send(dashboard, 'getRun', key, { path: { runId: queued.id } })).body
  expect(await read()).toMatchObject({ waitingFor: 'worker', waitingForDetail: null })
  expect((await send(dashboard, 'deleteWorker', key, { path: { workerId: first } })).status).toBe(204)
  const message = 'No worker is there that executes major version 1 of send-invoice.'
  const waitingForDetail = { kind: 'worker', name: 'send-invoice', message }
  expect(await read()).toMatchObject({ waitingFor: 'worker', waitingForDetail })
  expect((await register(second, '2.0.0')).status).toBe(200)
  expect(await read()).toMatchObject({ waitingForDetail })
  expect(pageText(await ada.visitor.get(`/runs/${queued.id}`))).toContain(message)
  expect((await register(second, '1.0.0')).status).toBe(200)
  expect(await read()).toMatchObject({ waitingForDetail: null })
})
