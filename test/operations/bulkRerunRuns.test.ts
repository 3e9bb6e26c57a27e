/** Tests bulkRerunRuns by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'bulkRerunRuns',
  { worker: false },
  {
    202(subject) {
      test('stores an action, and names its path', async () => {
        const account = await subject.service.createAccount()
        const filters = { workflowId: 'greet', tag: ['a', 'b'], createdBefore: '2026-11-20T09:30:00.000Z' }
        const { body, headers } = await subject.call(account.key, { body: filters })
        expect(body).toMatchObject({ kind: 'rerun', filters, status: 'working', matched: 0, finishedAt: null })
        expect(headers.location).toBe(`/v1/execution/bulk-actions/${body.id}`)
      })

      test('stores one action for an Idempotency-Key', async () => {
        const account = await subject.service.createAccount()
        const request = { headers: { 'Idempotency-Key': 'once' }, body: { tag: ['a'] } }
        const first = await subject.call(account.key, request)
        const second = await subject.call(account.key, request)
        expect(second.headers['idempotent-replayed']).toBe('true')
        expect(second.body.id).toBe(first.body.id)
      })
    },
    400(subject) {
      test('refuses a status whose runs it cannot change', async () => {
        const account = await subject.service.createAccount()
        const response = await subject.call(account.key, { body: { status: ['failed', 'queued'] } })
        expect(response.body.errors).toMatchObject([{ pointer: '/status/1' }])
      })

      test('names filters that cannot be combined', async () => {
        const account = await subject.service.createAccount()
        const response = await subject.call(account.key, { body: { tag: ['a'], reason: 'timeLimit' } })
        expect(response.body.errors).toEqual([{ pointer: '/reason', detail: 'cannot be combined with tag' }])
      })
    },
    403(subject) {
      test('refuses a key without browser-contexts:use if the filters have a browser context', async () => {
        const account = await subject.service.createAccount()
        const body = { browserContextId: await createContext(subject.service, account) }
        const limited = await account.createKey({ scopes: ['runs:write'] })
        expect((await subject.call(limited.value, { body })).text).toBe('Forbidden')
      })
    },
    409(subject) {
      test('refuses a used Idempotency-Key with other filters', async () => {
        const account = await subject.service.createAccount()
        const headers = { 'Idempotency-Key': 'once' }
        await send(subject.service, 'bulkRerunRuns', account.key, { headers, body: { tag: ['a'] } }).expect(202)
        const response = await subject.call(account.key, { headers, body: { tag: ['b'] } })
        expect(response.body.type).toContain('idempotency-conflict')
      })

      test('refuses an eleventh unfinished action', async () => {
        const account = await subject.service.createAccount()
        for (let count = 0; count < 10; count += 1)
          await send(subject.service, 'bulkRerunRuns', account.key, { body: {} }).expect(202)
        // Maintenance may have finished some.
        const unfinished = 'UPDATE bulk_actions SET finished_at = NULL, next_at = ? WHERE account_id = ?'
        await subject.service.change(unfinished, Date.now() + 3_600_000, account.id)
        expectProblem(subject.operation, await subject.call(account.key, { body: {} }), {
          kind: 'too-many-bulk-actions',
          title: 'Too many bulk actions',
          status: 409,
        })
      })
    },
  },
)
