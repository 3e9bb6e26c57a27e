/** With an address for webhooks, the mock sends signed events of its runs, and test events. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { startMock } from '../../src/tools/mock/mock.ts'
import { validKey } from '../../src/tools/mock/mock-keys.ts'
import { mockSecret } from '../../src/tools/mock/mock-webhooks.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { jumpingClock, testedWorkflows } from './use-mock.ts'

test('a receiver verifies the events of runs that end and of sendTestWebhook with the documented secret', async (test) => {
  const receiver = await startWebhookReceiver(test)
  const mock = await startMock({
    host: '127.0.0.1',
    executionPort: 0,
    browserContextPort: 0,
    log: pino({ level: 'silent' }),
    workflows: await testedWorkflows(),
    webhook: receiver.url('/hooks'),
    clock: jumpingClock(),
  })
  test.onTestFinished(() => mock.stop())
  const client = createExecutionClient({ baseUrl: mock.executionUrl, apiKey: validKey.value })
  const given = { url: 'https://example.com/hooks', events: ['run.succeeded' as const] }
  const { id: endpointId, secret } = unwrap(await client.createWebhookEndpoint({ body: given }))
  expect(secret).toBe(mockSecret)
  receiver.accept('/hooks', { secret })

  unwrap(await client.sendTestWebhook({ params: { path: { endpointId } } }))
  await expect.poll(() => receiver.received('/hooks').map(({ event }) => event.type)).toEqual(['webhook.test'])
  const request = {
    params: { path: { workflowId: 'greet' } },
    body: { variableData: { name: 'Ada', token: 'a-secret' } },
  }
  const run = unwrap(await client.queueRemoteRun(request))
  await expect.poll(() => receiver.received('/hooks')).toHaveLength(2)
  const { event } = receiver.received('/hooks')[1] ?? {}
  expect(event).toMatchObject({
    type: 'run.succeeded',
    data: { runId: run.id, workflowId: 'greet', status: 'succeeded', reason: null, tags: [] },
  })
  const members = ['runId', 'workflowId', 'status', 'reason', 'tags', 'attempts', 'createdAt', 'finishedAt']
  expect(Object.keys(event?.data ?? {}).sort()).toEqual(members.sort())
  const again = unwrap(await client.rerunRun({ params: { path: { runId: run.id } } }))
  await expect.poll(() => receiver.received('/hooks').at(2)?.event).toMatchObject({ data: { runId: again.id } })
  expect(receiver.refused).toEqual([])
})
