/** Tests deleteSchedule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createSchedule, send } from './requests.ts'

describeOperation(
  'deleteSchedule',
  { worker: false },
  {
    204(subject) {
      test('erases a schedule and keeps its runs', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        const run = await send(subject.service, 'triggerSchedule', account.key, { path })
        await subject.call(account.key, { path })
        await send(subject.service, 'getSchedule', account.key, { path }).expect(404)
        expect(await subject.service.rows('SELECT id FROM schedules WHERE id = ?', path.scheduleId)).toEqual([])
        await send(subject.service, 'getRun', account.key, { path: { runId: run.body.id } }).expect(200)
      })
    },
  },
)
