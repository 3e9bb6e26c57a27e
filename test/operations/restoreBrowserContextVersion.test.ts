/** Tests restoreBrowserContextVersion by documented status. */
import { expect, test } from 'vitest'
import { describeOperation, type Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { testInvalidEntityTags } from './request-tests.ts'
import { createContext, leaseContext, putState, queueRun, send, storageStateFor } from './requests.ts'

/** A context with the versions 1 and 2. */
async function open({ service }: Subject) {
  const account = await service.createAccount()
  const path = { browserContextId: await createContext(service, account) }
  const [first, second] = [storageStateFor('first.example'), storageStateFor('second.example')]
  for (const state of [first, second]) await putState(service, account, path.browserContextId, state)
  const read = () => send(service, 'getStorageState', account.key, { path }).expect(200)
  const list = async () => (await send(service, 'listBrowserContextVersions', account.key, { path })).body.data
  return { account, path, first, second, read, list }
}

describeOperation(
  'restoreBrowserContextVersion',
  { worker: false },
  {
    200(subject) {
      test('stores the state of the version as the newest, once however often it is called', async () => {
        const { account, path, first, read, list } = await open(subject)
        const filled = { path: { ...path, version: '1' } }
        const restored = await subject.call(account.key, filled)
        expect(restored.body).toMatchObject({ version: 3, isCurrent: true, restoredFrom: 1, runId: null })
        const state = await read()
        expect(state.body).toEqual(first)
        expect(state.headers.etag).toBe(restored.headers.etag)
        const repeated = await subject.call(account.key, filled)
        const current = await subject.call(account.key, { path: { ...path, version: '3' } })
        for (const { body, headers } of [repeated, current]) {
          expect(body).toEqual(restored.body)
          expect(headers.etag).toBe(restored.headers.etag)
        }
        expect((await list()).map((each: { version: number }) => each.version)).toEqual([3, 2, 1])
      })

      test('the audit log names the key that restored', async () => {
        const { account, path } = await open(subject)
        await subject.call(account.key, { path: { ...path, version: '1' } })
        const entries =
          'SELECT actor_kind, action, details FROM audit_log WHERE account_id = ? ORDER BY id DESC LIMIT 1'
        const details = JSON.stringify({ version: 3, restoredFrom: 1 })
        const entry = { actor_kind: 'caller', action: 'browserContext.restored', details }
        expect(await subject.service.rows(entries, account.id)).toEqual([entry])
      })

      test('replaces the version in If-Match', async () => {
        const { account, path, read } = await open(subject)
        const headers = { 'If-Match': String((await read()).headers.etag) }
        const { body } = await subject.call(account.key, { path: { ...path, version: '1' }, headers })
        expect(body.version).toBe(3)
      })
    },
    400(subject) {
      testInvalidEntityTags(subject, 'If-Match')

      test.each(['0', '-1', '1.5', 'one', '2147483648'])('refuses the version %s', async (version) => {
        const { account, path } = await open(subject)
        const { body } = await subject.call(account.key, { path: { ...path, version } })
        expect(body.errors).toEqual([{ parameter: 'version', detail: expect.any(String) }])
      })
    },
    404(subject) {
      test('finds neither a version that never existed nor one that newer versions displaced', async () => {
        const { account, path } = await open(subject)
        for (const domain of ['3.example', '4.example', '5.example', '6.example'])
          await putState(subject.service, account, path.browserContextId, storageStateFor(domain))
        for (const version of ['1', '7']) {
          expectProblem(subject.operation, await subject.call(account.key, { path: { ...path, version } }), {
            kind: 'not-found',
            title: 'Not found',
            status: 404,
            detail: 'No such version of the browser context in this account.',
          })
        }
      })
    },
    409(subject) {
      test('refuses a context that a run has leased, and stores nothing', async () => {
        const { account, path, second, read } = await open(subject)
        const runId = await queueRun(subject.service, account)
        await leaseContext(subject.service, path.browserContextId, runId)
        const response = await subject.call(account.key, { path: { ...path, version: '1' } })
        expectProblem(subject.operation, response, {
          kind: 'browser-context-in-use',
          title: 'Browser context in use',
          status: 409,
          detail: `Run ${runId} uses the browser context. Wait for its end, or cancel it. Nothing was stored.`,
        })
        expect((await read()).body).toEqual(second)
      })
    },
    412(subject) {
      test('stores nothing when another version is current', async () => {
        const { account, path, second, read, list } = await open(subject)
        const headers = { 'If-Match': '"other"' }
        const response = await subject.call(account.key, { path: { ...path, version: '1' }, headers })
        expectProblem(subject.operation, response, {
          kind: 'version-changed',
          title: 'Version changed',
          status: 412,
          detail: expect.stringContaining('Read it again'),
          errors: [{ header: 'If-Match', detail: 'names no current version' }],
        })
        const state = await read()
        expect(state.body).toEqual(second)
        expect(response.headers.etag).toBe(state.headers.etag)
        expect(await list()).toHaveLength(2)
      })
    },
  },
)
