/** Following a run or all runs of an account, and waiting for a run to finish. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import { RunFeed } from '../../../src/domain/run-api/run-feed.ts'
import type { RunEvent } from '../../../src/domain/runs/run.ts'
import type { Store, Transaction } from '../../../src/storage/store.ts'
import { claimableOf, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'
import { waitLimits } from '../../support/timeouts.ts'

const hour = 3600
const never = new AbortController().signal

/** One process that follows runs, and one that executes them. */
async function openTwo(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const worker = await openDomain(test, { kind, location: domain.location })
  const { principal } = await newAccount(domain)
  const feed = new RunFeed(domain.store)
  test.onTestFinished(() => feed.close())
  return { domain, worker, principal, feed }
}

async function claim({ queue, workflows }: Domain): Promise<Claim> {
  const [claimed] = await queue.claim('worker', claimableOf(workflows), 1, 15)
  if (!claimed) throw new Error('There was no run to claim.')
  return claimed
}

/** Follows all runs of the account. */
async function follow(feed: RunFeed, { accountId }: { accountId: string }, quietSeconds = hour, signal = never) {
  const changes = feed.changes(accountId, quietSeconds, signal)
  expect(await changes.next()).toEqual({ value: true, done: false })
  return changes
}

const log = (message: string) => ({ at: 1, type: 'log', data: { level: 'info', message } }) as const

function describeEvent(event: RunEvent | null): string {
  if (event === null) return 'quiet'
  return `${event.sequence} ${event.type === 'status' ? event.data.status : event.data.message}`
}

