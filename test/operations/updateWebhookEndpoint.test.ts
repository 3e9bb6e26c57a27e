/** Tests updateWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import {
  expectInvalid,
  testContentTooLarge,
  testInvalidRequest,
  testNotAcceptable,
  testUnsupportedMediaType,
} from './request-tests.ts'
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
      testInvalidRequest(subject)

      test('refuses a URL with a private address', async () => {
        const errors = [
          { pointer: '/url', detail: 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows' },
        ]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"url":"https://10.0.0.1/"}' }), errors)
      })
    },
    401: testUnauthorized,
    403: testForbidden,
    404: testNotFound,
    406: testNotAcceptable,
    413: testContentTooLarge,
    415: testUnsupportedMediaType,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
