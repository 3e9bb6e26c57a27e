/** Tests listSettings by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectPages, testOtherCursor } from './list-tests.ts'
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
      testOtherCursor(subject, putSetting)
    },
  },
)
