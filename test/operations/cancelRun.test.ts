/** Tests cancelRun by documented status. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../support/service.ts'
import { describeOperation } from './describe-operation.ts'
import { queueRun, send } from './requests.ts'

describeOperation(
  'cancelRun',
  { worker: true },
  {
    200(subject) {
      test('cancels a queued run at once', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({
          id: runId,
          status: 'cancelled',
          reason: 'cancelRequested',
          waitingFor: null,
          cancelRequested: true,
          attempts: 0,
          startedAt: null,
          finishedAt: expect.any(String),
        })
      })

      test('repeating the call has no effect', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const first = await subject.call(account.key, { path: { runId } })
        const second = await subject.call(account.key, { path: { runId } })
        const events = await send(subject.service, 'streamRunEvents', account.key, { path: { runId } })
        expect(second.body).toEqual(first.body)
        expect(events.text.match(/"status":"cancelled"/g)).toHaveLength(1)
      })

      test('a running run ends after the request', async () => {
        const account = await subject.service.createAccount()
        const file = join(subject.service.dataDirectory, 'never')
        const hold = { path: { workflowId: 'hold' }, query: '', body: { variableData: { file } } }
        const runId = await queueRun(subject.service, account, hold)
        const read = async () => (await send(subject.service, 'getRun', account.key, { path: { runId } })).body
        // Reads the store, since the key may make few requests.
        const isIn = async (...statuses: string[]) => {
          const [run] = await subject.service.rows<{ status: string }>('SELECT status FROM runs WHERE id = ?', runId)
          return statuses.includes(run?.status ?? '')
        }
        await until('the run is running', () => isIn('running'))
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({ cancelRequested: true, status: expect.stringMatching(/^(running|cancelled)$/) })
        await until('the run has finished', () => isIn('cancelled', 'succeeded', 'failed'))
        expect(await read()).toMatchObject({
          status: 'cancelled',
          reason: 'cancelRequested',
          attempts: 1,
          output: null,
        })
      })

      test('does not change a finished run', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, { query: '', headers: { Prefer: 'wait=30' } })
        const before = await send(subject.service, 'getRun', account.key, { path: { runId } })
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toEqual(before.body)
        expect(body).toMatchObject({ status: 'succeeded', cancelRequested: false })
      })

      test('accepts a Content-Type without a body', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await subject.call(account.key, { path: { runId }, headers: { 'Content-Type': 'application/json' } })
      })
    },
  },
)
