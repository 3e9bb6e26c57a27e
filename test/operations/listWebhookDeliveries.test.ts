/** Tests listWebhookDeliveries by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint, queueRun, send, sendTestWebhook } from './requests.ts'

describeOperation(
  'listWebhookDeliveries',
  { worker: false },
  {
    200(subject) {
      test('lists the event of a run that was cancelled, to matching endpoints only', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const other = { endpointId: await createWebhookEndpoint(subject.service, account, { events: ['run.failed'] }) }
        const runId = await queueRun(subject.service, account)
        await send(subject.service, 'cancelRun', account.key, { path: { runId } }).expect(200)
        const { body } = await subject.call(account.key, { path })
        expect(body.data).toEqual([expect.objectContaining({ event: 'run.cancelled', runId })])
        expect((await subject.call(account.key, { path: other })).body.data).toEqual([])
      })

      test('lists deliveries newest first, by status, on pages of any size', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const ids: string[] = []
        for (let count = 0; count < 3; count++)
          ids.unshift(await sendTestWebhook(subject.service, account, path.endpointId))
        const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)
        expect(idsOf((await subject.call(account.key, { path, query: 'status=pending' })).body)).toEqual(ids)
        expect((await subject.call(account.key, { path, query: 'status=delivered' })).body.data).toEqual([])
        const first = await subject.call(account.key, { path, query: 'limit=2' })
        const second = await subject.call(account.key, { path, query: `limit=2&cursor=${first.body.nextCursor}` })
        expect([...idsOf(first.body), ...idsOf(second.body)]).toEqual(ids)
      })
    },
    400(subject) {
      test('refuses a cursor of another endpoint', async () => {
        const account = await subject.service.createAccount()
        const endpointId = await createWebhookEndpoint(subject.service, account)
        for (let count = 0; count < 2; count++) await sendTestWebhook(subject.service, account, endpointId)
        const list = { path: { endpointId }, query: 'limit=1' }
        const { body } = await send(subject.service, 'listWebhookDeliveries', account.key, list)
        const other = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const response = await subject.call(account.key, { path: other, query: `limit=1&cursor=${body.nextCursor}` })
        expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      })
    },
  },
)
