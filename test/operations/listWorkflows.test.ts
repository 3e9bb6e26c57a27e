/** Tests listWorkflows by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { send } from './requests.ts'

describeOperation(
  'listWorkflows',
  { worker: false },
  {
    200(subject) {
      test('lists every workflow sorted by id, as getWorkflow returns it', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        const ids = body.data.map(({ id }: { id: string }) => id)
        expect(ids).toEqual(['betray', 'count-words', 'greet', 'hold', 'misreport', 'print', 'single'])
        for (const workflow of body.data) {
          const one = await send(subject.service, 'getWorkflow', key, { path: { workflowId: workflow.id } })
          expect(one.body).toEqual(workflow)
        }
      })
    },
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
