/** Tests listBrowserContexts by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectPages, testOtherCursor } from './list-tests.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'listBrowserContexts',
  { worker: false },
  {
    200(subject) {
      test('a new account has no contexts', async () => {
        const { key } = await subject.service.createAccount()
        expect((await subject.call(key)).body).toEqual({ data: [], nextCursor: null })
      })

      test('lists contexts newest first, each once on pages of any size', async () => {
        const account = await subject.service.createAccount()
        const ids: string[] = []
        for (const name of ['a', 'b', 'c']) ids.unshift(await createContext(subject.service, account, name))
        const whole = await subject.call(account.key)
        const one = await send(subject.service, 'getBrowserContext', account.key, {
          path: { browserContextId: ids[0] ?? '' },
        })
        expect(whole.body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        expect(whole.body.data[0]).toEqual(one.body)
        await expectPages(subject, account, whole)
      })

      test('finds a context by its exact name', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const name = 'Shöp & Co, signed in'
        const id = await createContext(subject.service, account, name)
        await createContext(subject.service, account, `${name} too`)
        await createContext(subject.service, other, name)
        const find = async (searched: string) =>
          (await subject.call(account.key, { query: `limit=1&name=${encodeURIComponent(searched)}` })).body
        expect(await find(name)).toEqual({ data: [expect.objectContaining({ id, name })], nextCursor: null })
        for (const searched of [name.toLowerCase(), name.slice(0, -1), `${name}%`, 'other'])
          expect(await find(searched)).toEqual({ data: [], nextCursor: null })
        await send(subject.service, 'deleteBrowserContext', account.key, { path: { browserContextId: id } }).expect(204)
        expect(await find(name)).toEqual({ data: [], nextCursor: null })
      })

      test('accepts the request that the interface shows: a Content-Type without a body', async () => {
        const { key } = await subject.service.createAccount()
        await subject.call(key, { headers: { 'Content-Type': 'application/json' } })
      })
    },
    400(subject) {
      testOtherCursor(subject, createContext)

      test('refuses a cursor of a list with another name', async () => {
        const account = await subject.service.createAccount()
        for (const name of ['a', 'b']) await createContext(subject.service, account, name)
        const { body } = await send(subject.service, 'listBrowserContexts', account.key, { query: 'limit=1' })
        const response = await subject.call(account.key, { query: `limit=1&name=a&cursor=${body.nextCursor}` })
        expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      })

      test.each(['', ' a', 'a'.repeat(101), 'a%0Ab'])('refuses the name "%s"', async (name) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { query: `name=${name.replace(' ', '%20')}` })
        expect(body.errors[0]).toMatchObject({ parameter: 'name' })
      })
    },
  },
)