/** A store whose reads, and notifications of the feed, happen when the test says so. */
function controlStore(store: Store) {
  const pending: (() => unknown)[] = []
  const reading = new Set<Promise<unknown>>()
  const chosen = () => new Promise<void>((resolve) => pending.push(resolve))
  const all = async (...query: Parameters<Transaction['all']>) => {
    await chosen()
    const read = store.read.all(...query)
    reading.add(read)
    const rows = await read
    reading.delete(read)
    await chosen()
    return rows
  }
  const listeners = new Set<() => void>()
  const listen = (_topic: string, listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const notify = () => void pending.push(() => listeners.forEach((listener) => void listener()))
  const controlled = { read: { all, statements: store.read.statements }, listen } as unknown as Store
  return { store: controlled, pending, reading, notify }
}

describe.each(stores)('the run feed ($name)', (kind) => {
  test('wakes each follower of a run that ends, whatever is read at the same time', async (test) => {
    const { domain, worker, principal } = await openTwo(test, kind)
    for (let seed = 0; seed < (kind.name === 'sqlite' ? 1000 : 30); seed += 1) {
      const random = seededRandom(seed)
      const { store, pending, reading, notify } = controlStore(domain.store)
      const feed = new RunFeed(store)
      const waiting = new Set<string>()
      for (let count = 0; count < 4; count += 1) {
        const { id } = await queueRun(domain, principal)
        const claimed = await claim(worker)
        const receiveAll = async () => {
          for await (const event of feed.events(id, 0, hour, never)) if (event === null) return
        }
        const follow = () => (random() < 0.5 ? feed.waitUntilFinished(id, hour, never) : receiveAll())
        const finish = async () => {
          await worker.queue.complete(claimed, { kind: 'succeeded', output: null }, noRetry)
          notify()
        }
        pending.push(() => void pending.push(finish))
        pending.push(() => {
          waiting.add(id)
          void follow().then(() => waiting.delete(id))
        })
      }
      while (pending.length + reading.size > 0) {
        if (pending.length === 0) await Promise.race(reading)
        await pending.splice(Math.floor(random() * pending.length), 1)[0]?.()
        await nextTurn()
      }
      feed.close()
      expect({ seed, waiting: waiting.size }).toEqual({ seed, waiting: 0 })
    }
  })

  test('yields past events, then those of another process, and ends when the run finishes', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const claimed = await claim(worker)
    const received: string[] = []
    for await (const event of feed.events(run.id, 0, hour, never)) {
      received.push(describeEvent(event))
      // Each event is written after the one before was received, so only a notification announces it.
      if (received.length === 2) await worker.queue.report(claimed, [log('one')])
      if (received.length === 3) await worker.queue.report(claimed, [log('two'), log('three')])
      if (received.length === 5) await worker.queue.complete(claimed, { kind: 'succeeded', output: null }, noRetry)
    }
    expect(received).toEqual(['1 queued', '2 running', '3 one', '4 two', '5 three', '6 succeeded'])
  })

  test('yields every event once, in order, to many followers of many runs', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const runs = await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
    const follow = async (id: string) => {
      const received: string[] = []
      for await (const event of feed.events(id, 0, hour, never)) received.push(describeEvent(event))
      return received
    }
    const following = runs.flatMap(({ id }) => [follow(id), follow(id), follow(id)])
    const claims = await worker.queue.claim('worker', claimableOf(worker.workflows), 10, 15)
    const execute = async (each: Claim) => {
      for (let line = 0; line < 5; line += 1) await worker.queue.report(each, [log(String(line))])
      await worker.queue.complete(each, { kind: 'succeeded', output: null }, noRetry)
    }
    await Promise.all(claims.map(execute))
    const all = ['1 queued', '2 running', '3 0', '4 1', '5 2', '6 3', '7 4', '8 succeeded']
    for (const received of await Promise.all(following)) expect(received).toEqual(all)
  })

  test('resumes after a given event', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const claimed = await claim(worker)
    await worker.queue.complete(claimed, { kind: 'succeeded', output: null }, noRetry, [log('one'), log('two')])
    const received: string[] = []
    for await (const event of feed.events(run.id, 3, hour, never)) received.push(describeEvent(event))
    expect(received).toEqual(['4 two', '5 succeeded'])
    expect(await feed.hasEventsAfter(run.id, 4)).toBe(true)
    expect(await feed.hasEventsAfter(run.id, 5)).toBe(false)
  })

  test('ends after a while when the run has finished without an event after the given one', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    await domain.runs.cancel(principal.accountId, run.id)
    const received: string[] = []
    for await (const event of feed.events(run.id, 2, 0.01, never)) received.push(describeEvent(event))
    expect(received).toEqual([])
  })

  test('yields null when no event occurs for a while', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const received: string[] = []
    for await (const event of feed.events(run.id, 0, 0.01, never)) {
      received.push(describeEvent(event))
      if (received.length === 3) break
    }
    expect(received).toEqual(['1 queued', 'quiet', 'quiet'])
  })

  test('ends when the follower aborts or the feed closes', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const controller = new AbortController()
    for await (const event of feed.events(run.id, 0, hour, controller.signal)) {
      expect(describeEvent(event)).toBe('1 queued')
      setImmediate(() => controller.abort())
    }
    for await (const event of feed.events(run.id, 0, hour, never)) {
      expect(describeEvent(event)).toBe('1 queued')
      setImmediate(() => feed.close())
    }
  })

  test('waits until the run has finished in another process', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const get = () => domain.runs.get(principal.accountId, run.id)
    const waiting = feed.waitUntilFinished(run.id, hour, never).then(get)
    await worker.queue.complete(await claim(worker), { kind: 'succeeded', output: 7 }, noRetry)
    expect(await waiting).toMatchObject({ id: run.id, status: 'succeeded', output: 7 })
    await feed.waitUntilFinished(run.id, hour, never)
  })

  test('stops waiting after the given time, when the caller aborts, or when the feed closes', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    await feed.waitUntilFinished(run.id, 0.01, never)
    await feed.waitUntilFinished(run.id, 0, never)
    const controller = new AbortController()
    const aborted = feed.waitUntilFinished(run.id, hour, controller.signal)
    controller.abort()
    await aborted
    const closed = feed.waitUntilFinished(run.id, hour, never)
    feed.close()
    await closed
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'queued' })
  })

  describe('of an account', () => {
    test('reports that a run is queued, claimed, logs or is cancelled in any process', async (test) => {
      const { domain, worker, principal, feed } = await openTwo(test, kind)
      const changes = await follow(feed, principal)
      const changed = async (act: () => Promise<unknown>) => {
        const next = changes.next()
        await act()
        expect(await next).toEqual({ value: true, done: false })
      }
      await changed(() => queueRun(worker, principal, { delaySeconds: 60 }))
      await changed(() => queueRun(domain, principal))
      let claimed: Claim | undefined
      await changed(async () => {
        claimed = await claim(worker)
      })
      if (!claimed) throw new Error('There was no run to claim.')
      const { runId } = claimed
      await changed(() => worker.queue.report(claimed as Claim, [log('one')]))
      await changed(() => domain.runs.cancel(principal.accountId, runId))
      await changes.return(null)
    })

    test('merges changes for a slow follower', async (test) => {
      const { domain, principal, feed } = await openTwo(test, kind)
      const changes = await follow(feed, principal, 0.5)
      expect(await changes.next()).toEqual({ value: null, done: false })
      await Promise.all(Array.from({ length: 50 }, () => queueRun(domain, principal)))
      let changeCount = 0
      for (let isQuiet = false; changeCount === 0 || !isQuiet; ) {
        isQuiet = (await changes.next()).value === null
        if (!isQuiet) changeCount += 1
      }
      await changes.return(null)
      expect(changeCount).toBeLessThan(10)
    })

    test('reports no changes of another account', async (test) => {
      const { domain, worker, principal, feed } = await openTwo(test, kind)
      const other = await newAccount(domain)
      const mine: (true | null)[] = []
      const controller = new AbortController()
      const following = (async () => {
        for await (const change of feed.changes(principal.accountId, 0.01, controller.signal)) mine.push(change)
      })()
      const theirs = await follow(feed, other.principal)
      for (let round = 0; round < 3; round += 1) {
        const next = theirs.next()
        await queueRun(worker, other.principal)
        expect(await next).toEqual({ value: true, done: false })
      }
      await theirs.return(null)
      await vi.waitUntil(() => mine.length > 2, waitLimits)
      expect(mine.slice(1)).not.toContain(true)
      const before = mine.length
      await queueRun(worker, principal)
      await vi.waitUntil(() => mine.slice(before).includes(true), waitLimits)
      controller.abort()
      await following
    })

    test('ends when the follower aborts or the feed closes', async (test) => {
      const { principal, feed } = await openTwo(test, kind)
      const controller = new AbortController()
      const aborted = (await follow(feed, principal, hour, controller.signal)).next()
      const closed = (await follow(feed, principal)).next()
      setImmediate(() => controller.abort())
      expect(await aborted).toEqual({ value: undefined, done: true })
      feed.close()
      expect(await closed).toEqual({ value: undefined, done: true })
      expect(await feed.changes(principal.accountId, hour, never).next()).toEqual({ value: undefined, done: true })
    })

    test('does not query the store without followers', async (test) => {
      const { domain, principal, feed } = await openTwo(test, kind)
      await (await follow(feed, principal)).return(null)
      const read = vi.spyOn(domain.store.read, 'all')
      const notified = vi.fn()
      // Is called after the feed, which has listened longer.
      domain.store.listen('queue', notified)
      await queueRun(domain, principal)
      await vi.waitFor(() => expect(notified).toHaveBeenCalled(), waitLimits)
      expect(read).not.toHaveBeenCalled()
    })
  })
})
