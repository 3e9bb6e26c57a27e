/** Tests listRunWaits by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
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
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    404: testNotFound,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
