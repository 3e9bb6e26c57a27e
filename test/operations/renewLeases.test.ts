/** Tests renewLeases by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import {
  testContentTooLarge,
  testInvalidRequest,
  testNotAcceptable,
  testUnsupportedMediaType,
} from './request-tests.ts'

describeOperation(
  'renewLeases',
  { worker: false },
  {
    200(subject) {
      test('extends a lease', async () => {
        const { request } = await subject.caller()
        const { body } = await subject.send(request)
        expect(body).toMatchObject({ extended: [{ attempt: 1 }], cancelled: [], lost: [] })
        expect(Date.parse(body.leaseExpiresAt)).toBeGreaterThan(Date.now())
      })
    },
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    404: testNotFound,
    406: testNotAcceptable,
    413: testContentTooLarge,
    415: testUnsupportedMediaType,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
