/** The runs above and below a run: those that led to it by calls, and those that it has called. */
import { describe, expect, test } from 'vitest'
import { insertRuns } from '../../../src/domain/queue/enqueue-batcher.ts'
import type { CallTreeRun } from '../../../src/domain/run-api/waits.ts'
import { newAccount, openDomain, type Test } from '../../support/domain.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function open(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const { accountId } = await newAccount(domain)
  /** The ids of new runs that the parent has called. */
  const call = async (parent: string | null, count = 1) => {
    const rows = Array.from({ length: count }, () => newRunRow(accountId, { parent_run_id: parent }))
    await domain.store.write((tx) => insertRuns(tx, rows))
    return rows.map(({ id }) => id) as [string, ...string[]]
  }
  const read = (id: string | undefined, parentRunId: string | null | undefined) =>
    domain.waits.callTree({ id: id ?? '', parentRunId: parentRunId ?? null })
  return { domain, call, read }
}

/** Ids as lists of lists. */
const idsOf = ({ id, called }: CallTreeRun): unknown[] => [id, ...called.map(idsOf)]

const countRuns = ({ called }: CallTreeRun): number => called.reduce((sum, run) => sum + countRuns(run), 1)

describe.each(stores)('the tree of calls ($name)', (kind) => {
  test('leads from the first caller to the run, and on to all runs below it', async (test) => {
    const { call, read } = await open(test, kind)
    const [root] = await call(null)
    expect(await read(root, null)).toBeUndefined()
    const [parent] = await call(root)
    const [self, sibling] = await call(parent, 2)
    const [one, two] = await call(self as string, 2)
    const [below] = await call(one)
    const tree = await read(self, parent)
    expect(tree && idsOf(tree.root)).toEqual([root, [parent, [self, [one, [below]], [two]]]])
    expect(tree).toMatchObject({
      deletedCallerId: null,
      hasMore: false,
      root: { workflowId: 'anything', status: 'queued' },
    })
    const whole = await read(root, null)
    expect(whole && idsOf(whole.root)).toEqual([root, [parent, [self, [one, [below]], [two]], [sibling]]])
  })

  test('has at most 100 runs below the run, and every level above it', async (test) => {
    const { call, read } = await open(test, kind)
    let parent: string | null = null
    let self: string | undefined
    for (let level = 0; level <= 100; level += 1) {
      parent = self ?? null
      ;[self] = await call(parent)
    }
    await call(self as string, 100)
    const exact = await read(self, parent)
    expect(exact && [countRuns(exact.root), exact.hasMore, exact.deletedCallerId]).toEqual([201, false, null])
    await call(self as string, 400)
    const more = await read(self, parent)
    expect(more && [countRuns(more.root), more.hasMore]).toEqual([201, true])
  })

  test('ends where a run was deleted', async (test) => {
    const { domain, call, read } = await open(test, kind)
    const [root] = await call(null)
    const [self] = await call(root)
    const [gone] = await call(self as string)
    await call(gone)
    await domain.store.write((tx) => tx.all("UPDATE runs SET status = 'deleted' WHERE id IN (?, ?)", [root, gone]))
    expect(await read(self, root)).toMatchObject({ root: { id: self, called: [] }, deletedCallerId: root })
  })
})
