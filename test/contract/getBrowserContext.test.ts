/** getBrowserContext: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { createContext } from './requests.ts'

describeOperation(
  'getBrowserContext',
  { worker: false },
  {
    200(subject) {
      test('shows a context as it was made', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account, 'Shop')
        const { body } = await subject.called(account.key, { path: { browserContextId } })
        const { createdAt } = body
        expect(body).toEqual({ id: browserContextId, name: 'Shop', createdAt, updatedAt: createdAt })
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404: hidesOtherAccounts,
    406: refusesOtherMediaTypes,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
