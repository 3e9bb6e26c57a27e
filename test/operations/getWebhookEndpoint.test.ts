/** Tests getWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createWebhookEndpoint } from './requests.ts'

describeOperation(
  'getWebhookEndpoint',
  { worker: false },
  {
    200(subject) {
      test('returns an endpoint without its secret', async () => {
        const account = await subject.service.createAccount()
        const path = { endpointId: await createWebhookEndpoint(subject.service, account) }
        const { body, text } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ id: path.endpointId, workflowIds: [], tags: [], previousSecretExpiresAt: null })
        expect(text).not.toContain('whsec_')
      })
    },
  },
)
