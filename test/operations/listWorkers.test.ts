/** Tests listWorkers by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { registerWorker, send } from './requests.ts'

describeOperation(
  'listWorkers',
  { worker: false },
  {
    200(subject) {
      test('lists the workers of the account, in pages, also when the last one of a page has signed off', async () => {
        const account = await subject.service.createAccount()
        const ids = [await registerWorker(subject.service, account), await registerWorker(subject.service, account)]
        const first = await subject.call(account.key, { query: 'limit=1' })
        const path = { workerId: first.body.data[0].id }
        await send(subject.service, 'deleteWorker', account.key, { path }).expect(204)
        const next = await subject.call(account.key, { query: `limit=1&cursor=${first.body.nextCursor}` })
        const found = [...first.body.data, ...next.body.data]
        expect(found.map(({ id }: { id: string }) => id)).toEqual(ids)
        expect(found[0]).toMatchObject({
          name: 'billing',
          capacity: 4,
          workflows: [{ id: 'send-invoice', version: '1.0.0' }],
        })
      })
    },
  },
)
