/** Finished runs and audit log entries are purged after their retention, in small batches. */
import { describe, expect, test } from 'vitest'
import { AuditLog, operator, recordAudit } from '../../src/domain/audit-log/audit-log.ts'
import { appendEvents } from '../../src/domain/queue/runs.sql.ts'
import { RunFeed } from '../../src/domain/run-api/run-feed.ts'
import { RunStatistics } from '../../src/domain/statistics/run-statistics.ts'
import { expiredRuns, retentionFrom } from '../../src/maintenance/retention.ts'
import { claimOne, createManualClock, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const daySeconds = 24 * 60 * 60
const millisecond = 0.001

async function openRetention(test: Test, kind: StoreKind) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, now: clock.now })
  const { accountId, principal } = await newAccount(domain)
  const finishRun = async () => {
    const run = await queueRun(domain, principal)
    await domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: 'done' }, noRetry)
    return run
  }
  const exists = async (id: string) => (await domain.runs.get(accountId, id)) !== undefined
  return { clock, domain, accountId, principal, finishRun, exists }
}

const tables = ['runs', 'run_events', 'run_steps', 'artifacts', 'idempotency_keys'] as const

async function countRows({ store }: Domain): Promise<Record<string, number>> {
  const counted = await Promise.all(
    tables.map(async (table) => [table, (await store.read.all(`SELECT 1 AS one FROM ${table}`, [])).length]),
  )
  return Object.fromEntries(counted)
}

/** Purges until nothing has expired. */
async function purgeAll({ maintenance }: Domain): Promise<void> {
  while ((await maintenance.once()) < 1000);
}

async function addEvents({ store }: Domain, runId: string, count: number, message: string): Promise<void> {
  const report = { at: 0, type: 'log', data: { attempt: 1, level: 'info', message } } as const
  await store.write((tx) => appendEvents(tx, runId, Array(count).fill(report)))
}

