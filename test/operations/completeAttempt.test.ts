/** Tests completeAttempt by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'completeAttempt',
  { worker: false },
  {
    200(subject) {
      test('ends the run', async () => {
        const { request } = await subject.caller()
        expect((await subject.send(request)).body).toEqual({ status: 'succeeded', reason: null })
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path, body: { outcome: 'cancelled' } }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
