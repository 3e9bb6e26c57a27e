/** Tests getStorageState by documented status. */
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { createContext, send, storageStateFor } from './requests.ts'

describeOperation(
  'getStorageState',
  { worker: false },
  {
    200(subject) {
      test('an empty context has no cookies and no storage', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        expect((await subject.call(account.key, { path })).body).toEqual({ cookies: [], origins: [] })
      })

      test('returns the last stored state', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        for (const body of [storageStateFor('one.example'), storageStateFor('two.example')]) {
          await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
          expect((await subject.call(account.key, { path })).body).toEqual(body)
        }
      })

      test('accepts the id in upper case (RFC 9562, section 4) and a Content-Type without a body', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const body = storageStateFor('one.example')
        await send(subject.service, 'putStorageState', account.key, { path: { browserContextId }, body }).expect(204)
        const path = { browserContextId: browserContextId.toUpperCase() }
        const headers = { 'Content-Type': 'application/json' }
        expect((await subject.call(account.key, { path, headers })).body).toEqual(body)
      })
    },
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    404(subject) {
      testNotFound(subject)

      test('the state of a deleted context is not found', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const body = storageStateFor('one.example')
        await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
        await send(subject.service, 'deleteBrowserContext', account.key, { path }).expect(204)
        const response = await subject.call(account.key, { path })
        expectProblem(subject.operation, response, { kind: 'not-found', title: 'Not found', status: 404 })
      })
    },
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
