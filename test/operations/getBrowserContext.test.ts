/** Tests getBrowserContext by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createContext, leaseContext, queueRun, send, storageStateFor } from './requests.ts'

describeOperation(
  'getBrowserContext',
  { worker: false },
  {
    200(subject) {
      test('returns a new context', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account, 'Shop')
        const { body } = await subject.call(account.key, { path: { browserContextId } })
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
          signIn: null,
        })
      })

      test('returns the size, domains and version of its storage state', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        const stored = storageStateFor('shop.example.com', '.example.com', 'shop.example.com')
        for (const body of [storageStateFor('other.example'), stored]) {
          await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
        }
        const { body } = await subject.call(account.key, { path })
        const sizeBytes = Buffer.byteLength(JSON.stringify(stored))
        expect(body).toMatchObject({ status: 'ready', version: 2, sizeBytes, lastUsedAt: null })
        expect(body.cookieDomains).toEqual(['.example.com', 'shop.example.com'])
        expect(Date.parse(body.updatedAt)).toBeGreaterThanOrEqual(Date.parse(body.createdAt))
      })

      test('returns the run that has its lease', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        const runId = await queueRun(subject.service, account)
        await leaseContext(subject.service, path.browserContextId, runId)
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ status: 'inUse', heldByRunId: runId })
      })
    },
  },
)
