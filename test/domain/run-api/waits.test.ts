/** The waits that lists and the page of a run show. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { hideRun } from '../../../src/storage/runs/run-maintenance.ts'
import type { WaitKind, WaitStatus } from '../../../src/storage/tables/run-tables.ts'
import { newAccount, openDomain, queueRun } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

describe.each(stores)('the latest waits of a run ($name)', (kind) => {
  test('have every question first, then what else is open, then what has ended last', async (test) => {
    const domain = await openDomain(test, { kind })
    const { principal, accountId } = await newAccount(domain)
    const { id } = await queueRun(domain, principal)
    const wait = (name: string, kind: WaitKind, status: WaitStatus) => ({
      ...{ id: uuid(), run_id: id, name, account_id: accountId, workflow_id: 'anything', kind, status, reached_at: 1 },
      ...{ delivered: 0 as const, is_detached: 0 as const },
    })
    const ended = ['a', 'b', 'c'].map((name) => wait(name, 'sleep', 'completed'))
    const open = [wait('d', 'run', 'open'), wait('e', 'run', 'open'), wait('f', 'answer', 'open')]
    await domain.store.write(({ query }) =>
      query
        .insertInto('run_waits')
        .values([...ended, ...open])
        .execute(),
    )
    const names = async (max: number) => (await domain.waits.latestOfRun({ id }, max)).map(({ name }) => name).join('')
    expect(await Promise.all([1, 2, 3, 4, 10].map(names))).toEqual(['f', 'df', 'def', 'cdef', 'abcdef'])
  })
})

test.for(stores)('waits of a run that is being erased are in no list ($name)', async (kind, test) => {
  const domain = await openDomain(test, { kind })
  const { principal, accountId } = await newAccount(domain)
  const runs = [await queueRun(domain, principal), await queueRun(domain, principal), await queueRun(domain, principal)]
  const rows = runs.map(({ id: run_id }) => ({
    ...{ id: uuid(), run_id, name: 'pause', account_id: accountId, workflow_id: 'anything', kind: 'sleep' as const },
    ...{ status: 'completed' as const, reached_at: 1, delivered: 1 as const, is_detached: 0 as const },
  }))
  await domain.store.write(({ query }) => query.insertInto('run_waits').values(rows).execute())
  const [first, erased, last] = runs.map(({ id }) => id) as [string, string, string]
  const list = async (limit: number, cursor?: string) => {
    const page = await domain.waits.list(accountId, { limit, cursor })
    return { runs: page?.waits.map(({ runId }) => runId), cursor: page?.nextCursor ?? undefined }
  }
  expect((await list(10)).runs).toEqual([first, erased, last])
  // As deletion does first, before it erases the rest in further transactions.
  await domain.store.write((tx) => tx.all(hideRun, [erased]))
  expect((await list(10)).runs).toEqual([first, last])
  const page = await list(1)
  expect(page.runs).toEqual([first])
  expect(await list(1, page.cursor)).toEqual({ runs: [last], cursor: undefined })
  expect(await domain.waits.findPageOfRun(accountId, erased, { limit: 10 })).toBe(undefined)
})
