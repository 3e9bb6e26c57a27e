/** deleteBrowserContext: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesWhatIsNotDocumented } from './alike-requests.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'deleteBrowserContext',
  { worker: false },
  {
    204(subject) {
      test('erases a context, and frees its name', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.called(account.key, { path })
        await send(subject.service, 'getBrowserContext', account.key, { path }).expect(404)
        expect((await send(subject.service, 'listBrowserContexts', account.key)).body.data).toEqual([])
        await createContext(subject.service, account, 'Shop')
      })

      test('has no body to negotiate: an Accept of any kind is served', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.called(account.key, { path, headers: { Accept: 'image/png' } })
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404(subject) {
      hidesOtherAccounts(subject)

      test('does not know a context that was deleted', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await send(subject.service, 'deleteBrowserContext', account.key, { path }).expect(204)
        const answer = await subject.called(account.key, { path })
        expectProblem(subject.operation, answer, { kind: 'not-found', title: 'Not found', status: 404 })
      })
    },
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
