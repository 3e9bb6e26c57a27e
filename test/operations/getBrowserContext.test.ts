/** getBrowserContext: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { createContext, holdContext, queueRun, send, stateOf } from './requests.ts'

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
        expect(body).toEqual({
          id: browserContextId,
          name: 'Shop',
          status: 'empty',
          heldByRunId: null,
          version: 0,
          cookieDomains: [],
          sizeBytes: 0,
          createdAt,
          updatedAt: createdAt,
          lastUsedAt: null,
        })
      })

      test('shows what is stored in it: how much, for which sites, and how often it was replaced', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        const stored = stateOf('shop.example.com', '.example.com', 'shop.example.com')
        for (const body of [stateOf('other.example'), stored]) {
          await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
        }
        const { body } = await subject.called(account.key, { path })
        const sizeBytes = Buffer.byteLength(JSON.stringify(stored))
        expect(body).toMatchObject({ status: 'ready', version: 2, sizeBytes, lastUsedAt: null })
        expect(body.cookieDomains).toEqual(['.example.com', 'shop.example.com'])
        expect(Date.parse(body.updatedAt)).toBeGreaterThanOrEqual(Date.parse(body.createdAt))
      })

      test('shows which run holds it', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        const runId = await queueRun(subject.service, account)
        await holdContext(subject.service, path.browserContextId, runId)
        const { body } = await subject.called(account.key, { path })
        expect(body).toMatchObject({ status: 'inUse', heldByRunId: runId })
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404: hidesOtherAccounts,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
