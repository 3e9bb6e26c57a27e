/** Tests listSchedules by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectPages, testOtherCursor } from './list-tests.ts'
import { createSchedule } from './requests.ts'

describeOperation(
  'listSchedules',
  { worker: false },
  {
    200(subject) {
      test('lists schedules newest first, on pages of any size', async () => {
        const account = await subject.service.createAccount()
        expect((await subject.call(account.key)).body).toEqual({ data: [], nextCursor: null })
        const ids: string[] = []
        for (let count = 0; count < 3; count++) ids.unshift(await createSchedule(subject.service, account))
        const whole = await subject.call(account.key)
        expect(whole.body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        await expectPages(subject, account, whole)
      })
    },
    400(subject) {
      testOtherCursor(subject, (service, account) => createSchedule(service, account))
    },
  },
)
