/** Tests getSchedule by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { createSchedule } from './requests.ts'

describeOperation(
  'getSchedule',
  { worker: false },
  {
    200(subject) {
      test('shows a paused schedule without next times, and says why', async () => {
        const account = await subject.service.createAccount()
        const scheduleId = await createSchedule(subject.service, account, { paused: true, name: 'Leap day' })
        const { body } = await subject.call(account.key, { path: { scheduleId } })
        expect(body).toMatchObject({ name: 'Leap day', paused: true, pausedReason: 'request', nextRunsAt: [] })
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
