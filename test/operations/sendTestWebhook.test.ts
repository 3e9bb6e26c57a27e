/** Tests sendTestWebhook by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint, send } from './requests.ts'

describeOperation(
  'sendTestWebhook',
  { worker: false },
  {
    202(subject) {
      test('queues a delivery of a test event', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ event: 'webhook.test', runId: null, status: 'pending', attempts: 0 })
        const listed = await send(subject.service, 'listWebhookDeliveries', account.key, { path })
        expect(listed.body.data).toEqual([expect.objectContaining({ id: body.id })])
      })
    },
  },
)
