/** Tests rerunRun by documented status. */
import { expect, test } from 'vitest'
import { insertSteps } from '../support/finished-steps.ts'
import { queuedRunsMax } from '../support/service.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { cancelledRun, createContext, queueRun, send } from './requests.ts'

const withToken = { body: { variableData: { name: 'Ada', token: 'very secret' } } }

describeOperation(
  'rerunRun',
  { worker: false },
  {
    202(subject) {
      test('queues a run with the variables, secrets, priority and tags of the finished one', async () => {
        const account = await subject.service.createAccount()
        const query = 'delaySeconds=3600&expiresInSeconds=7200&priority=7&tag=a&tag=b'
        const runId = await cancelledRun(subject.service, account, { query, ...withToken })
        const { body, headers } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({
          ...{ rerunOf: runId, status: 'queued', priority: 7, tags: ['a', 'b'], availableAt: null, expiresAt: null },
          variableData: { name: 'Ada', token: '********' },
        })
        expect(headers.location).toBe(`/v1/execution/runs/${body.id}`)
        const secrets = await subject.service.rows('SELECT secrets FROM runs WHERE id = ?', body.id)
        expect(secrets).toEqual([{ secrets: expect.anything() }])
        const read = await send(subject.service, 'getRun', account.key, { path: { runId: body.id } })
        expect(read.body.rerunOf).toBe(runId)
      })

      test('changes what the request names, and keeps a masked secret', async () => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account, { query: 'priority=7&tag=a', ...withToken })
        const query = 'delaySeconds=60&expiresInSeconds=90&priority=-1&tag=b'
        const variableData = { name: 'Grace', token: '********' }
        const { body } = await subject.call(account.key, { path: { runId }, query, body: { variableData } })
        const times = { availableAt: expect.any(String), expiresAt: expect.any(String) }
        expect(body).toMatchObject({ priority: -1, tags: ['b'], variableData, ...times })
      })

      test('keeps the browser context', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const runId = await cancelledRun(subject.service, account, {
          path: { workflowId: 'print' },
          query: `browserContextId=${browserContextId}&persistContext=always`,
          body: { variableData: {} },
        })
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({ browserContextId, persistContext: 'always' })
      })

      test('repeats a run that a schedule or a bulk action has queued, with its secrets and without its schedule', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account, withToken) }
        const origin =
          'UPDATE runs SET schedule_id = ?, scheduled_for = 1, rerun_of = ?, api_key_id = NULL WHERE id = ?'
        await subject.service.change(origin, crypto.randomUUID(), crypto.randomUUID(), path.runId)
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ scheduleId: null, scheduledFor: null, rerunOf: path.runId })
        expect(body.apiKeyId).toEqual(expect.any(String))
        const secrets = await subject.service.rows('SELECT secrets FROM runs WHERE id = ?', body.id)
        expect(secrets).toEqual([{ secrets: expect.anything() }])
        const changed = { variableData: { name: 'Mallory', token: '********' } }
        await send(subject.service, 'rerunRun', account.key, { path, body: changed }).expect(400)
      })

      test('drops a concurrency key if the workflow no longer has a limit per key', async () => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account)
        const group = `${account.id} greet customer-42`
        await subject.service.change('UPDATE runs SET concurrency_group = ? WHERE id = ?', group, runId)
        const read = await send(subject.service, 'getRun', account.key, { path: { runId } })
        expect(read.body.concurrencyKey).toBe('customer-42')
        expect((await subject.call(account.key, { path: { runId } })).body.concurrencyKey).toBeNull()
      })

      test('starts from a step with the results of the steps before it, for any key with the same variables', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        await insertSteps(subject.service, path.runId, ['write', 'fetch', 'sign'])
        const { value } = await account.createKey({})
        const { body } = await subject.call(value, { path, body: { fromStep: 'sign' } })
        const copied = 'SELECT name FROM run_steps WHERE run_id = ? ORDER BY position'
        expect(await subject.service.rows(copied, body.id)).toEqual([{ name: 'write' }, { name: 'fetch' }])
        const headers = { 'Idempotency-Key': 'again' }
        const sent = { path, headers, body: { fromStep: 'write' } }
        expect((await subject.call(account.key, sent)).body.id).toBe((await subject.call(account.key, sent)).body.id)
        await send(subject.service, 'rerunRun', account.key, { path, headers }).expect(409)
      })

      test('queues one run for an Idempotency-Key, in whatever case the id is written', async () => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account)
        const headers = { 'Idempotency-Key': 'again' }
        const first = await subject.call(account.key, { path: { runId }, headers })
        expect(first.headers['idempotent-replayed']).toBeUndefined()
        const second = await subject.call(account.key, { path: { runId: runId.toUpperCase() }, headers })
        expect(second.headers['idempotent-replayed']).toBe('true')
        expect(second.body.id).toBe(first.body.id)
      })
    },
    400(subject) {
      test('names variables that do not fit the schema, and stores nothing', async () => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account)
        const response = await subject.call(account.key, { path: { runId }, body: { variableData: {} } })
        expect(response.body.errors).toEqual([{ pointer: '/variableData/name', detail: 'is required' }])
        expect((await send(subject.service, 'listRuns', account.key)).body.data).toHaveLength(1)
      })

      test('keeps no secret for another key with other variables', async () => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account, withToken)
        const other = await account.createKey({})
        const body = { variableData: { name: 'Mallory', token: '********' } }
        const response = await subject.call(other.value, { path: { runId }, body })
        expect(response.body.errors).toMatchObject([{ pointer: '/variableData/token' }])
        await send(subject.service, 'rerunRun', other.value, { path: { runId } }).expect(202)
      })

      test('names fromStep if the new run cannot start from it', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        const unknown = 'is not a step that the run has started:'
        await expectRefusedStep(account.key, path, {}, `${unknown} it has none`)
        await insertSteps(subject.service, path.runId, ['write', 'fetch'])
        await expectRefusedStep(account.key, path, {}, `${unknown} the first are write, fetch`)
        const other = await account.createKey({})
        const variableData = { name: 'Mallory' }
        await expectRefusedStep(other.value, path, { variableData }, expect.stringContaining('needs the caller'))
        await subject.service.change("UPDATE runs SET status = 'succeeded' WHERE id = ?", path.runId)
        await expectRefusedStep(account.key, path, {}, expect.stringContaining('a run that succeeded'))
        expect((await send(subject.service, 'listRuns', account.key)).body.data).toHaveLength(1)
      })

      async function expectRefusedStep(key: string, path: { runId: string }, body: object, detail: unknown) {
        const response = await subject.call(key, { path, body: { ...body, fromStep: 'sign' } })
        expect(response.body.errors).toEqual([{ pointer: '/fromStep', detail }])
      }

      test('refuses an expiry before the delay', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        const response = await subject.call(account.key, { path, query: 'delaySeconds=60&expiresInSeconds=60' })
        expect(response.body.errors).toMatchObject([{ parameter: 'expiresInSeconds' }])
      })
    },
    403(subject) {
      test('refuses a key without browser-contexts:use if the run has a browser context', async () => {
        const account = await subject.service.createAccount()
        const query = `browserContextId=${await createContext(subject.service, account)}`
        const print = { path: { workflowId: 'print' }, query, body: { variableData: {} } }
        const path = { runId: await cancelledRun(subject.service, account, print) }
        const limited = await account.createKey({ scopes: ['runs:write'] })
        expect((await subject.call(limited.value, { path })).text).toBe('Forbidden')
        const permitted = await account.createKey({ scopes: ['runs:write', 'browser-contexts:use'] })
        await send(subject.service, 'rerunRun', permitted.value, { path }).expect(202)
      })
    },
    409(subject) {
      test.each(['queued', 'running'])('refuses a run that is %s', async (status) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const lease = 'UPDATE runs SET status = ?, lease_expires_at = ? WHERE id = ?'
        await subject.service.change(lease, status, Date.now() + 3_600_000, runId)
        expectProblem(subject.operation, await subject.call(account.key, { path: { runId } }), {
          kind: 'run-not-finished',
          title: 'Run not finished',
          status: 409,
          detail: `The run is ${status}. Wait for its end, or cancel it, then run it again. Nothing was stored.`,
        })
        await subject.service.change(lease, 'queued', null, runId)
      })

      test.each([
        ['workflow', "UPDATE runs SET workflow_id = 'gone' WHERE id = ?", 'no longer has the workflow'],
        [
          'browser context',
          `UPDATE runs SET workflow_id = 'print', browser_context_id = '${crypto.randomUUID()}', variables = '{}',
            persist_context = 'never' WHERE id = ?`,
          'no longer has the browser context',
        ],
      ])('refuses a run whose %s is gone', async (_, change, detail) => {
        const account = await subject.service.createAccount()
        const runId = await cancelledRun(subject.service, account)
        await subject.service.change(change, runId)
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body.type).toContain('run-does-not-fit')
        expect(body.detail).toContain(detail)
      })

      test.each([
        [
          'of another version of the workflow',
          "UPDATE runs SET workflow_version = '0.0.1' WHERE id = ?",
          'version 0.0.1',
        ],
        ['whose results are erased', 'DELETE FROM run_steps WHERE run_id = ?', 'no longer stored'],
      ])('refuses to start from a step %s', async (_, change, detail) => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        await insertSteps(subject.service, path.runId, ['write', 'fetch'])
        await subject.service.change(change, path.runId)
        const { body } = await subject.call(account.key, { path, body: { fromStep: 'fetch' } })
        expect(body.type).toContain('run-does-not-fit')
        expect(body.detail).toMatch(/^fromStep needs results /)
        expect(body.detail).toContain(detail)
      })

      test('refuses a used Idempotency-Key with other variables', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        const headers = { 'Idempotency-Key': 'again' }
        await send(subject.service, 'rerunRun', account.key, { path, headers }).expect(202)
        const body = { variableData: { name: 'Grace' } }
        const response = await subject.call(account.key, { path, headers, body })
        expect(response.body.type).toContain('idempotency-conflict')
      })
    },
    429(subject) {
      test('refuses runs beyond the limit of queued runs', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await cancelledRun(subject.service, account) }
        for (let count = 0; count < queuedRunsMax; count++) await queueRun(subject.service, account)
        expect((await subject.call(account.key, { path })).body.type).toContain('too-many-queued-runs')
      })
    },
  },
)
