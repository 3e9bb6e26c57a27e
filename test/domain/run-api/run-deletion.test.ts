/** Finished runs are deleted at once and completely. */
import { describe, expect, test, vi } from 'vitest'
import { AuditLog, operator } from '../../../src/domain/audit-log/audit-log.ts'
import { appendEvents } from '../../../src/domain/queue/runs.sql.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { claimOne, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, request, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const tables = ['runs', 'run_events', 'run_steps', 'artifacts'] as const

async function open(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const { accountId, principal } = await newAccount(domain)
  /** A run with more events and artifacts than one transaction erases. */
  const finishLargeRun = async () => {
    const run = await queueRun(domain, principal, { variables: { name: 'canary-7f3a' } })
    const claim = await claimOne(domain)
    for (const name of ['a', 'b']) {
      const content = Buffer.alloc(4 * 1024 * 1024, name)
      await domain.queue.keepArtifact(claim, { name, mediaType: 'text/plain', content }, [])
    }
    const line = { at: 0, type: 'log', data: { attempt: 1, level: 'info', message: 'canary-9b1c' } } as const
    await domain.store.write((tx) => appendEvents(tx, run.id, Array(1200).fill(line)))
    await domain.queue.complete(claim, { kind: 'succeeded', output: 'canary-2e8d' }, noRetry)
    return run
  }
  const rows = async () => {
    const counted = tables.map((table) => domain.store.read.all(`SELECT 1 AS one FROM ${table}`, []))
    return (await Promise.all(counted)).map(({ length }) => length)
  }
  const listed = async () => (await domain.runs.list(accountId, { limit: 100 }))?.runs.map(({ id }) => id)
  const remove = (id: string, account = accountId) => domain.runs.delete(account, id, operator)
  return { domain, accountId, principal, finishLargeRun, rows, listed, remove }
}

describe.each(stores)('deletion of a run ($name)', (kind) => {
  test('erases a run with its events and artifacts in batches, and nothing of it is left in the store', async (test) => {
    const { domain, accountId, finishLargeRun, rows, listed, remove } = await open(test, kind)
    const run = await finishLargeRun()
    const kept = await finishLargeRun()
    const before = await rows()
    const write = vi.spyOn(domain.store, 'write')
    expect(await remove(run.id.toUpperCase())).toBe('deleted')
    expect(write.mock.calls.length).toBeGreaterThan(3)
    expect(await rows()).toEqual(before.map((count) => count / 2))
    expect(await listed()).toEqual([kept.id])
    expect(await remove(run.id)).toBeUndefined()
    expect(await remove(kept.id)).toBe('deleted')
    expect(await rows()).toEqual([0, 0, 0, 0])
    if (kind.name === 'sqlite') {
      const contents = await kind.contents(domain.location)
      for (const canary of ['canary-7f3a', 'canary-9b1c', 'canary-2e8d']) expect(contents.includes(canary)).toBe(false)
    }
    const [entry] = await new AuditLog(domain.store).list(accountId, { limit: 1 })
    expect(entry).toMatchObject({ action: 'run.deleted', by: operator, subject: { id: kept.id, name: 'anything' } })
  })

  test('hides the run at once, and maintenance erases it if the process cannot', async (test) => {
    const { domain, accountId, finishLargeRun, rows, listed, remove } = await open(test, kind)
    const { id } = await finishLargeRun()
    const { write } = domain.store
    vi.spyOn(domain.store, 'write').mockImplementationOnce(write).mockRejectedValue(new StoreUnavailable('Lost.'))
    expect(await remove(id)).toBe('deleted')
    vi.mocked(domain.store.write).mockImplementation(write)
    expect((await rows())[0]).toBe(1)
    expect(await listed()).toEqual([])
    for (const status of ['succeeded', 'failed'] as const) {
      expect((await domain.runs.list(accountId, { limit: 100, status }))?.runs).toEqual([])
    }
    expect(await domain.runs.get(accountId, id)).toBeUndefined()
    expect(await domain.runs.getWithHistory(accountId, id, { logsMax: 1 })).toBeUndefined()
    expect(await domain.runs.cancel(accountId, id)).toBeUndefined()
    expect(await domain.artifacts.read(accountId, id, 'b')).toBeUndefined()
    while ((await domain.maintenance.once()) < 1000);
    expect(await rows()).toEqual([0, 0, 0, 0])
  })

  test('leaves unfinished runs and runs of other accounts unchanged', async (test) => {
    const { domain, principal, finishLargeRun, rows, remove } = await open(test, kind)
    const finished = await finishLargeRun()
    const queued = await queueRun(domain, principal)
    const running = await queueRun(domain, principal, { priority: 1 })
    await claimOne(domain)
    const before = await rows()
    expect(await remove(queued.id)).toMatchObject({ id: queued.id, status: 'queued' })
    expect(await remove(running.id)).toMatchObject({ id: running.id, status: 'running' })
    const { accountId: other } = await newAccount(domain)
    expect(await remove(finished.id, other)).toBeUndefined()
    expect(await rows()).toEqual(before)
  })

  test('of several deletions at once, one deletes', async (test) => {
    const { domain, accountId, finishLargeRun, remove } = await open(test, kind)
    const other = await openDomain(test, { kind, location: domain.location })
    const { id } = await finishLargeRun()
    const deletions = [remove(id), other.runs.delete(accountId, id, operator), remove(id)]
    expect((await Promise.all(deletions)).filter((deleted) => deleted === 'deleted')).toHaveLength(1)
    const entries = await new AuditLog(domain.store).list(accountId, { limit: 100, action: 'run.deleted' })
    expect(entries).toHaveLength(1)
  })

  test('a request that is repeated after the deletion of its run does not run a second time', async (test) => {
    const { domain, principal, rows, remove } = await open(test, kind)
    const repeated = { ...request, idempotencyKey: 'once' }
    const { id } = await queueRun(domain, principal, repeated)
    await domain.runs.cancel(principal.accountId, id)
    await remove(id)
    expect(await domain.runs.queue(principal, repeated)).toEqual({ kind: 'runDeleted' })
    const other = { ...repeated, variables: { other: true } }
    expect(await domain.runs.queue(principal, other)).toEqual({ kind: 'idempotencyConflict' })
    expect(await rows()).toEqual([0, 0, 0, 0])
  })
})
