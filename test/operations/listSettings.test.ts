/** Tests listSettings by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { expectPages, testOtherCursor } from './list-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { putSetting } from './requests.ts'

describeOperation(
  'listSettings',
  { worker: false },
  {
    200(subject) {
      test('lists settings by name, with their values, on pages of any size', async () => {
        const account = await subject.service.createAccount()
        expect((await subject.call(account.key)).body).toEqual({ data: [], nextCursor: null })
        for (const name of ['C', 'A', 'B_2']) await putSetting(subject.service, account, name, `value of ${name}`)
        const whole = await subject.call(account.key)
        expect(whole.body.data.map(({ name }: { name: string }) => name)).toEqual(['A', 'B_2', 'C'])
        expect(whole.text.includes('value of')).toBe(true)
        await expectPages(subject, account, whole)
      })
    },
    400(subject) {
      testInvalidRequest(subject)

      testOtherCursor(subject, putSetting)
    },
    401: testUnauthorized,
    403: testForbidden,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
