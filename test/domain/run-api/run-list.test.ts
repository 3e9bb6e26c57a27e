/** Lists of runs: order, filters and pages. */

import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ListRequest } from '../../../src/domain/run-api/list-request.ts'
import { readSized } from '../../../src/domain/sized.ts'
import { claimableOf } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

/** The ids of every page. */
async function readPages({ runs }: Domain, accountId: string, request: ListRequest): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await runs.list(accountId, { ...request, cursor })
    if (!page) throw new Error('The cursor was rejected.')
    pages.push(page.runs.map(({ id }) => id))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && pages.length < 100)
  return pages
}

describe.each(stores)('runs ($name)', (kind) => {
  describe('a list', () => {
    test('shows each run once, newest first, even if new runs are queued between two pages', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const createdIds: string[] = []
      for (let run = 0; run < 57; run += 1) createdIds.push((await queueRun(domain, principal)).id)
      const first = await domain.runs.list(accountId, { limit: 10 })
      await queueRun(domain, principal)
      const rest = await readPages(domain, accountId, { limit: 10 })
      expect(rest.map((page) => page.length)).toEqual([10, 10, 10, 10, 10, 8])
      const followed = [first?.runs.map(({ id }) => id) ?? []]
      let cursor = first?.nextCursor
      while (cursor) {
        const page = await domain.runs.list(accountId, { limit: 10, cursor })
        followed.push(page?.runs.map(({ id }) => id) ?? [])
        cursor = page?.nextCursor
      }
      expect(followed.flat()).toEqual(createdIds.toReversed())
    })

    test('ends with the page of its last run', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      for (let run = 0; run < 4; run += 1) await queueRun(domain, principal)
      const pages = await readPages(domain, accountId, { limit: 2 })
      expect(pages.map((page) => page.length)).toEqual([2, 2])
    })

    test.for(['at once', 'later'])(
      'ends a page before its runs exceed 1 MiB, whose bytes are reserved (%s)',
      async (granted, test) => {
        const domain = await openDomain(test, { kind })
        const { accountId, principal } = await newAccount(domain)
        const queue = (kibibytes: number) =>
          queueRun(domain, principal, { variables: { text: 'x'.repeat(kibibytes * 1024 - 11) } })
        for (const kibibytes of [512, 512, 1, 1100, 300, 300, 300, 300]) await queue(kibibytes)
        const reserved: number[] = []
        const sizes: number[] = []
        let cursor: string | undefined
        do {
          const reserve = (bytes: number) => {
            reserved.push(bytes)
            return granted === 'later' ? delay(1) : undefined
          }
          const page = await domain.runs.findPage(accountId, { limit: 100, cursor })
          const runs = page && (await readSized(reserve, page))
          sizes.push(runs?.filter(({ variables }) => typeof variables.text === 'string').length ?? 0)
          cursor = page?.nextCursor ?? undefined
        } while (cursor !== undefined)
        expect(sizes).toEqual([3, 1, 1, 2, 1])
        expect(reserved.map((bytes) => bytes / 1024)).toEqual([900, 300, 1100, 513, 512])
      },
    )

    test('rejects a cursor that was modified or belongs to another account or filter', async (test) => {
      const domain = await openDomain(test, { kind })
      const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
      for (const { principal } of [mine, mine, mine, theirs, theirs]) await queueRun(domain, principal)
      const cursor = (await domain.runs.list(mine.accountId, { limit: 1, status: 'queued' }))?.nextCursor ?? ''
      const list = (changes: Partial<ListRequest>, accountId = mine.accountId) =>
        domain.runs.list(accountId, { limit: 1, status: 'queued', cursor, ...changes })
      expect(await list({})).toMatchObject({ runs: [{}] })
      expect(await list({ limit: 2 })).toMatchObject({ runs: [{}, {}] })
      expect(await list({}, theirs.accountId)).toBeUndefined()
      expect(await list({ status: undefined })).toBeUndefined()
      expect(await list({ status: 'running' })).toBeUndefined()
      expect(await list({ workflowId: 'anything' })).toBeUndefined()
      expect(await list({ createdAfter: 0 })).toBeUndefined()
      expect(await list({ createdBefore: Date.now() + 1000 })).toBeUndefined()
      for (const modified of [...modifiedCursors(cursor), '', '.', 'x', cursor.split('.')[0] ?? '']) {
        expect(await list({ cursor: modified }), modified).toBeUndefined()
      }
    })

    test('filters by workflow and status', async (test) => {
      const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'other' })] })
      const { accountId, principal } = await newAccount(domain)
      const [one, two] = [await queueRun(domain, principal), await queueRun(domain, principal)]
      const [three, four] = [
        await queueRun(domain, principal, { workflowId: 'other' }),
        await queueRun(domain, principal, { workflowId: 'other' }),
      ]
      await domain.runs.cancel(accountId, two.id)
      await domain.runs.cancel(accountId, four.id)
      const list = async (filters: Partial<ListRequest>) =>
        (await readPages(domain, accountId, { limit: 1, ...filters })).flat()
      expect(await list({})).toEqual([four.id, three.id, two.id, one.id])
      expect(await list({ workflowId: 'other' })).toEqual([four.id, three.id])
      expect(await list({ status: 'cancelled' })).toEqual([four.id, two.id])
      expect(await list({ workflowId: 'anything', status: 'queued' })).toEqual([one.id])
      expect(await list({ workflowId: 'unknown' })).toEqual([])
      expect(await list({ status: 'running' })).toEqual([])
    })

    test('shows several statuses newest first', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const ids: string[] = []
      for (let run = 0; run < 6; run += 1) ids.push((await queueRun(domain, principal, { priority: -run })).id)
      await domain.queue.claim('worker', claimableOf(domain.workflows), 2, 15)
      for (const id of ids.slice(4)) await domain.runs.cancel(accountId, id)
      // Now two runs are running, two queued and two cancelled.
      const list = async (status: ListRequest['status'], filters: Partial<ListRequest> = {}) =>
        (await readPages(domain, accountId, { limit: 2, ...filters, status })).flat()
      const newestFirst = ids.toReversed()
      expect(await list(['queued', 'running'])).toEqual(newestFirst.slice(2))
      expect(await list(['running', 'cancelled', 'failed', 'running'])).toEqual([
        ...newestFirst.slice(0, 2),
        ids[1],
        ids[0],
      ])
      expect(await list(['queued', 'running', 'cancelled'], { createdAfter: 0, createdBefore: 8.64e15 })).toEqual(
        newestFirst,
      )
      expect(await list(['running'])).toEqual(await list('running'))
      expect(await list([])).toEqual([])
      const cursor = (await domain.runs.list(accountId, { limit: 1, status: ['queued', 'running'] }))?.nextCursor ?? ''
      const next = await domain.runs.list(accountId, { limit: 1, status: ['running', 'queued'], cursor })
      expect(next?.runs.map(({ id }) => id)).toEqual([ids[2]])
      expect(await domain.runs.list(accountId, { limit: 1, status: 'queued', cursor })).toBeUndefined()
    })

    test('filters by creation time, including the start and excluding the end', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const createdRuns = [await queueRun(domain, principal)]
      // Each is created in another millisecond.
      while (createdRuns.length < 3) {
        const last = createdRuns.at(-1)?.createdAt ?? 0
        while (Date.now() <= last);
        createdRuns.push(await queueRun(domain, principal))
      }
      const [first, second, third] = createdRuns.map(({ id }) => id)
      const creationTimes = createdRuns.map(({ createdAt }) => createdAt) as [number, number, number]
      const list = async (filters: Partial<ListRequest>) =>
        (await readPages(domain, accountId, { limit: 1, ...filters })).flat()
      expect(await list({ createdAfter: creationTimes[1] })).toEqual([third, second])
      expect(await list({ createdAfter: creationTimes[1] + 1 })).toEqual([third])
      expect(await list({ createdBefore: creationTimes[1] })).toEqual([first])
      expect(await list({ createdBefore: creationTimes[1] + 1 })).toEqual([second, first])
      expect(await list({ createdAfter: creationTimes[1], createdBefore: creationTimes[1] + 1 })).toEqual([second])
      expect(await list({ createdAfter: creationTimes[1], createdBefore: creationTimes[1] })).toEqual([])
      expect(await list({ createdAfter: -1 })).toEqual([third, second, first])
      expect(await list({ createdBefore: 8.64e15 })).toEqual([third, second, first])
    })
  })
})

/** The cursor with a character changed, removed or added, and with characters that base64 decoders ignore. */
function modifiedCursors(cursor: string): string[] {
  const changed = [...cursor].map((character, index) => {
    const other = character === 'A' ? 'B' : 'A'
    return cursor.slice(0, index) + other + cursor.slice(index + 1)
  })
  return [...changed, cursor.slice(0, -1), `${cursor}A`, `${cursor}=`, `${cursor} `, ` ${cursor}`]
}
