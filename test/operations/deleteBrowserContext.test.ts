/** Tests deleteBrowserContext by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'deleteBrowserContext',
  { worker: false },
  {
    204(subject) {
      test('erases a context and frees its name', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.call(account.key, { path })
        await send(subject.service, 'getBrowserContext', account.key, { path }).expect(404)
        expect((await send(subject.service, 'listBrowserContexts', account.key)).body.data).toEqual([])
        await createContext(subject.service, account, 'Shop')
      })

      test('ignores Accept, because the response has no body', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.call(account.key, { path, headers: { Accept: 'image/png' } })
      })
    },
    404(subject) {
      test('a deleted context is not found', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await send(subject.service, 'deleteBrowserContext', account.key, { path }).expect(204)
        const response = await subject.call(account.key, { path })
        expectProblem(subject.operation, response, { kind: 'not-found', title: 'Not found', status: 404 })
      })
    },
  },
)
