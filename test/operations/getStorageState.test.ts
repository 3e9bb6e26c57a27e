/** Tests getStorageState by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { testInvalidEntityTags } from './request-tests.ts'
import { createContext, send, storageStateFor } from './requests.ts'

describeOperation(
  'getStorageState',
  { worker: false },
  {
    200(subject) {
      test('an empty context has no cookies and no storage', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        expect((await subject.call(account.key, { path })).body).toEqual({ cookies: [], origins: [] })
      })

      test('returns the last stored state', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        for (const body of [storageStateFor('one.example'), storageStateFor('two.example')]) {
          await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
          expect((await subject.call(account.key, { path })).body).toEqual(body)
        }
      })

      test('accepts the id in upper case (RFC 9562, section 4) and a Content-Type without a body', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const body = storageStateFor('one.example')
        await send(subject.service, 'putStorageState', account.key, { path: { browserContextId }, body }).expect(204)
        const path = { browserContextId: browserContextId.toUpperCase() }
        const headers = { 'Content-Type': 'application/json' }
        expect((await subject.call(account.key, { path, headers })).body).toEqual(body)
      })
    },
    304(subject) {
      const open = async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const put = (domain: string) =>
          send(subject.service, 'putStorageState', account.key, { path, body: storageStateFor(domain) }).expect(204)
        const read = (headers = {}) => send(subject.service, 'getStorageState', account.key, { path, headers })
        return { account, path, put, read }
      }

      test('sends nothing when the version is the one in If-None-Match', async () => {
        const { account, path, put, read } = await open()
        const tags: string[] = []
        for (const change of [() => {}, () => put('one.example'), () => put('two.example')]) {
          await change()
          const etag = String((await read().expect(200)).headers.etag)
          for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
            const response = await subject.call(account.key, { path, headers: { 'If-None-Match': known } })
            expect(response.headers.etag).toBe(etag)
          }
          tags.push(etag)
        }
        expect(new Set(tags).size).toBe(3)
      })

      test('returns the state when the version is another', async () => {
        const { put, read } = await open()
        await put('one.example')
        const { etag } = (await read()).headers
        await put('two.example')
        for (const known of [etag, '"other"']) {
          const { body } = await read({ 'If-None-Match': known }).expect(200)
          expect(body.cookies[0].domain).toBe('two.example')
        }
      })
    },
    400(subject) {
      testInvalidEntityTags(subject, 'If-None-Match')
    },
    404(subject) {
      test('the state of a deleted context is not found', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const body = storageStateFor('one.example')
        await send(subject.service, 'putStorageState', account.key, { path, body }).expect(204)
        await send(subject.service, 'deleteBrowserContext', account.key, { path }).expect(204)
        const response = await subject.call(account.key, { path })
        expectProblem(subject.operation, response, { kind: 'not-found', title: 'Not found', status: 404 })
      })
    },
  },
)
