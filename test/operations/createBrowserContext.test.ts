/** createBrowserContext: every status that its document has. */
import { expect, test } from 'vitest'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
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
import { send } from './requests.ts'

describeOperation(
  'createBrowserContext',
  { worker: false },
  {
    201(subject) {
      test('makes a context of the given name, and says where it is', async () => {
        const { key } = await subject.service.createAccount()
        const { body, headers } = await subject.called(key, { body: { name: 'Shop, signed in' } })
        expect(body).toMatchObject({ name: 'Shop, signed in', updatedAt: body.createdAt })
        expect(headers.location).toBe(`/alpha/browser-contexts/${body.id}`)
        const read = await send(subject.service, 'getBrowserContext', key, { path: { browserContextId: body.id } })
        expect(read.body).toEqual(body)
      })

      test.each([
        ['without a body and without a Content-Type', {}],
        [
          'as the interface shows it: a Content-Type without a body',
          { headers: { 'Content-Type': 'application/json' } },
        ],
        ['with a body that has no name', { body: {} }],
      ])('names a context after its id %s', async (_, filled) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.called(key, filled)
        expect(body.name).toBe(`context-${body.id.slice(-12)}`)
      })

      test.each(['x'.repeat(100), '日本語', 'a  b', '💡', '.', "'; DROP TABLE browser_contexts; --"])(
        'keeps the name %s as it is',
        async (name) => {
          const { key } = await subject.service.createAccount()
          const { body } = await subject.called(key, { body: { name } })
          expect(body.name).toBe(name)
        },
      )

      test('lets two accounts use the same name', async () => {
        const accounts = [await subject.service.createAccount(), await subject.service.createAccount()]
        for (const { key } of accounts) await subject.called(key, { body: { name: 'Shop' } })
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)
      refusesWrongNames(subject)

      test('refuses a member that the document does not have', async () => {
        const errors = [{ pointer: '/colour', detail: 'is not a documented member' }]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"name":"a","colour":"red"}' }), errors)
      })
    },
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    406: refusesOtherMediaTypes,
    409(subject) {
      const taken = {
        kind: 'name-taken',
        title: 'Name taken',
        status: 409,
        detail: 'The account already has a browser context with this name. Nothing was stored.',
        errors: [{ pointer: '/name', detail: 'is taken' }],
      }

      test('refuses a name that the account uses already', async () => {
        const { key } = await subject.service.createAccount()
        await send(subject.service, 'createBrowserContext', key, { body: { name: 'Shop' } }).expect(201)
        expectProblem(subject.operation, await subject.called(key, { body: { name: 'Shop' } }), taken)
        const listed = await send(subject.service, 'listBrowserContexts', key)
        expect(listed.body.data).toHaveLength(1)
      })

      test('makes one context when a name is used by many callers at the same time', async () => {
        const { key } = await subject.service.createAccount()
        const create = () => send(subject.service, 'createBrowserContext', key, { body: { name: 'Shop' } })
        const statuses = (await Promise.all(Array.from({ length: 20 }, create))).map(({ status }) => status)
        expect(statuses.filter((status) => status === 201)).toHaveLength(1)
        expect(statuses.filter((status) => status === 409)).toHaveLength(19)
      })
    },
    413: refusesLargeBodies,
    415: refusesOtherBodies,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
