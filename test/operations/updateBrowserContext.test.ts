/** updateBrowserContext: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import {
  expectInvalid,
  refusesLargeBodies,
  refusesOtherBodies,
  refusesOtherMediaTypes,
  refusesWhatIsNotDocumented,
  refusesWrongNames,
} from './alike-requests.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'updateBrowserContext',
  { worker: false },
  {
    200(subject) {
      test('renames a context, and changes nothing else of it', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Before') }
        const before = await send(subject.service, 'getBrowserContext', account.key, { path })
        const { body } = await subject.called(account.key, { path, body: { name: 'After' } })
        expect(body).toEqual({ ...before.body, name: 'After', updatedAt: body.updatedAt })
        expect(Date.parse(body.updatedAt)).toBeGreaterThanOrEqual(Date.parse(body.createdAt))
        const after = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(after.body).toEqual(body)
      })

      test('lets a context keep its name, and frees the name that it gives up', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.called(account.key, { path, body: { name: 'Shop' } })
        await subject.called(account.key, { path, body: { name: 'Other' } })
        await createContext(subject.service, account, 'Shop')
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)
      refusesWrongNames(subject)

      test('needs a body, and in it a name', async () => {
        const { body: _, ...nothing } = (await subject.caller()).request
        await expectInvalid(subject, () => nothing, [{ pointer: '', detail: 'is required' }])
        const errors = [{ pointer: '/name', detail: 'is required' }]
        await expectInvalid(subject, (request) => ({ ...request, body: '{}' }), errors)
      })
    },
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404: hidesOtherAccounts,
    406: refusesOtherMediaTypes,
    409(subject) {
      test('refuses the name of another context of the account', async () => {
        const account = await subject.service.createAccount()
        await createContext(subject.service, account, 'Taken')
        const path = { browserContextId: await createContext(subject.service, account, 'Mine') }
        const answer = await subject.called(account.key, { path, body: { name: 'Taken' } })
        expectProblem(subject.operation, answer, {
          kind: 'name-taken',
          title: 'Name taken',
          status: 409,
          errors: [{ pointer: '/name', detail: 'is taken' }],
        })
        const after = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(after.body.name).toBe('Mine')
      })
    },
    413: refusesLargeBodies,
    415: refusesOtherBodies,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
