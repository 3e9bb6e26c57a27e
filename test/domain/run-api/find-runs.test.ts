/** Lists of runs by what they have in common, such as tags. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { ListRequest } from '../../../src/domain/run-api/list-request.ts'
import type { Outcome } from '../../../src/domain/runs/run-state.ts'
import { claimAll, failedAttempt, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, request, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

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

  test('runs are found by reason, by key and by a word of their error, with statuses, workflows and both orders', async (test) => {
    const { domain, accountId, principal, list } = await open(test, kind)
    const queue = async (workflowId = 'anything') => (await queueRun(domain, principal, { workflowId })).id
    const [failed, other, retried] = [await queue(), await queue('other'), await queue()]
    const claims = await claimAll(domain.queue, domain)
    const end = (id: string, outcome: Outcome, maxAttempts = 1) => {
      const claim = claims.find(({ runId }) => runId === id)
      return domain.queue.complete(claim as (typeof claims)[number], outcome, { ...noRetry, maxAttempts })
    }
    const message = 'connect ECONNREFUSED 127.0.0.1:443'
    const stack = 'at run (workflow.ts:1:1)\nCaused by Error: getaddrinfo ENOTFOUND example.test\nat x'
    const error = { name: 'FetchError', message, stack }
    const refused = { kind: 'failed', reason: 'workflowFailed', error } as const
    await end(failed, refused)
    await end(other, { ...refused, reason: 'outputInvalid' })
    await end(retried, refused, 2)
    const byOther = (await queueRun(domain, { ...principal, apiKeyId: randomUUID() })).id
    await domain.runs.cancel(accountId, byOther)
    expect(await list({ errorWord: 'econnrefused' })).toEqual([other, failed])
    expect(await list({ errorWord: 'FETCHERROR', order: 'oldestFirst' })).toEqual([failed, other])
    expect(await list({ errorWord: '443', workflowId: 'other', status: ['failed', 'timedOut'] })).toEqual([other])
    expect(await list({ errorWord: '443', status: 'timedOut' })).toEqual([])
    expect(await list({ errorWord: 'econn' })).toEqual([])
    expect(await list({ errorWord: 'ENOTFOUND' })).toEqual([other, failed])
    expect(await list({ errorWord: 'workflow' })).toEqual([])
    expect(await list({ reason: 'workflowFailed' })).toEqual([failed])
    expect(await list({ reason: 'attemptFailed' })).toEqual([retried])
    expect(await list({ reason: 'outputInvalid', workflowId: 'other' })).toEqual([other])
    expect(await list({ reason: 'outputInvalid', workflowId: 'anything' })).toEqual([])
    expect(await list({ reason: 'cancelRequested', status: 'cancelled' })).toEqual([byOther])
    const { apiKeyId } = principal
    expect(await list({ apiKeyId: apiKeyId.toUpperCase() })).toEqual([retried, other, failed])
    expect(await list({ apiKeyId, order: 'oldestFirst' })).toEqual([failed, other, retried])
    expect(await list({ apiKeyId, status: ['queued', 'cancelled'] })).toEqual([retried])
    const stranger = await newAccount(domain)
    for (const filter of [{ apiKeyId }, { errorWord: '443' }, { reason: 'workflowFailed' } as const]) {
      expect(await list(filter, stranger.accountId)).toEqual([])
    }
  })

  test('oldest first, pages continue where they ended, also with new runs and within a time', async (test) => {
    const { domain, principal, accountId, list } = await open(test, kind)
    const ids: string[] = []
    for (let run = 0; run < 5; run += 1) ids.push((await queueRun(domain, principal)).id)
    expect(await list({ order: 'oldestFirst' })).toEqual(ids)
    expect(await list({ order: 'oldestFirst', createdAfter: 0, createdBefore: 8.64e15 })).toEqual(ids)
    const first = await domain.runs.list(accountId, { limit: 3, order: 'oldestFirst' })
    ids.push((await queueRun(domain, principal)).id)
    const cursor = first?.nextCursor ?? ''
    const rest = await domain.runs.list(accountId, { limit: 9, order: 'oldestFirst', cursor })
    expect(rest?.runs.map(({ id }) => id)).toEqual(ids.slice(3))
    expect(await domain.runs.list(accountId, { limit: 9, cursor })).toBeUndefined()
    expect(await domain.runs.list(accountId, { limit: 9, order: 'newestFirst', cursor })).toBeUndefined()
  })

  test('a cursor fits the same value of each filter only', async (test) => {
    const { domain, principal, accountId } = await open(test, kind)
    for (let run = 0; run < 2; run += 1) {
      await queueRun(domain, principal, { tags: ['a', 'b'] })
    }
    const { nextCursor } = (await domain.runs.list(accountId, { limit: 1, tag: ['a', 'b'] })) ?? {}
    const list = (filter: Partial<ListRequest>) =>
      domain.runs.list(accountId, { limit: 1, cursor: nextCursor ?? '', ...filter })
    expect(await list({ tag: ['b', 'a'] })).toMatchObject({ runs: [{}], nextCursor: null })
    const others: Partial<ListRequest>[] = [{}, { tag: ['a'] }, { reason: 'timeLimit' }, { errorWord: 'a' }]
    for (const filter of [...others, { apiKeyId: principal.apiKeyId }]) expect(await list(filter)).toBeUndefined()
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
