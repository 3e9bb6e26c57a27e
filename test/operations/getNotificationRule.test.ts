/** Tests getNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createNotificationRule } from './requests.ts'

describeOperation(
  'getNotificationRule',
  { worker: false },
  {
    200(subject) {
      test('returns a rule without the address of its webhook', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        const { body, text } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ id: path.ruleId, workflowIds: [], host: 'localhost' })
        expect(text).not.toContain('canary')
      })
    },
  },
)
