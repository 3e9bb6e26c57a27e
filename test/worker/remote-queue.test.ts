/** The queue of a worker that reaches the service over HTTP. */
import { expect, type TestContext, test } from 'vitest'
import type { Report } from '../../src/domain/runs/run.ts'
import { plainValues, RemoteQueue } from '../../src/worker/remote/remote-queue.ts'
import { createWorkerCalls } from '../../src/worker/remote/worker-calls.ts'
import { claimedAttempt, send } from '../operations/requests.ts'
import { startTestService } from '../support/service.ts'

const report = (type: Report['type'], data: object): Report => ({ at: Date.now(), type, data: { attempt: 1, ...data } })
const log = (message: string) => report('log', { level: 'info', message })

async function open(test: TestContext, now?: () => number) {
  const service = await startTestService({ worker: false })
  test.onTestFinished(() => service.stop())
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const given = { baseUrl: service.executionUrl, apiKey: account.key, log: { warn: () => {} }, onRefused: () => {} }
  const options = { client: createWorkerCalls(given), workerId: 'w', slots: 1, leaseSeconds: 30 }
  const queue = new RemoteQueue({ ...options, register: async () => {}, ...(now && { now }) })
  return { service, account, queue, lease: { runId, attempt: Number(attempt), workerId: 'w' } }
}

test('events of steps that end at the same time arrive in order, and none is lost', async (test) => {
  const { service, queue, lease } = await open(test)
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
  const rows = await service.rows<{ data: string }>(select, lease.runId)
  const messages = rows.map(({ data }) => JSON.parse(data).message.slice(0, 5))
  expect(messages).toEqual(['one', 'two', 'three', 'xxxxx', 'four', 'last'])
})

const hour = 3_600_000

test.for([-hour, hour])(
  'a period is as long as it is with a clock that differs by %d ms, and a time is that time',
  async (ahead, test) => {
    const now = () => Date.now() + ahead
    const { service, account, queue, lease } = await open(test, now)
    const time = Math.ceil(Date.now() / 1000) * 1000 + 1_000_000
    const reached = [
      { name: 'period', kind: 'sleep', deadline: now() + 500_000, isTime: false },
      { name: 'time', kind: 'sleep', deadline: time, isTime: true },
    ] as const
    const results = await queue.wait(lease, { reached, names: ['period', 'time'], suspend: undefined }, [])
    const { body } = await send(service, 'listRunWaits', account.key, { path: { runId: lease.runId } }).expect(200)
    const [period, at] = body.data.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1))
    const length = Date.parse(period.deadline) - Date.parse(period.createdAt)
    expect(length).toBeGreaterThan(500_000 - hour / 10)
    expect(length).toBeLessThanOrEqual(500_000)
    expect(Date.parse(at.deadline)).toBe(time)
    // What the worker waits for, by its own clock.
    expect(Math.abs((results?.deadlines.period ?? 0) - now() - 500_000)).toBeLessThan(hour / 10)
    expect(Math.abs((results?.deadlines.time ?? 0) - ahead - time)).toBeLessThan(hour / 10)
  },
)
