/** Lists of runs by what they have in common, such as tags. */
import { describe, expect, test } from 'vitest'
import type { ListRequest } from '../../src/domain/runs/list-request.ts'
import { claimAll, failedAttempt, noRetry } from '../support/claims.ts'
import { newAccount, openDomain, queueRun, request, type Test, workflow } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

async function open(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'other' })] })
  const account = await newAccount(domain)
  /** The ids of every page, with pages of one run. */
  const list = async (filters: Partial<ListRequest>, accountId = account.accountId) => {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await domain.runs.list(accountId, { limit: 1, ...filters, cursor })
      ids.push(...(page?.runs ?? []).map(({ id }) => id))
      cursor = page?.nextCursor ?? undefined
    } while (cursor !== undefined)
    return ids
  }
  const countTerms = async () => (await domain.store.read.all('SELECT 1 AS one FROM run_terms', [])).length
  return { domain, ...account, list, countTerms }
}

describe.each(stores)('finding runs ($name)', (kind) => {
  test('a run is found by each of its tags, and by any of several, once', async (test) => {
    const { domain, principal, accountId, list, countTerms } = await open(test, kind)
    const queue = async (tags?: string[], workflowId = 'anything') =>
      (await queueRun(domain, principal, { tags, workflowId })).id
    const one = await queue(['customer:1', 'nightly'])
    await queue()
    const two = await queue(['customer:2', 'nightly'], 'other')
    const three = await queue(['nightly'])
    expect(await countTerms()).toBe(10)
    expect((await domain.runs.get(accountId, one))?.tags).toEqual(['customer:1', 'nightly'])
    expect(await list({ tag: ['nightly'] })).toEqual([three, two, one])
    expect(await list({ tag: ['customer:1'] })).toEqual([one])
    expect(await list({ tag: ['customer:2', 'customer:1'] })).toEqual([two, one])
    expect(await list({ tag: ['nightly', 'customer:1', 'unknown', 'customer:2'] })).toEqual([three, two, one])
    expect(await list({ tag: ['nightly'], workflowId: 'other' })).toEqual([two])
    expect(await list({ tag: ['Nightly'] })).toEqual([])
    expect(await list({ tag: ['nightly'] }, (await newAccount(domain)).accountId)).toEqual([])
  })

  test('tags and statuses combine while runs start, succeed, fail, are retried and cancelled', async (test) => {
    const { domain, accountId, principal, list } = await open(test, kind)
    const ids: string[] = []
    for (let run = 0; run < 5; run += 1) ids.push((await queueRun(domain, principal, { tags: ['t'] })).id)
    const [succeeded, failed, retried, running, cancelled] = ids
    const status = (status: ListRequest['status']) => list({ tag: ['t'], status })
    expect(await status('queued')).toEqual(ids.toReversed())
    await domain.runs.cancel(accountId, cancelled as string)
    const claims = await claimAll(domain.queue, domain)
    expect(await status(['running', 'queued'])).toEqual([running, retried, failed, succeeded])
    const claimOf = (id: string | undefined) => claims.find(({ runId }) => runId === id) as (typeof claims)[number]
    await domain.queue.complete(claimOf(succeeded), { kind: 'succeeded', output: 1 }, noRetry)
    await domain.queue.complete(claimOf(failed), failedAttempt, noRetry)
    await domain.queue.complete(claimOf(retried), failedAttempt, { ...noRetry, maxAttempts: 2 })
    expect(await status('succeeded')).toEqual([succeeded])
    expect(await status('failed')).toEqual([failed])
    expect(await status('queued')).toEqual([retried])
    expect(await status('running')).toEqual([running])
    expect(await status(['cancelled', 'failed'])).toEqual([cancelled, failed])
    expect(await list({ tag: ['t'], status: 'failed', workflowId: 'other' })).toEqual([])
  })

  test('a deleted run leaves no tags in the store', async (test) => {
    const { domain, accountId, principal, countTerms } = await open(test, kind)
    const { id } = await queueRun(domain, principal, { tags: ['canary-51c7'] })
    await domain.runs.cancel(accountId, id)
    await domain.runs.delete(accountId, id, { apiKeyId: principal.apiKeyId })
    expect(await countTerms()).toBe(0)
    if (kind.name === 'sqlite') {
      await domain.store.scrub()
      expect((await kind.contents(domain.location)).includes('canary-51c7')).toBe(false)
    }
  })

  test('an Idempotency-Key fits the same tags in another order only', async (test) => {
    const { domain, principal } = await open(test, kind)
    const queue = (tags?: string[]) => domain.runs.queue(principal, { ...request, idempotencyKey: 'once', tags })
    expect(await queue(['a', 'b'])).toMatchObject({ kind: 'queued', replayed: false })
    expect(await queue(['b', 'a'])).toMatchObject({ kind: 'queued', replayed: true, run: { tags: ['a', 'b'] } })
    expect(await queue(['a'])).toEqual({ kind: 'idempotencyConflict' })
    expect(await queue()).toEqual({ kind: 'idempotencyConflict' })
  })
})
