/** Tests redeliverWebhook by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint, send, sendTestWebhook } from './requests.ts'

describeOperation(
  'redeliverWebhook',
  { worker: false },
  {
    202(subject) {
      test('queues a delivered event again with its id', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const deliveryId = await sendTestWebhook(subject.service, account, path.endpointId)
        await subject.service.change("UPDATE webhook_deliveries SET status = 'delivered' WHERE id = ?", deliveryId)
        const { body } = await subject.call(account.key, { path: { ...path, deliveryId } })
        expect(body).toMatchObject({ id: deliveryId, status: 'pending' })
      })

      test('does not find a delivery of another endpoint', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const other = await createWebhookEndpoint(subject.service, account)
        const deliveryId = await sendTestWebhook(subject.service, account, other)
        const wrong = { path: { ...path, deliveryId } }
        await send(subject.service, 'redeliverWebhook', account.key, wrong).expect(404)
        await subject.call(account.key, { path: { endpointId: other, deliveryId } })
      })
    },
  },
)
