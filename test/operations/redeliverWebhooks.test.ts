/** Tests redeliverWebhooks by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint, send, sendTestWebhook } from './requests.ts'

describeOperation(
  'redeliverWebhooks',
  { worker: false },
  {
    202(subject) {
      test('queues the events since the moment again, which have the given status', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const disabled = { path, body: { enabled: false } }
        await send(subject.service, 'updateWebhookEndpoint', account.key, disabled).expect(200)
        const ids: string[] = []
        for (let count = 0; count < 3; count++)
          ids.push(await sendTestWebhook(subject.service, account, path.endpointId))
        await subject.service.change("UPDATE webhook_deliveries SET status = 'failed' WHERE id > ?", ids[0] ?? '')
        const ask = async (since: number, status: string) => {
          const body = { since: new Date(since).toISOString(), status }
          return (await subject.call(account.key, { path, body })).body
        }
        const anHourAgo = Date.now() - 3_600_000
        expect(await ask(Date.now() + 60_000, 'failed')).toEqual({ count: 0, nextSince: null })
        expect(await ask(anHourAgo, 'delivered')).toEqual({ count: 0, nextSince: null })
        expect(await ask(anHourAgo, 'failed')).toEqual({ count: 2, nextSince: null })
      })
    },
  },
)
