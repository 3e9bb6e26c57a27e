/** Tests deleteWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint, send } from './requests.ts'

describeOperation(
  'deleteWebhookEndpoint',
  { worker: false },
  {
    204(subject) {
      test('erases an endpoint with its deliveries', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        await send(subject.service, 'sendTestWebhook', account.key, { path }).expect(202)
        await subject.call(account.key, { path })
        await send(subject.service, 'getWebhookEndpoint', account.key, { path }).expect(404)
        const sql = 'SELECT id FROM webhook_deliveries WHERE endpoint_id = ?'
        expect(await subject.service.rows(sql, path.endpointId)).toEqual([])
      })
    },
  },
)
