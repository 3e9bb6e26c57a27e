/** One row that the document does not allow, as if it was damaged by hand, takes no list away; only tests refuse it. */
import { afterEach, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { createSchedule, createWebhookEndpoint, queueRun, send } from './requests.ts'

let service: TestService

afterEach(() => service.stop())

/** Stores a value that no door accepts in each list, and reads the lists. */
async function listDamaged(settings: Record<string, string>) {
  service = await startTestService({ worker: false, settings })
  const account = await service.createAccount()
  const runId = await queueRun(service, account)
  const ids = [await createWebhookEndpoint(service, account), await createSchedule(service, account)]
  await service.change('UPDATE runs SET tags = ? WHERE id = ?', '["a b"]', runId)
  await service.change('UPDATE webhook_endpoints SET url = ? WHERE id = ?', 'ftp://a', ids[0] as string)
  await service.change('UPDATE schedules SET name = ? WHERE id = ?', 'x'.repeat(101), ids[1] as string)
  const operations = ['listRuns', 'listWebhookEndpoints', 'listSchedules'] as const
  const responses = await Promise.all(operations.map((id) => send(service, id, account.key)))
  const logged = service.log.filter(({ msg }) => msg === 'response does not match the document')
  const metrics = await (await fetch(`${service.managementUrl}/metrics`)).text()
  return {
    statuses: responses.map(({ status }) => status),
    ids: responses.map(({ body }) => body.data?.[0]?.id),
    stored: [runId, ...ids],
    places: logged.map(({ operationId, pointer }) => `${operationId} ${pointer}`).sort(),
    counted: /execution_service_undocumented_responses_total\{.*surface="execution".*\} (\d+)/.exec(metrics)?.[1],
  }
}

const places = ['listRuns /data/0/tags/0', 'listSchedules /data/0/name', 'listWebhookEndpoints /data/0/url']

test('in production, the list is sent, its place is logged, and a metric counts it', async () => {
  const { stored, ...damaged } = await listDamaged({ UNDOCUMENTED_RESPONSES: 'send' })
  expect(damaged).toEqual({ statuses: [200, 200, 200], ids: stored, places, counted: '3' })
})

test('in tests, the list is refused, so that no test overlooks it', async () => {
  expect(await listDamaged({})).toMatchObject({ statuses: [500, 500, 500], places, counted: '3' })
})
