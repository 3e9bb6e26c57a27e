/** Tests deleteWorker by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { claimedAttempt, registerWorker, send } from './requests.ts'

describeOperation(
  'deleteWorker',
  { worker: false },
  {
    204(subject) {
      test('removes the worker, whose runs are ready at once', async () => {
        const account = await subject.service.createAccount()
        const { workerId, runId } = await claimedAttempt(subject.service, account)
        await subject.call(account.key, { path: { workerId } })
        const other = await registerWorker(subject.service, account)
        const claim = { path: { workerId: other }, body: { countMax: 1 } }
        const { body } = await send(subject.service, 'claimRuns', account.key, claim).expect(200)
        expect(body.data).toMatchObject([{ runId, attempt: 2 }])
      })
    },
  },
)
