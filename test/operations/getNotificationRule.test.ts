/** Tests getNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { createNotificationRule } from './requests.ts'

describeOperation(
  'getNotificationRule',
  { worker: false },
  {
    200(subject) {
      test('returns a rule without the address of its webhook', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        const { body, text } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ id: path.ruleId, workflowIds: [], host: 'localhost' })
        expect(text).not.toContain('canary')
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
