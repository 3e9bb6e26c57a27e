/** Tests testNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createNotificationRule, send } from './requests.ts'

describeOperation(
  'testNotificationRule',
  { worker: false },
  {
    202(subject) {
      test('queues a message, once in a minute, which the rule shows', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ status: 'pending', attempts: 0, lastAttemptAt: null, error: null })
        expect((await subject.call(account.key, { path })).body.id).toBe(body.id)
        const rule = await send(subject.service, 'getNotificationRule', account.key, { path })
        expect(rule.body.lastMessage.id).toBe(body.id)
      })
    },
  },
)