describe.each(stores)('retention ($name)', (kind) => {
  test('purges a run with all its data after its retention, which starts when it finishes', async (test) => {
    const { clock, domain, principal, exists } = await openRetention(test, kind)
    const run = await queueRun(domain, principal, { idempotencyKey: 'once' })
    clock.advance(daySeconds)
    const claim = await claimOne(domain)
    await domain.queue.keepArtifact(claim, { name: 'a', mediaType: 'text/plain', content: Buffer.from('a') }, [])
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    clock.advance(90 * daySeconds - millisecond)
    await purgeAll(domain)
    expect(await exists(run.id)).toBe(true)
    clock.advance(millisecond)
    await purgeAll(domain)
    expect(await exists(run.id)).toBe(false)
    expect(await countRows(domain)).toEqual({ runs: 0, run_events: 0, run_steps: 0, artifacts: 0, idempotency_keys: 0 })
  })

  test('never purges an unfinished run', async (test) => {
    const { clock, domain, principal, exists } = await openRetention(test, kind)
    const waiting = await queueRun(domain, principal)
    const running = await queueRun(domain, principal, { priority: 10 })
    const delayed = await queueRun(domain, principal, { delaySeconds: 365 * daySeconds })
    const claim = await claimOne(domain)
    expect(claim.runId).toBe(running.id)
    await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
    await claimOne(domain)
    const cancelled = await queueRun(domain, principal)
    await domain.runs.cancel(principal.accountId, cancelled.id)
    clock.advance(200 * daySeconds)
    await purgeAll(domain)
    for (const { id } of [waiting, running, delayed]) expect(await exists(id)).toBe(true)
    expect(await exists(cancelled.id)).toBe(false)
  })

  test('purges a run with many events in batches, oldest events first', async (test) => {
    const { clock, domain, accountId, principal, finishRun } = await openRetention(test, kind)
    const run = await queueRun(domain, principal)
    const claim = await claimOne(domain)
    await addEvents(domain, run.id, 1200, 'a line')
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const other = await finishRun()
    clock.advance(90 * daySeconds)
    const countEvents = async () =>
      (await domain.runs.getWithHistory(accountId, run.id, { logsMax: 10 }))?.history ?? { events: [] }
    await domain.maintenance.once()
    expect((await countRows(domain)).run_events).toBe(702 + 2)
    // The remaining events can be read, and include the last one.
    expect(await countEvents()).toMatchObject({ logsOmitted: 1203 - 11 })
    expect((await countEvents()).events.at(-1)).toMatchObject({ data: { status: 'succeeded' } })
    await domain.maintenance.once()
    expect((await countRows(domain)).run_events).toBe(202 + 2)
    await domain.maintenance.once()
    expect(await countRows(domain)).toMatchObject({ runs: 0, run_events: 0 })
    expect(await domain.runs.get(accountId, other.id)).toBeUndefined()
  })

  test('limits a batch by bytes', async (test) => {
    const { clock, domain, finishRun } = await openRetention(test, kind)
    const runs = [await finishRun(), await finishRun(), await finishRun()]
    for (const { id } of runs) await addEvents(domain, id, 10, 'x'.repeat(60_000))
    await addEvents(domain, runs[2]?.id ?? '', 10, 'x'.repeat(60_000))
    clock.advance(90 * daySeconds)
    const counts: unknown[] = []
    for (;;) {
      const wait = await domain.maintenance.once()
      const { runs, run_events } = await countRows(domain)
      counts.push([runs, run_events])
      if (wait >= 1000) break
    }
    // The last run has more than a megabyte and takes two batches.
    expect(counts).toEqual([
      [2, 12 + 22],
      [1, 22],
      [1, 3],
      [0, 0],
    ])
  })

  test('keeps a run as long as its idempotency key', async (test) => {
    const { clock, domain, principal } = await openRetention(test, kind)
    const days = {
      ...retentionFrom({ RUN_RETENTION_DAYS: 1, ARTIFACT_RETENTION_DAYS: 9, AUDIT_LOG_RETENTION_DAYS: 1 }),
    }
    expect(days).toEqual({ runs: 1, artifacts: 1, auditLog: 1 })
    const brief = await openDomain(test, { kind, location: domain.location, now: clock.now, retention: days })
    const run = await queueRun(brief, principal, { idempotencyKey: 'daily' })
    await brief.runs.cancel(principal.accountId, run.id)
    // The clock of the other process is fast.
    const ahead = () => clock.now() + 30 * 60 * 1000
    const other = await openDomain(test, { kind, location: domain.location, now: ahead, retention: days })
    clock.advance(daySeconds - millisecond)
    await purgeAll(brief)
    await other.store.write(async (tx) => expiredRuns(days.runs, ahead).remove(tx))
    expect(await queueRun(brief, principal, { idempotencyKey: 'daily' })).toMatchObject({ id: run.id })
    clock.advance(2 * 60 * 60)
    await purgeAll(brief)
    const next = await queueRun(brief, principal, { idempotencyKey: 'daily' })
    expect(next.id).not.toBe(run.id)
    expect(await brief.runs.get(principal.accountId, run.id)).toBeUndefined()
  })

  test('leaves lists, cursors and statistics correct', async (test) => {
    const { clock, domain, accountId, principal, finishRun } = await openRetention(test, kind)
    for (let index = 0; index < 3; index += 1) await finishRun()
    const first = await domain.runs.list(accountId, { limit: 2 })
    const cursor = first?.nextCursor ?? ''
    clock.advance(90 * daySeconds)
    await purgeAll(domain)
    expect(await domain.runs.list(accountId, { limit: 2, cursor })).toEqual({ runs: [], nextCursor: null })
    const run = await queueRun(domain, principal)
    expect((await domain.runs.list(accountId, { limit: 2 }))?.runs.map(({ id }) => id)).toEqual([run.id])
    expect(await new RunStatistics(domain.store).current(accountId)).toMatchObject({ ready: 1, running: 0 })
  })

  test('ends the event stream of a purged run', async (test) => {
    const { clock, domain, finishRun } = await openRetention(test, kind)
    const run = await finishRun()
    const feed = new RunFeed(domain.store)
    test.onTestFinished(() => feed.close())
    const events = feed.events(run.id, 0, 0.01, new AbortController().signal)
    expect((await events.next()).value).toMatchObject({ sequence: 1 })
    clock.advance(90 * daySeconds)
    await purgeAll(domain)
    const rest: unknown[] = []
    for await (const event of events) rest.push(event)
    // Events that were read together with the first one.
    expect(rest.at(-1)).toMatchObject({ data: { status: 'succeeded' } })
    const again = feed.events(run.id, 3, 0.01, new AbortController().signal)
    expect(await again.next()).toEqual({ value: undefined, done: true })
  })

  test('purges audit log entries after their own retention', async (test) => {
    const { clock, domain, accountId } = await openRetention(test, kind)
    const at = clock.now()
    const entry = { action: 'account.renamed', by: operator } as const
    await domain.store.write(async (tx) => {
      for (let index = 0; index < 1100; index += 1) await recordAudit(tx, accountId, { ...entry, at })
    })
    const log = new AuditLog(domain.store)
    const count = async () => (await log.list(accountId, { action: 'account.renamed', limit: 10_000 })).length
    clock.advance(365 * daySeconds - millisecond)
    await purgeAll(domain)
    expect(await count()).toBe(1100)
    clock.advance(millisecond)
    await domain.maintenance.once()
    expect(await count()).toBe(600)
    await purgeAll(domain)
    expect(await count()).toBe(0)
  })
})
