/** Tests getBulkAction by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { queueRun, send } from './requests.ts'

describeOperation(
  'getBulkAction',
  { worker: false },
  {
    200(subject) {
      test('shows the counts of an action that has finished', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const created = await send(subject.service, 'bulkCancelRuns', account.key, { body: { workflowId: 'greet' } })
        const path = { bulkActionId: created.body.id }
        const finished = { kind: 'cancel', status: 'finished', matched: 1, done: 1, skipped: 0, failed: 0 }
        const read = async () => (await subject.call(account.key, { path })).body
        await expect.poll(read, { interval: 500 }).toMatchObject({ ...finished, total: 1 })
        expect((await read()).runsPerSecond).toBeGreaterThan(0)
        const run = await send(subject.service, 'getRun', account.key, { path: { runId } })
        expect(run.body.status).toBe('cancelled')
      })
    },
  },
)
