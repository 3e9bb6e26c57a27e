/** Tests deleteNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createNotificationRule, send } from './requests.ts'

describeOperation(
  'deleteNotificationRule',
  { worker: false },
  {
    204(subject) {
      test('erases a rule with its messages', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        await send(subject.service, 'testNotificationRule', account.key, { path }).expect(202)
        await subject.call(account.key, { path })
        await send(subject.service, 'getNotificationRule', account.key, { path }).expect(404)
        const sql = 'SELECT id FROM webhook_deliveries WHERE endpoint_id = ?'
        expect(await subject.service.rows(sql, path.ruleId)).toEqual([])
      })
    },
  },
)
