/** Tests queueRemoteRunBatch by documented status. */
import { expect, test } from 'vitest'
import { queuedRunsMax } from '../support/service.ts'
import { describeOperation, type Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, leaseContext, send } from './requests.ts'

const entry = { workflowId: 'greet', variableData: { name: 'Ada' }, delaySeconds: 3600 }
const bodyOf = (...runs: object[]) => ({ body: { runs } })

async function idsOf(subject: Subject, key: string): Promise<string[]> {
  const { body } = await send(subject.service, 'listRuns', key)
  return body.data.map(({ id }: { id: string }) => id)
}

/** Fails unless the batch is refused with these errors, and nothing of it is stored. */
async function expectRefused(subject: Subject, runs: object[], errors: unknown) {
  const { key } = await subject.service.createAccount()
  const detail = 'The request is invalid. Nothing was stored.'
  const problem = { kind: 'invalid-request', title: 'Invalid request', status: 400, detail, errors }
  expectProblem(subject.operation, await subject.call(key, bodyOf(...runs)), problem)
  expect(await idsOf(subject, key)).toEqual([])
}

describeOperation(
  'queueRemoteRunBatch',
  { worker: false },
  {
    202(subject) {
      test('queues runs of several workflows, and returns them in the order of the entries', async () => {
        const { key } = await subject.service.createAccount()
        const words = { workflowId: 'count-words', variableData: { path: 'README.md' } }
        const all = { ...entry, delaySeconds: 60, expiresInSeconds: 90, priority: 10, tags: ['customer:42'] }
        const { body } = await subject.call(key, bodyOf(entry, words, all))
        expect(body.data).toMatchObject([
          { workflowId: 'greet', waitingFor: 'delay', priority: 0, tags: [] },
          { workflowId: 'count-words', variableData: { path: 'README.md', top: 5 }, availableAt: null },
          { priority: 10, tags: ['customer:42'], expiresAt: expect.any(String) },
        ])
        expect(await idsOf(subject, key)).toEqual(body.data.map(({ id }: { id: string }) => id).reverse())
        for (const run of body.data) {
          expect((await send(subject.service, 'getRun', key, { path: { runId: run.id } })).body).toMatchObject(run)
        }
      })

      test('masks secrets', async () => {
        const { key } = await subject.service.createAccount()
        const secret = { ...entry, variableData: { name: 'Ada', token: 'very secret' } }
        const { body } = await subject.call(key, bodyOf(secret))
        expect(body.data[0].variableData).toEqual({ name: 'Ada', token: '********' })
      })

      test('queues runs with browser contexts, one of them waiting for another run', async () => {
        const account = await subject.service.createAccount()
        const [free, leased] = [
          await createContext(subject.service, account),
          await createContext(subject.service, account),
        ]
        const browse = (browserContextId: string) => ({ workflowId: 'print', variableData: {}, browserContextId })
        const { body: first } = await subject.call(account.key, bodyOf(browse(leased)))
        await leaseContext(subject.service, leased, first.data[0].id)
        const runs = [browse(free), browse(leased), { ...browse(leased), persistContext: 'never' }]
        const { body } = await subject.call(account.key, bodyOf(...runs))
        expect(body.data).toMatchObject([
          { browserContextId: free, persistContext: 'onSuccess', waitingFor: 'worker' },
          { waitingFor: 'browserContext' },
          { persistContext: 'never', waitingFor: 'worker' },
        ])
      })

      test('queues one batch for an Idempotency-Key, and repeats its runs without outputs', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { ...bodyOf(entry, { ...entry, priority: 1 }), headers: { 'Idempotency-Key': 'once' } }
        const first = await subject.call(key, filled)
        expect(first.headers['idempotent-replayed']).toBeUndefined()
        const [{ id }] = first.body.data
        await subject.service.change(`UPDATE runs SET status = 'succeeded', output = '"large"' WHERE id = ?`, id)
        const again = await subject.call(key, filled)
        expect(again.headers['idempotent-replayed']).toBe('true')
        expect(again.body.data.map(({ id }: { id: string }) => id)).toEqual(
          first.body.data.map(({ id }: { id: string }) => id),
        )
        expect(again.body.data[0]).toMatchObject({ status: 'succeeded', output: null })
        expect(await idsOf(subject, key)).toHaveLength(2)
      })
    },
    400(subject) {
      test('names each entry that cannot be queued, and queues none', async () => {
        const runs = [
          entry,
          { ...entry, variableData: {} },
          { ...entry, workflowId: 'no-such-workflow' },
          { ...entry, browserContextId: crypto.randomUUID() },
          { ...entry, concurrencyKey: 'customer-42' },
        ]
        await expectRefused(subject, runs, [
          { pointer: '/runs/1/variableData/name', detail: 'is required' },
          { pointer: '/runs/2/workflowId', detail: 'names no workflow of this account' },
          {
            pointer: '/runs/3/browserContextId',
            detail: 'requires a workflow that uses a browser; this one does not',
          },
          {
            pointer: '/runs/4/concurrencyKey',
            detail: 'requires a workflow with a limit or rate per key; this one has none',
          },
        ])
      })

      test('names an entry whose browser context does not exist', async () => {
        const browse = { workflowId: 'print', variableData: {} }
        await expectRefused(
          subject,
          [browse, { ...browse, browserContextId: crypto.randomUUID() }],
          [{ pointer: '/runs/1/browserContextId', detail: 'names no browser context of this account' }],
        )
      })

      test('reports the first 20 errors', async () => {
        const runs = Array.from({ length: 1000 }, () => ({ ...entry, variableData: {} }))
        const errors = Array.from({ length: 20 }, (_, index) => ({
          pointer: `/runs/${index}/variableData/name`,
          detail: 'is required',
        }))
        await expectRefused(subject, runs, errors)
      })

      test.each([
        ['no entry', [], '/runs'],
        ['1001 entries', Array.from({ length: 1001 }, () => entry), '/runs'],
        ['an expiry before the delay', [entry, { ...entry, expiresInSeconds: 3600 }], '/runs/1/expiresInSeconds'],
        ['an unknown member', [{ ...entry, wait: 1 }], '/runs/0/wait'],
        [
          'variables of more than 1 MiB',
          [{ workflowId: 'hold', variableData: { file: 'x'.repeat(1024 * 1024) } }],
          '/runs/0/variableData',
        ],
      ])('refuses %s', async (_, runs, pointer) => {
        await expectRefused(subject, runs, [{ pointer, detail: expect.any(String) }])
      })
    },
    403(subject) {
      test('refuses a key without browser-contexts:use if an entry has a browser context', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const filled = bodyOf(entry, { workflowId: 'print', variableData: {}, browserContextId })
        const limited = await account.createKey({ scopes: ['runs:write'] })
        expect((await subject.call(limited.value, filled)).text).toBe('Forbidden')
        expect(await idsOf(subject, account.key)).toEqual([])
        const permitted = await account.createKey({ scopes: ['runs:write', 'browser-contexts:use'] })
        await send(subject.service, 'queueRemoteRunBatch', permitted.value, filled).expect(202)
      })
    },
    409(subject) {
      test('refuses a used Idempotency-Key with other entries, or of a single run', async () => {
        const { key } = await subject.service.createAccount()
        const headers = { 'Idempotency-Key': 'once' }
        const conflict = {
          kind: 'idempotency-conflict',
          title: 'Idempotency key reused',
          status: 409,
          errors: [{ header: 'Idempotency-Key', detail: 'was used with another request' }],
        }
        await send(subject.service, 'queueRemoteRunBatch', key, { ...bodyOf(entry), headers }).expect(202)
        expectProblem(subject.operation, await subject.call(key, { ...bodyOf(entry, entry), headers }), conflict)
        const single = { path: { workflowId: 'greet' }, body: { variableData: entry.variableData } }
        const put = await send(subject.service, 'queueRemoteRun', key, {
          ...single,
          query: 'delaySeconds=3600',
          headers,
        })
        expectProblem(undefined, put, { ...conflict, detail: expect.any(String) })
        expect(await idsOf(subject, key)).toHaveLength(1)
      })

      test('refuses the Idempotency-Key of a batch with a deleted run', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { ...bodyOf(entry, entry), headers: { 'Idempotency-Key': 'once' } }
        const { body } = await send(subject.service, 'queueRemoteRunBatch', key, filled).expect(202)
        const path = { runId: body.data[1].id }
        await send(subject.service, 'cancelRun', key, { path }).expect(200)
        await send(subject.service, 'deleteRun', key, { path }).expect(204)
        expectProblem(subject.operation, await subject.call(key, filled), {
          kind: 'idempotency-conflict',
          title: 'Idempotency key reused',
          status: 409,
          errors: [{ header: 'Idempotency-Key', detail: 'was used for a batch with a run that has been deleted' }],
        })
      })
    },
    429(subject) {
      test('queues none beyond the limit of queued runs, and the key can be used again', async () => {
        const { key } = await subject.service.createAccount()
        const headers = { 'Idempotency-Key': 'once' }
        const runs = Array.from({ length: queuedRunsMax }, () => entry)
        await send(subject.service, 'queueRemoteRunBatch', key, bodyOf(entry)).expect(202)
        expectProblem(subject.operation, await subject.call(key, { ...bodyOf(...runs), headers }), {
          kind: 'too-many-queued-runs',
          title: 'Too many queued runs',
          status: 429,
        })
        expect(await idsOf(subject, key)).toHaveLength(1)
        const rest = { ...bodyOf(...runs.slice(1)), headers }
        await send(subject.service, 'queueRemoteRunBatch', key, rest).expect(202)
      })
    },
  },
)
