/** Tests updateNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectInvalid } from './guards.ts'
import { createNotificationRule, send } from './requests.ts'

describeOperation(
  'updateNotificationRule',
  { worker: false },
  {
    200(subject) {
      test('changes the given members and nothing else', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        const before = (await send(subject.service, 'getNotificationRule', account.key, { path })).body
        const changed = await subject.call(account.key, { path, body: { events: ['run.expired'] } })
        expect(changed.body).toEqual({ ...before, events: ['run.expired'] })
      })

      test('disables and enables a rule', async () => {
        const account = await subject.service.createAccount()
        const path = { ruleId: await createNotificationRule(subject.service, account) }
        const disabled = await subject.call(account.key, { path, body: { enabled: false } })
        expect(disabled.body).toMatchObject({ enabled: false })
        const enabled = await subject.call(account.key, { path, body: { enabled: true } })
        expect(enabled.body).toMatchObject({ enabled: true })
      })
    },
    400(subject) {
      test('refuses recipients of a webhook', async () => {
        const errors = [{ pointer: '/recipients', detail: 'must be absent or empty for the channel slack' }]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"recipients":["a@b.example"]}' }), errors)
      })

      test('refuses a URL with a private address', async () => {
        const errors = [
          { pointer: '/url', detail: 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows' },
        ]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"url":"https://10.0.0.1/"}' }), errors)
      })
    },
  },
)
