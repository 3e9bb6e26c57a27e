/** Tests claimRuns by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { invoice } from './example-runs.ts'
import { queueRun, registerWorker } from './requests.ts'

describeOperation(
  'claimRuns',
  { worker: false },
  {
    200(subject) {
      test('leases the oldest runs', async () => {
        const account = await subject.service.createAccount()
        const workerId = await registerWorker(subject.service, account)
        const ids: string[] = []
        for (let count = 0; count < 3; count += 1) ids.push(await queueRun(subject.service, account, invoice))
        const { body } = await subject.call(account.key, { path: { workerId }, body: { countMax: 2 } })
        expect(body.data.map(({ runId }: { runId: string }) => runId)).toEqual(ids.slice(0, 2))
      })
    },
    204(subject) {
      test('says that no run came', async () => {
        const account = await subject.service.createAccount()
        const workerId = await registerWorker(subject.service, account)
        await subject.call(account.key, { path: { workerId }, body: { countMax: 1, waitSeconds: 1 } })
      })
    },
  },
)
