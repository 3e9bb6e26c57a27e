/** Tests listBrowserContextVersions by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createContext, putState, send, storageStateFor } from './requests.ts'

describeOperation(
  'listBrowserContextVersions',
  { worker: false },
  {
    200(subject) {
      test('an empty context has no versions', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        expect((await subject.call(account.key, { path })).body).toEqual({ data: [], nextCursor: null })
      })

      test('lists the kept versions newest first, each once on pages of any size', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const states = [1, 2, 3, 4, 5, 6].map((index) => storageStateFor(`${index}.example`))
        for (const state of states) await putState(subject.service, account, browserContextId, state)
        const path = { browserContextId }
        const whole = (await subject.call(account.key, { path })).body
        expect(whole.nextCursor).toBeNull()
        expect(whole.data).toEqual(
          [6, 5, 4, 3, 2].map((version) => ({
            version,
            isCurrent: version === 6,
            cookieDomains: [`${version}.example`],
            sizeBytes: Buffer.byteLength(JSON.stringify(states[version - 1])),
            runId: null,
            restoredFrom: null,
            createdAt: expect.any(String),
          })),
        )
        const first = (await subject.call(account.key, { path, query: 'limit=3' })).body
        const second = await subject.call(account.key, { path, query: `limit=3&cursor=${first.nextCursor}` })
        expect([...first.data, ...second.body.data]).toEqual(whole.data)
        expect(second.body.nextCursor).toBeNull()
      })
    },
    400(subject) {
      test('refuses a cursor of another context', async () => {
        const account = await subject.service.createAccount()
        const cursorOf = async () => {
          const browserContextId = await createContext(subject.service, account)
          for (const domain of ['one.example', 'two.example'])
            await putState(subject.service, account, browserContextId, storageStateFor(domain))
          const filled = { path: { browserContextId }, query: 'limit=1' }
          const { body } = await send(subject.service, 'listBrowserContextVersions', account.key, filled)
          return { path: { browserContextId }, cursor: body.nextCursor }
        }
        const [one, other] = [await cursorOf(), await cursorOf()]
        const response = await subject.call(account.key, { path: other.path, query: `cursor=${one.cursor}` })
        expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      })
    },
  },
)
