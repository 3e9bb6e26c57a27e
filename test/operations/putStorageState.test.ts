/** Tests putStorageState by documented status. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { testInvalidEntityTags } from './request-tests.ts'
import { createContext, leaseContext, queueRun, send, sendRequest, storageStateFor } from './requests.ts'

/**
 * Written by Playwright 1.65.1 with `storageState({ path, indexedDB: true })`: cookies of every kind, an entry without a
 * name, and databases with dates, big integers and values that JSON cannot express.
 */
const written = readFileSync(new URL('./storage-state.json', import.meta.url), 'utf8')

describeOperation(
  'putStorageState',
  { worker: false },
  {
    204(subject) {
      const read = async (key: string, path: { browserContextId: string }) =>
        (await send(subject.service, 'getStorageState', key, { path }).expect(200)).body

      test('stores a file of Playwright and returns it unchanged', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const headers = { 'Content-Type': 'application/json', 'x-service-api-key': account.key }
        const address = `/alpha/browser-contexts/${path.browserContextId}/storage-state`
        await subject.send({ method: 'PUT', path: address, headers, body: written })
        const body = await read(account.key, path)
        expect(body).toEqual(JSON.parse(written))
        await subject.call(account.key, { path, body })
        expect(await read(account.key, path)).toEqual(body)
      })

      test('keeps members of later versions of Playwright', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const [cookie] = storageStateFor('one.example').cookies
        const origin = { origin: 'https://one.example', localStorage: [], sessionStorage: [{ name: 'a', value: 'b' }] }
        const later = {
          cookies: [{ ...cookie, partitionKey: 'https://a.example', priority: 'High' }],
          origins: [origin],
        }
        await subject.call(account.key, { path, body: { ...later, credentials: [{ id: 1 }] } })
        expect(await read(account.key, path)).toEqual({ ...later, credentials: [{ id: 1 }] })
      })

      test('replaces the version in If-Match, and returns the ETag of the new one', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const current = async () => {
          const { headers } = await send(subject.service, 'getStorageState', account.key, { path }).expect(200)
          return String(headers.etag)
        }
        let etag = await current()
        for (const known of [etag, '*', '"other", $', '$']) {
          const headers = { 'If-Match': known.replace('$', etag) }
          const response = await subject.call(account.key, { path, headers, body: storageStateFor('a.example') })
          expect(response.headers.etag).not.toBe(etag)
          etag = String(response.headers.etag)
          expect(await current()).toBe(etag)
        }
      })

      test('stores every request as its own version, including concurrent ones', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const states = Array.from({ length: 8 }, (_, index) => storageStateFor(`${index}.example`))
        await Promise.all(states.map((body) => subject.call(account.key, { path, body })))
        const { body } = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(body).toMatchObject({ status: 'ready', version: 8 })
        const last = await read(account.key, path)
        expect(states).toContainEqual(last)
        expect(body.cookieDomains).toEqual([last.cookies[0].domain])
      })
    },
    400(subject) {
      testInvalidEntityTags(subject, 'If-Match')

      const cookie = storageStateFor('one.example').cookies[0]
      const origin = { origin: 'https://one.example', localStorage: [] }
      test.each<[string, unknown, string]>([
        ['no cookies', { origins: [] }, '/cookies'],
        ['no origins', { cookies: [] }, '/origins'],
        ['a list', [], ''],
        ['a cookie without a domain', { cookies: [{ ...cookie, domain: '' }], origins: [] }, '/cookies/0/domain'],
        [
          'a cookie of a domain of 254 characters',
          { cookies: [{ ...cookie, domain: 'x'.repeat(254) }], origins: [] },
          '/cookies/0/domain',
        ],
        ['a cookie without a value', { cookies: [{ ...cookie, value: null }], origins: [] }, '/cookies/0/value'],
        ['another sameSite', { cookies: [{ ...cookie, sameSite: 'lax' }], origins: [] }, '/cookies/0/sameSite'],
        ['an expiry before 1970', { cookies: [{ ...cookie, expires: -2 }], origins: [] }, '/cookies/0/expires'],
        ['a path in the origin', { cookies: [], origins: [{ ...origin, origin: 'https://a/b' }] }, '/origins/0/origin'],
        ['a file as origin', { cookies: [], origins: [{ ...origin, origin: 'file://' }] }, '/origins/0/origin'],
        [
          'an entry without a value',
          { cookies: [], origins: [{ ...origin, localStorage: [{ name: 'a' }] }] },
          '/origins/0/localStorage/0/value',
        ],
      ])('refuses %s', async (_, wrong, pointer) => {
        const errors = [{ pointer, detail: expect.any(String) }]
        await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify(wrong) }), errors)
      })

      test('neither stores nor quotes a refused body', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const body = { cookies: [{ ...cookie, value: 'canary-7f3a', domain: 7 }], origins: [] }
        const response = await subject.call(account.key, { path, body })
        expect(response.text).not.toContain('canary-7f3a')
        const after = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(after.body).toMatchObject({ status: 'empty', version: 0 })
      })
    },
    409(subject) {
      test('refuses a context that a run has leased, and stores nothing', async () => {
        const { account, request } = await subject.caller()
        const [, browserContextId = ''] = /browser-contexts\/([^/]+)/.exec(request.path) ?? []
        const runId = await queueRun(subject.service, account)
        await leaseContext(subject.service, browserContextId, runId)
        expectProblem(subject.operation, await subject.send(request), {
          kind: 'browser-context-in-use',
          title: 'Browser context in use',
          status: 409,
          detail: `Run ${runId} uses the browser context. Wait for its end, or cancel it. Nothing was stored.`,
        })
        const versions = 'SELECT id FROM browser_context_versions WHERE browser_context_id = ?'
        expect(await subject.service.rows(versions, browserContextId)).toEqual([])
        await leaseContext(subject.service, browserContextId, null)
        expect((await sendRequest(subject.service.browserContextUrl, request)).status).toBe(204)
      })
    },
    412(subject) {
      const open = async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        const read = () => send(subject.service, 'getStorageState', account.key, { path }).expect(200)
        return { account, path, read, etag: String((await read()).headers.etag) }
      }

      test('stores nothing when another version is current, and says what to do', async () => {
        const { account, path, read, etag } = await open()
        const stored = storageStateFor('first.example')
        await send(subject.service, 'putStorageState', account.key, { path, body: stored }).expect(204)
        const current = String((await read()).headers.etag)
        for (const stale of [etag, `W/${current}`, '"other"']) {
          const body = storageStateFor('second.example')
          const response = await subject.call(account.key, { path, headers: { 'If-Match': stale }, body })
          expectProblem(subject.operation, response, {
            kind: 'version-changed',
            title: 'Version changed',
            status: 412,
            detail: expect.stringContaining('Read it again'),
            errors: [{ header: 'If-Match', detail: 'names no current version' }],
          })
          expect(response.headers.etag).toBe(current)
        }
        expect((await read()).body).toEqual(stored)
        const versions = 'SELECT id FROM browser_context_versions WHERE browser_context_id = ?'
        expect(await subject.service.rows(versions, path.browserContextId)).toHaveLength(1)
      })

      test('exactly one of several writers with the same ETag succeeds', async () => {
        const { account, path, read, etag } = await open()
        const headers = { 'If-Match': etag }
        const bodies = Array.from({ length: 8 }, (_, index) => storageStateFor(`${index}.example`))
        const responses = await Promise.all(
          bodies.map((body) => send(subject.service, 'putStorageState', account.key, { path, headers, body })),
        )
        expect(responses.map(({ status }) => status).sort()).toEqual([204, ...Array(7).fill(412)])
        const won = responses.findIndex(({ status }) => status === 204)
        const { headers: after, body } = await read()
        expect(body).toEqual(bodies[won])
        expect(after.etag).toBe(responses[won]?.headers.etag)
      })
    },
  },
)
