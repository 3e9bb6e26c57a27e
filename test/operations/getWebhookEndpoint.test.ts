/** Tests getWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
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
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    404: testNotFound,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
