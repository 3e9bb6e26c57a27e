/** Tests listNotificationRules by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { createNotificationRule, send } from './requests.ts'

describeOperation(
  'listNotificationRules',
  { worker: false },
  {
    200(subject) {
      test('lists rules newest first, without addresses, on pages of any size', async () => {
        const account = await subject.service.createAccount()
        expect((await subject.call(account.key)).body).toEqual({ data: [], nextCursor: null })
        const ids: string[] = []
        for (let count = 0; count < 3; count++) ids.unshift(await createNotificationRule(subject.service, account))
        const whole = await subject.call(account.key)
        expect(whole.body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        expect(whole.text).not.toContain('canary')
        const first = await subject.call(account.key, { query: 'limit=2' })
        const second = await subject.call(account.key, { query: `limit=2&cursor=${first.body.nextCursor}` })
        expect([...first.body.data, ...second.body.data]).toEqual(whole.body.data)
        expect(second.body.nextCursor).toBeNull()
      })
    },
    400(subject) {
      testInvalidRequest(subject)

      test('refuses a cursor of another account', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        for (let count = 0; count < 2; count++) await createNotificationRule(subject.service, account)
        const { body } = await send(subject.service, 'listNotificationRules', account.key, { query: 'limit=1' })
        const response = await subject.call(other.key, { query: `limit=1&cursor=${body.nextCursor}` })
        expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      })
    },
    401: testUnauthorized,
    403: testForbidden,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
