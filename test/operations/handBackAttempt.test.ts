/** Tests handBackAttempt by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'handBackAttempt',
  { worker: false },
  {
    204(subject) {
      test('returns the run to the queue, with the reason that the worker gives', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        await subject.call(account.key, { path: { runId, attempt }, body: { message: 'The printer is out of paper.' } })
        const { body } = await send(subject.service, 'getRun', account.key, { path: { runId } }).expect(200)
        expect(body).toMatchObject({ status: 'queued', waitingFor: 'deployment' })
        expect(body.waitingForDetail.message).toContain('The printer is out of paper.')
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path, body: {} }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
