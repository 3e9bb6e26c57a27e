/** Tests getSchedule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
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
  },
)
