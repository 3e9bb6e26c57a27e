/**
 * No statement reads the large columns of many runs: on SQLite, it would block the service's thread for seconds. Bytes
 * are counted by the system, for each statement, on a store whose runs have a megabyte each.
 */
import { readFileSync } from 'node:fs'
import { StatementSync } from 'node:sqlite'
import { expect, type TestContext, test } from 'vitest'
import { putArtifact } from '../../src/domain/queue/attempt-artifacts.ts'
import { RunFeed } from '../../src/domain/run-api/run-feed.ts'
import { queueDepth } from '../../src/domain/statistics/queue-depth.ts'
import { RunStatistics } from '../../src/domain/statistics/run-statistics.ts'
import { claimAll, createManualClock, failedAttempt, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun } from '../support/domain.ts'

const megabyte = 1024 * 1024
const runs = 40
/** The largest run that is returned as a whole, with what belongs to it. */
const bytesMax = 4 * megabyte

const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

/** Records the most bytes that each statement has read. */
function recordBytes(test: TestContext): Map<string, number> {
  const most = new Map<string, number>()
  for (const name of ['all', 'get', 'run'] as const) {
    const original = StatementSync.prototype[name] as (...values: unknown[]) => unknown
    StatementSync.prototype[name] = function (this: StatementSync, ...values: unknown[]) {
      const before = bytesRead()
      const result = original.apply(this, values)
      const sql = this.sourceSQL.replace(/\s+/g, ' ')
      most.set(sql, Math.max(most.get(sql) ?? 0, bytesRead() - before))
      return result
    } as never
    test.onTestFinished(() => {
      StatementSync.prototype[name] = original as never
    })
  }
  return most
}

/** Succeeded, failed and queued runs with a megabyte of variables, output, steps, events and files. */
async function fill(domain: Domain, clock: { now(): number }) {
  const { principal } = await newAccount(domain)
  const variables = { text: 'x'.repeat(megabyte / 2) }
  for (let count = 0; count < runs; count += 1) await queueRun(domain, principal, { variables })
  for (const [index, claim] of (await claimAll(domain.queue, domain, runs / 2)).entries()) {
    const events = [{ at: clock.now(), type: 'log' as const, data: { message: 'y'.repeat(1000) } }]
    const step = { name: 'a', position: 1 }
    await domain.queue.finishStep(claim, step, () => new Uint8Array(megabyte / 2), events)
    const file = { name: 'a.txt', mediaType: 'text/plain' as const, content: new Uint8Array(megabyte) }
    const prepared = { ...file, sizeBytes: megabyte, blob: null }
    await domain.store.write((tx) => putArtifact(tx, claim, prepared, clock.now()))
    const outcome = index % 2 === 0 ? failedAttempt : ({ kind: 'succeeded', output: variables } as const)
    await domain.queue.complete(claim, outcome, noRetry)
  }
  return principal
}

test('no statement reads more than the rows that it returns', async (test) => {
  const clock = createManualClock()
  const domain = await openDomain(test, { now: clock.now })
  const principal = await fill(domain, clock)
  const { accountId } = principal
  const most = recordBytes(test)

  await domain.usage.maintain()
  for (let second = 0; second < 3; second += 1) {
    await domain.maintenance.once()
    clock.set(clock.now() + 61_000)
  }
  const page = await domain.runs.list(accountId, { limit: 50 })
  for (const status of ['queued', 'failed', 'succeeded'] as const)
    await domain.runs.list(accountId, { limit: 50, status: [status] })
  const id = page?.runs[0]?.id ?? ''
  await domain.runs.getWithWaiting(accountId, id)
  await domain.runs.getWithHistory(accountId, id, { logsMax: 100 })
  await domain.bulkActions.count(accountId, 'rerun', {}, 10_000)
  await domain.bulkActions.create(
    accountId,
    { kind: 'rerun', filter: { status: ['failed'] }, mayUseContexts: true } as never,
    {
      apiKeyId: principal.apiKeyId,
    },
  )
  while (await domain.bulkWorker.once());
  const statistics = new RunStatistics(domain.store, clock.now)
  await statistics.current(accountId)
  await statistics.history(accountId, '24h')
  const limits = { ofWorkflow: () => Number.POSITIVE_INFINITY, ofAccount: Number.POSITIVE_INFINITY }
  await queueDepth(domain.store.read, limits as never)
  const feed = new RunFeed(domain.store)
  test.onTestFinished(() => feed.close())
  await feed.hasEventsAfter(id, 0)
  await claimAll(domain.queue, domain, 1)

  expect(most.size).toBeGreaterThan(30)
  const large = [...most].filter(([, bytes]) => bytes > bytesMax)
  expect(large.map(([sql, bytes]) => `${(bytes / megabyte).toFixed(1)} MB: ${sql}`)).toEqual([])
})
