/** The limit of queued runs of an account holds exactly, over all processes. */
import { describe, expect, test } from 'vitest'
import { insertRuns, QueuedRunsLimit } from '../../../src/domain/queue/enqueue-batcher.ts'
import type { Transaction } from '../../../src/storage/store.ts'
import { type Domain, newAccount, openDomain, queueRun, request, type Test } from '../../support/domain.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

type Account = Awaited<ReturnType<typeof newAccount>>

/** Two processes of one installation, and an account. */
async function openTwo(test: Test, kind: StoreKind, queuedRunsMax: number) {
  const domain = await openDomain(test, { kind, queuedRunsMax })
  const other = await openDomain(test, { kind, queuedRunsMax, location: domain.location })
  return { domain, other, account: await newAccount(domain) }
}

async function countQueued({ store }: Domain, { accountId }: Account): Promise<number> {
  const sql = "SELECT COUNT(*) AS count FROM runs WHERE account_id = ? AND status = 'queued'"
  const [row] = await store.read.all<{ count: number }>(sql, [accountId])
  return row?.count ?? 0
}

async function insert(tx: Transaction, { accountId }: Account, count: number): Promise<void> {
  const rows = Array.from({ length: count }, () => newRunRow(accountId))
  await insertRuns(tx, rows)
}

async function queueAtOnce(domains: Domain[], { principal }: Account, count: number): Promise<string[]> {
  const queueing = Array.from({ length: count }, (_, index) =>
    domains[index % domains.length]?.runs.queue(principal, request),
  )
  return (await Promise.all(queueing)).map((queued) => queued?.kind ?? 'none')
}

describe.each(stores)('the limit of queued runs ($name)', (kind) => {
  test('holds for a hundred requests to two processes at the same time', async (test) => {
    const { domain, other, account } = await openTwo(test, kind, 40)
    const kinds = await queueAtOnce([domain, other], account, 100)
    expect(kinds.filter((each) => each === 'queued')).toHaveLength(40)
    expect(kinds.filter((each) => each === 'tooManyQueuedRuns')).toHaveLength(60)
    expect(await countQueued(domain, account)).toBe(40)
    const refused = await other.runs.queue(account.principal, request)
    expect(refused).toEqual({ kind: 'tooManyQueuedRuns', queuedMax: 40 })
  })

  test('holds when it is approached from far away, where runs are not counted each time', async (test) => {
    const { domain, other, account } = await openTwo(test, kind, 5100)
    await domain.store.write(async (tx) => {
      await insert(tx, account, 5080)
    })
    await queueAtOnce([domain, other], account, 60)
    expect(await countQueued(domain, account)).toBe(5100)
  })

  test('holds for concurrent transactions', async (test) => {
    const { domain, other, account } = await openTwo(test, kind, 30)
    const writing = Array.from({ length: 60 }, (_, index) => {
      const limit = new QueuedRunsLimit(30)
      const work = async (tx: Transaction) => {
        const reserved = await limit.reserve(tx, account.accountId, 2)
        await insert(tx, account, reserved)
      }
      return (index % 2 ? domain : other).store.write(work, { concurrent: true })
    })
    await Promise.all(writing)
    expect(await countQueued(domain, account)).toBe(30)
  })

  test('accepts runs as others leave the queue, and does not affect other accounts', async (test) => {
    const { domain, other, account } = await openTwo(test, kind, 2)
    const [first] = [await queueRun(domain, account.principal), await queueRun(other, account.principal)]
    expect(await queueAtOnce([domain, other], account, 2)).toEqual(['tooManyQueuedRuns', 'tooManyQueuedRuns'])
    await other.runs.cancel(account.accountId, first.id)
    expect((await queueAtOnce([domain, other], account, 2)).sort()).toEqual(['queued', 'tooManyQueuedRuns'])
    expect(await queueAtOnce([domain], await newAccount(domain), 3)).toEqual(['queued', 'queued', 'tooManyQueuedRuns'])
  })

  test('does not reject replays, and a rejected request does not use its idempotency key', async (test) => {
    const { domain, account } = await openTwo(test, kind, 1)
    const once = { ...request, idempotencyKey: 'once' }
    const first = await domain.runs.queue(account.principal, once)
    expect(await domain.runs.queue(account.principal, once)).toEqual({ ...first, replayed: true })
    const another = { ...request, idempotencyKey: 'another' }
    expect(await domain.runs.queue(account.principal, another)).toMatchObject({ kind: 'tooManyQueuedRuns' })
    if (first.kind === 'queued') await domain.runs.cancel(account.accountId, first.run.id)
    expect(await domain.runs.queue(account.principal, another)).toMatchObject({ kind: 'queued', replayed: false })
  })

  test('needs no count for each run while it is far away', async (test) => {
    const { domain, account } = await openTwo(test, kind, 0)
    const [far, near] = [new QueuedRunsLimit(10_000), new QueuedRunsLimit(1000)]
    const statements = { far: 0, near: 0 }
    await domain.store.write(async (tx) => {
      const counting = (limit: 'far' | 'near'): Transaction => ({
        ...tx,
        all: (sql, values) => {
          statements[limit] += 1
          return tx.all(sql, values)
        },
      })
      for (let count = 0; count < 20; count += 1) {
        expect(await far.reserve(counting('far'), account.accountId, 1)).toBe(1)
        expect(await near.reserve(counting('near'), account.accountId, 1)).toBe(1)
      }
    })
    expect(statements.far).toBeLessThan(20)
    expect(statements.near).toBe(40)
  })
})
