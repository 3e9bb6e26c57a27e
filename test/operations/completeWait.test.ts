/** Tests completeWait by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { approve } from './example-runs.ts'
import { cancelledRun, queueRun, send } from './requests.ts'

const name = 'approval'

describeOperation(
  'completeWait',
  { worker: false },
  {
    200(subject) {
      test('stores the first answer, and accepts it again', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name }
        const body = { value: { reason: 'Fine', approved: true } }
        const first = await subject.call(account.key, { path, body })
        expect(first.body).toMatchObject({ ...path, status: 'completed', value: body.value })
        const repeated = { value: { approved: true, reason: 'Fine' } }
        expect((await subject.call(account.key, { path, body: repeated })).body).toEqual(first.body)
      })
    },
    400(subject) {
      test('names the members that do not fit the declared schema', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name }
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path, body: { value: { approved: 'yes' } } }),
          {
            kind: 'invalid-request',
            title: 'Invalid request',
            status: 400,
            errors: [{ pointer: '/value/approved', detail: 'must be boolean' }],
          },
        )
      })
    },
    404(subject) {
      test('does not know a wait that the workflow does not declare', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name: 'other' }
        const body = { value: { approved: true } }
        expect((await subject.call(account.key, { path, body })).status).toBe(404)
      })
    },
    409(subject) {
      test('refuses another answer, and any after the run has ended', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name }
        await send(subject.service, 'completeWait', account.key, { path, body: { value: { approved: true } } }).expect(
          200,
        )
        const problem = { kind: 'wait-ended', title: 'Wait ended', status: 409 }
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path, body: { value: { approved: false } } }),
          {
            ...problem,
            detail: 'The wait "approval" has an answer. Nothing was stored.',
          },
        )
        const ended = { runId: await cancelledRun(subject.service, account, approve), name }
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path: ended, body: { value: { approved: true } } }),
          {
            ...problem,
            detail: 'The wait "approval" is over: its run has ended. Nothing was stored.',
          },
        )
      })
    },
  },
)
