/** Bulk actions: each run of the filter is worked on exactly once, with any number of processes. */

import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import type { NewBulkAction } from '../../../src/domain/bulk-actions/bulk-actions.ts'
import { browserWorkflow } from '../../support/browser-contexts.ts'
import { claimableOf, claimOne } from '../../support/claims.ts'
import { type DomainOptions, newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { beforeNextWrite, recordNotifications } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const count = 250

async function openWithRuns(test: Test, kind: StoreKind, options: Partial<DomainOptions> = {}) {
  let time = Date.now()
  const now = () => time
  const domain = await openDomain(test, { kind, now, ...options })
  const { principal } = await newAccount(domain)
  const { accountId, apiKeyId } = principal
  const runs = await Promise.all(
    Array.from({ length: count }, (_, index) => queueRun(domain, principal, { priority: index % 10, tags: ['a'] })),
  )
  const pass = (milliseconds: number) => {
    time += milliseconds
  }
  const create = async (members: Partial<NewBulkAction> & Pick<NewBulkAction, 'kind'>) => {
    const given = { filter: {}, apiKeyId, usesBrowserContexts: true, ...members }
    const created = await domain.bulkActions.create(accountId, given, operator)
    if (created.kind !== 'created') throw new Error(created.kind)
    return created.action.id
  }
  const get = (id: string) => domain.bulkActions.get(accountId, id)
  const rows = () => domain.store.read.query.selectFrom('runs').selectAll().orderBy('id').execute()
  const finishAll = () =>
    domain.store.write(({ query }) =>
      query.updateTable('runs').set({ status: 'failed', reason: 'workflowError', finished_at: now() }).execute(),
    )
  async function work() {
    while (await domain.bulkWorker.once()) {
      // Until no batch is left.
    }
  }
  return { ...{ domain, principal, runs, pass, now, create, get, rows, finishAll, work, accountId } }
}

describe.each(stores)('bulk actions ($name)', (kind) => {
  test('cancel every run of the filter that was queued before, and no other', async (test) => {
    const { domain, principal, accountId, create, get, rows, work } = await openWithRuns(test, kind)
    const other = await queueRun(domain, principal, { tags: ['b'] })
    const counts = [1000, 100].map((limit) => domain.bulkActions.count(accountId, 'cancel', { tag: ['a'] }, limit))
    expect(await Promise.all(counts)).toEqual([count, 100])
    expect(await domain.bulkActions.count(accountId, 'rerun', {}, 1000)).toBe(0)
    // Runs that are queued before this time, and after the action, are not its concern.
    const createdBefore = new Date(Date.now() + 60_000).toISOString()
    const id = await create({ kind: 'cancel', filter: { tag: ['a'], createdBefore } })
    expect((await domain.bulkActions.unfinished(accountId)).map((action) => action.id)).toEqual([id])
    expect(await domain.bulkActions.unfinished((await newAccount(domain)).accountId)).toEqual([])
    const later = await queueRun(domain, principal, { tags: ['a'] })
    await work()
    expect(await get(id)).toMatchObject({ status: 'finished', matched: count, done: count, skipped: 0, failed: 0 })
    const queued = (await rows()).filter(({ status }) => status === 'queued').map((row) => row.id)
    expect(queued).toEqual([other.id, later.id])
    const cancelled = (await rows()).find(({ status }) => status === 'cancelled')
    expect(cancelled?.cancelled_by_key_id).toBe(principal.apiKeyId)
  })

  test('cancel a batch with a few statements, whatever the number of its runs', async (test) => {
    const { domain, create, get } = await openWithRuns(test, kind)
    const id = await create({ kind: 'cancel' })
    const { write } = domain.store
    let statements = 0
    domain.store.write = ((work, options) =>
      write.call(
        domain.store,
        (tx) => {
          const all: typeof tx.all = (...statement) => {
            statements += 1
            return tx.all(...statement)
          }
          return work({ ...tx, all })
        },
        options,
      )) as typeof write
    await domain.bulkWorker.once()
    expect(await get(id)).toMatchObject({ status: 'working', total: count, done: 100 })
    // SQLite inserts each event by a statement.
    expect(statements).toBeLessThan(kind.name === 'sqlite' ? 120 : 10)
  })

  test('have a total that includes what was done, and what was found in the end', async (test) => {
    const { domain, create, get, finishAll, work } = await openWithRuns(test, kind)
    const id = await create({ kind: 'cancel' })
    expect(await get(id)).toMatchObject({ total: null, matched: 0 })
    await domain.bulkWorker.once()
    // As after a version that did not count.
    await domain.store.write(({ query }) => query.updateTable('bulk_actions').set({ total: null }).execute())
    await domain.bulkWorker.once()
    expect(await get(id)).toMatchObject({ total: count, matched: 200 })
    await finishAll()
    await work()
    expect(await get(id)).toMatchObject({ status: 'finished', total: 200, matched: 200 })
  })

  test('repeat every run once although several processes work and commits fail', async (test) => {
    const { domain, runs, create, get, rows, finishAll, now } = await openWithRuns(test, kind)
    await finishAll()
    const id = await create({ kind: 'rerun' })
    const others = await Promise.all([1, 2].map(() => openDomain(test, { kind, location: domain.location, now })))
    // Fails after the batch's statements, like a process that is killed before the commit.
    const { write } = domain.store
    let failures = 0
    domain.store.write = ((work, options) =>
      write.call(
        domain.store,
        async (tx) => {
          const result = await work(tx)
          failures += 1
          if (failures % 2 === 1) throw new Error('killed')
          return result
        },
        options,
      )) as typeof write
    for (let round = 0; round < 10; round += 1)
      await Promise.allSettled([domain, ...others].map(({ bulkWorker }) => bulkWorker.once()))
    domain.store.write = write
    expect(failures).toBeGreaterThan(0)
    expect(await get(id)).toMatchObject({ status: 'finished', matched: count, done: count, limitReached: false })
    const repeated = (await rows()).flatMap(({ rerun_of }) => rerun_of ?? [])
    expect(repeated.sort()).toEqual(runs.map((run) => run.id).sort())
  })

  test('take turns, so that one of many runs does not delay the others', async (test) => {
    const { domain, create, get, pass } = await openWithRuns(test, kind)
    const many = await create({ kind: 'cancel', filter: { tag: ['a'] } })
    const none = await create({ kind: 'cancel', filter: { tag: ['none'] } })
    await domain.bulkWorker.once()
    pass(1)
    await domain.bulkWorker.once()
    expect(await get(many)).toMatchObject({ status: 'working', done: 100 })
    expect(await get(none)).toMatchObject({ status: 'finished' })
  })

  test('continue where another process has ended its batch in the meantime', async (test) => {
    const { domain, create, get, now } = await openWithRuns(test, kind)
    const second = await openDomain(test, { kind, location: domain.location, now })
    const id = await create({ kind: 'cancel' })
    beforeNextWrite(domain.store, () => second.bulkWorker.once())
    await domain.bulkWorker.once()
    expect(await get(id)).toMatchObject({ done: 200, skipped: 0 })
  })

  test('work on each run once although a batch begins before the one before it is committed', async (test) => {
    const { domain, create, get, rows, finishAll } = await openWithRuns(test, kind)
    await finishAll()
    const id = await create({ kind: 'rerun' })
    await Promise.all([domain.bulkWorker.once(), domain.bulkWorker.once()])
    expect(await get(id)).toMatchObject({ done: 200 })
    const repeated = (await rows()).flatMap(({ rerun_of }) => rerun_of ?? [])
    expect(new Set(repeated).size).toBe(repeated.length)
  })

  test('do not change who has cancelled a run that is still running', async (test) => {
    const { domain, principal, accountId, create, get, rows, work } = await openWithRuns(test, kind)
    const { runId } = await claimOne(domain)
    await domain.runs.cancel(accountId, runId, { apiKeyId: principal.apiKeyId })
    const id = await create({ kind: 'cancel', apiKeyId: null })
    await work()
    expect(await get(id)).toMatchObject({ matched: count, done: count - 1, skipped: 1 })
    expect((await rows()).find((row) => row.id === runId)?.cancelled_by_key_id).toBe(principal.apiKeyId)
  })

  test('start the next run of a group whose first one they cancel', async (test) => {
    const workflows = [workflow({ concurrency: { limit: 1, per: 'key' } })]
    const { domain, principal, create, work } = await openWithRuns(test, kind, { workflows })
    const keyed = (tags: string[]) => queueRun(domain, principal, { concurrencyKey: 'k', tags, priority: 10 })
    const [running, next, last] = [await keyed(['x']), await keyed(['y']), await keyed(['z'])]
    const claimable = claimableOf(domain.workflows)
    const claimed = async () => (await domain.queue.claim('worker', claimable, 1, 1000)).map(({ runId }) => runId)
    expect(await claimed()).toEqual([running.id])
    await claimed()
    const waiting = async () => {
      const queued = domain.store.read.query.selectFrom('runs').select('id').where('status', '=', 'queued')
      return (await queued.where('waiting_for', '!=', '').orderBy('id').execute()).map((row) => row.id)
    }
    expect(await waiting()).toEqual([next.id, last.id])
    await create({ kind: 'cancel', filter: { tag: ['y'] } })
    await work()
    expect(await waiting()).toEqual([])
  })

  test('wait at the limit of queued runs, and continue when the account can have more', async (test) => {
    const opened = await openWithRuns(test, kind, { queuedRunsMax: count })
    const { domain, principal, create, get, rows, finishAll, work, pass } = opened
    await finishAll()
    const [unfinished] = await rows()
    await domain.store.write(({ query }) => {
      const update = query.updateTable('runs').set({ status: 'queued', finished_at: null })
      return update.where('id', '=', unfinished?.id ?? '').execute()
    })
    for (let index = 0; index < 20; index += 1) await queueRun(domain, principal, { tags: ['b'] })
    const id = await create({ kind: 'rerun', filter: { tag: ['a'], status: ['failed', 'queued'] } })
    await work()
    const waiting = { status: 'waiting', waitsFor: 'queuedRunsLimit', done: count - 21, skipped: 1 }
    expect(await get(id)).toMatchObject(waiting)
    await finishAll()
    await work()
    expect(await get(id)).toMatchObject(waiting)
    pass(5000)
    await work()
    expect(await get(id)).toMatchObject({ status: 'finished', waitsFor: null, done: count - 1, skipped: 1, failed: 0 })
    expect((await rows()).filter(({ rerun_of }) => rerun_of !== null)).toHaveLength(count - 1)
  })

  test('count runs that no longer fit, with the first one as a sample', async (test) => {
    const { domain, runs, create, get, finishAll, work } = await openWithRuns(test, kind)
    await finishAll()
    const gone = runs.slice(3, 5).map((run) => run.id)
    await domain.store.write(({ query }) =>
      query.updateTable('runs').set({ workflow_id: 'gone' }).where('id', 'in', gone).execute(),
    )
    const id = await create({ kind: 'rerun' })
    await work()
    const firstFailure = { runId: gone.sort()[0], detail: 'The account no longer has the workflow of the run.' }
    expect(await get(id)).toMatchObject({ done: count - 2, failed: 2, firstFailure })
  })

  test('count a run whose secrets cannot be read, and continue behind it', async (test) => {
    const { domain, runs, create, get, finishAll, work } = await openWithRuns(test, kind)
    await finishAll()
    const [unreadable] = runs.slice(3)
    const secrets = Buffer.from('of a lost key')
    await domain.store.write(({ query }) =>
      query
        .updateTable('runs')
        .set({ secrets })
        .where('id', '=', unreadable?.id ?? '')
        .execute(),
    )
    const id = await create({ kind: 'rerun' })
    await work()
    const firstFailure = { runId: unreadable?.id, detail: 'The service could not read the secrets of the run.' }
    expect(await get(id)).toMatchObject({ status: 'finished', done: count - 1, failed: 1, firstFailure })
  })

  test.for([
    [true, { done: 1, failed: 0 }],
    [false, { done: 0, failed: 1 }],
  ] as const)(
    'repeat runs with a browser context only for callers that may use one (%s)',
    async ([may, counts], test) => {
      const opened = await openWithRuns(test, kind, { workflows: [workflow(), browserWorkflow] })
      const { domain, principal, accountId, create, get, rows, finishAll, work } = opened
      const { id: browserContextId } = (await domain.browserContexts.create(accountId, undefined)) ?? {}
      const context = { workflowId: browserWorkflow.id, browserContextId, persistContext: 'never' as const }
      const { id: runId } = await queueRun(domain, principal, { ...context, tags: ['context'] })
      await finishAll()
      const id = await create({ kind: 'rerun', filter: { tag: ['context'] }, usesBrowserContexts: may })
      await work()
      const detail = 'The run has a browser context, and the API key lacks browser-contexts:use.'
      expect(await get(id)).toMatchObject({ ...counts, firstFailure: may ? null : { runId, detail } })
      expect((await rows()).filter(({ rerun_of }) => rerun_of === runId)).toHaveLength(counts.done)
    },
  )

  test('wake the workers of runs that they cancel or queue, and those who follow the runs', async (test) => {
    const { domain, create, rows, finishAll, work } = await openWithRuns(test, kind)
    const { runId } = await claimOne(domain)
    const count = async (is: (row: Awaited<ReturnType<typeof rows>>[number]) => boolean) =>
      (await rows()).filter(is).length
    const cancelNotified = recordNotifications(domain.store, async () => ({
      requested: await count(({ id, cancel_requested }) => id === runId && cancel_requested === 1),
      cancelled: await count(({ status }) => status === 'cancelled'),
      queued: await count(({ rerun_of, status }) => rerun_of !== null && status === 'queued'),
    }))
    await create({ kind: 'cancel' })
    await domain.bulkWorker.once()
    const cancelled = await cancelNotified()
    expect(cancelled.cancellations?.requested).toBe(1)
    expect(cancelled.runs?.cancelled).toBeGreaterThan(0)
    await work()
    await finishAll()
    const rerunNotified = recordNotifications(domain.store, () => count(({ rerun_of }) => rerun_of !== null))
    await create({ kind: 'rerun' })
    await domain.bulkWorker.once()
    expect((await rerunNotified()).queue).toBeGreaterThan(0)
  })

  test('repeat the secrets of the runs', async (test) => {
    const properties = { token: { type: 'string', writeOnly: true } }
    const workflows = [workflow({ variables: { type: 'object', properties } })]
    const { domain, principal, create, rows, finishAll, work } = await openWithRuns(test, kind, { workflows })
    const { id: runId } = await queueRun(domain, principal, { variables: { token: 'secret' }, tags: ['secret'] })
    await finishAll()
    await create({ kind: 'rerun', filter: { tag: ['secret'] } })
    await work()
    const repeated = (await rows()).find(({ rerun_of }) => rerun_of === runId)
    expect(repeated?.secrets).not.toBeNull()
    expect(JSON.parse(repeated?.variables ?? '{}').token).toBe('********')
  })
})
