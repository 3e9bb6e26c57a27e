/** Tests rotateWebhookSecret by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint } from './requests.ts'

describeOperation(
  'rotateWebhookSecret',
  { worker: false },
  {
    200(subject) {
      test('returns a new secret, and says until when the previous one is valid', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const first = (await subject.call(account.key, { path })).body
        const second = (await subject.call(account.key, { path })).body
        expect(second.secret).not.toBe(first.secret)
        const hours = (Date.parse(second.previousSecretExpiresAt) - Date.now()) / 3_600_000
        expect(hours).toBeGreaterThan(23)
        expect(hours).toBeLessThanOrEqual(24)
      })
    },
  },
)
