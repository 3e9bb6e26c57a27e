/** The queue of a worker that reaches the service over HTTP. */
import { expect, test } from 'vitest'
import type { Report } from '../../src/domain/runs/run.ts'
import { plainValues, RemoteQueue } from '../../src/worker/remote/remote-queue.ts'
import { createWorkerCalls } from '../../src/worker/remote/worker-calls.ts'
import { claimedAttempt } from '../operations/requests.ts'
import { startTestService } from '../support/service.ts'

const report = (type: Report['type'], data: object): Report => ({ at: Date.now(), type, data: { attempt: 1, ...data } })
const log = (message: string) => report('log', { level: 'info', message })

test('events of steps that end at the same time arrive in order, and none is lost', async ({ onTestFinished }) => {
  const service = await startTestService({ worker: false })
  onTestFinished(() => service.stop())
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const client = createWorkerCalls({ baseUrl: service.executionUrl, apiKey: account.key, log: { warn: () => {} } })
  const register = async () => {}
  const queue = new RemoteQueue({ client, workerId: 'w', slots: 1, leaseSeconds: 30, register })
  const lease = { runId, attempt: Number(attempt), workerId: 'w' }
  const finish = (name: string, ...messages: string[]) => {
    const reports = [...messages.map(log), report('step', { name, state: 'finished' })]
    return queue.finishStep(lease, { name }, () => plainValues.encrypt('1'), reports)
  }
  const large = 'x'.repeat(70_000)
  const stored = await Promise.all([
    finish('a', 'one', 'two'),
    finish('b', 'three'),
    finish('c'),
    finish('d', large),
    queue.report(lease, [log('four')]),
  ])
  expect(stored).toEqual([true, true, true, true, true])
  expect(await queue.complete(lease, { kind: 'cancelled' }, undefined, [log('last')])).toBe(true)
  const select = "SELECT data FROM run_events WHERE run_id = ? AND type = 'log' ORDER BY sequence"
  const rows = await service.rows<{ data: string }>(select, runId)
  const messages = rows.map(({ data }) => JSON.parse(data).message.slice(0, 5))
  expect(messages).toEqual(['one', 'two', 'three', 'xxxxx', 'four', 'last'])
})
