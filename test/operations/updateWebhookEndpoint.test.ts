/** Tests updateWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectInvalid } from './guards.ts'
import { createWebhookEndpoint, send } from './requests.ts'

describeOperation(
  'updateWebhookEndpoint',
  { worker: false },
  {
    200(subject) {
      test('changes the given members and nothing else', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const before = (await send(subject.service, 'getWebhookEndpoint', account.key, { path })).body
        const changed = await subject.call(account.key, { path, body: { events: ['run.expired'] } })
        expect(changed.body).toEqual({ ...before, events: ['run.expired'] })
      })

      test('disables and enables an endpoint', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const disabled = await subject.call(account.key, { path, body: { enabled: false } })
        expect(disabled.body).toMatchObject({ enabled: false, disabledReason: 'request' })
        const enabled = await subject.call(account.key, { path, body: { enabled: true } })
        expect(enabled.body).toMatchObject({ enabled: true, disabledReason: null })
      })
    },
    400(subject) {
      test('refuses a URL with a private address', async () => {
        const errors = [
          { pointer: '/url', detail: 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows' },
        ]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"url":"https://10.0.0.1/"}' }), errors)
      })
    },
  },
)
