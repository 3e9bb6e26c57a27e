/** listBrowserContexts: every status that its document has. */
import { expect, test } from 'vitest'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'listBrowserContexts',
  { worker: false },
  {
    200(subject) {
      test('lists no contexts of an account that has none', async () => {
        const { key } = await subject.service.createAccount()
        expect((await subject.called(key)).body).toEqual({ data: [], nextCursor: null })
      })

      test('lists contexts as they are read one by one, newest first, each once on pages of any size', async () => {
        const account = await subject.service.createAccount()
        const ids: string[] = []
        for (const name of ['a', 'b', 'c']) ids.unshift(await createContext(subject.service, account, name))
        const whole = await subject.called(account.key)
        const one = await send(subject.service, 'getBrowserContext', account.key, {
          path: { browserContextId: ids[0] ?? '' },
        })
        expect(whole.body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        expect(whole.body.data[0]).toEqual(one.body)
        const first = await subject.called(account.key, { query: 'limit=2' })
        const second = await subject.called(account.key, { query: `limit=2&cursor=${first.body.nextCursor}` })
        expect([...first.body.data, ...second.body.data]).toEqual(whole.body.data)
        expect(second.body.nextCursor).toBeNull()
      })

      test('accepts the request that the interface shows: a Content-Type without a body', async () => {
        const { key } = await subject.service.createAccount()
        await subject.called(key, { headers: { 'Content-Type': 'application/json' } })
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)

      test('refuses a cursor of another account', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        for (const name of ['a', 'b']) await createContext(subject.service, account, name)
        const { body } = await send(subject.service, 'listBrowserContexts', account.key, { query: 'limit=1' })
        const answer = await subject.called(other.key, { query: `limit=1&cursor=${body.nextCursor}` })
        expect(answer.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      })
    },
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
