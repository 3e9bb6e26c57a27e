/** Tests listRunWaits by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { answeredRun } from './requests.ts'

describeOperation(
  'listRunWaits',
  { worker: false },
  {
    200(subject) {
      test('shows an answer that came before the run has reached its wait', async () => {
        const account = await subject.service.createAccount()
        const runId = await answeredRun(subject.service, account)
        const { body } = await subject.call(account.key, { path: { runId } })
        const wait = { runId, name: 'approval', kind: 'answer', status: 'completed', createdAt: null, title: 'Refund?' }
        expect(body.data).toMatchObject([{ ...wait, value: { approved: true }, deadline: null, calledRunId: null }])
        expect(body.data[0].schema.required).toEqual(['approved'])
        expect(body.data[0].completedBy).toEqual({
          apiKeyId: expect.any(String),
          userId: null,
          linkId: null,
          address: '127.0.0.1',
        })
      })
    },
  },
)
