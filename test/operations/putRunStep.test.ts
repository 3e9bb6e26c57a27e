/** Tests putRunStep by documented status. */
import { test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'putRunStep',
  { worker: false },
  {
    204(subject) {
      test('stores the result, and accepts it again', async () => {
        const { request } = await subject.caller()
        await subject.send(request)
        await subject.send(request)
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt, stepName: 'charge' }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path, body: { value: 1 } }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
