/** getStorageState: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import { createContext, send, stateOf } from './requests.ts'

describeOperation(
  'getStorageState',
  { worker: false },
  {
    200(subject) {
      test('shows an empty context as one without cookies and storage', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        expect((await subject.called(account.key, { path })).body).toEqual({ cookies: [], origins: [] })
      })

      test('shows what was stored last', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        for (const body of [stateOf('one.example'), stateOf('two.example')]) {
          await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
          expect((await subject.called(account.key, { path })).body).toEqual(body)
        }
      })

      test('takes the id in upper case too (RFC 9562, section 4), and a Content-Type without a body', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const body = stateOf('one.example')
        await send(subject.service, 'putStorageState', account.key, { path: { browserContextId }, body }).expect(204)
        const path = { browserContextId: browserContextId.toUpperCase() }
        const headers = { 'Content-Type': 'application/json' }
        expect((await subject.called(account.key, { path, headers })).body).toEqual(body)
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404(subject) {
      hidesOtherAccounts(subject)

      test('does not know the state of a context that was deleted', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const body = stateOf('one.example')
        await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
        await send(subject.service, 'deleteBrowserContext', account.key, { path }).expect(204)
        const answer = await subject.called(account.key, { path })
        expectProblem(subject.operation, answer, { kind: 'not-found', title: 'Not found', status: 404 })
      })
    },
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
