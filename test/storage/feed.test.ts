/** Following a run: every event once and in order, from whichever process it comes; and waiting for its end. */
import { describe, expect, test } from 'vitest'
import { RunFeed } from '../../src/runs/feed.ts'
import type { Claim } from '../../src/runs/queue.ts'
import type { RunEvent } from '../../src/runs/run.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../support/store.ts'
import { type StoreKind, stores } from '../support/stores.ts'

const noRetry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
const hour = 3600
const never = new AbortController().signal

/** A process that follows runs, and another that executes them. */
async function openTwo(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const worker = await openDomain(test, { kind, place: domain.place })
  const { principal } = await newAccount(domain)
  const feed = new RunFeed(domain.store)
  test.onTestFinished(() => feed.close())
  return { domain, worker, principal, feed }
}

async function claim({ queue, workflows }: Domain): Promise<Claim> {
  const [claimed] = await queue.claim('worker', workflows.list(), 1, 15)
  if (!claimed) throw new Error('There was no run to claim.')
  return claimed
}

const log = (message: string) => ({ at: 1, type: 'log', data: { level: 'info', message } }) as const

/** An event in a word. */
function worded(event: RunEvent | null): string {
  if (event === null) return 'heartbeat'
  return `${event.sequence} ${event.type === 'status' ? event.data.status : event.data.message}`
}

describe.each(stores)('the feed of runs ($name)', (kind) => {
  test('tells what has happened and then what happens in another process, and ends with the run', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const claimed = await claim(worker)
    const heard: string[] = []
    for await (const event of feed.events(run.id, 0, hour, never)) {
      heard.push(worded(event))
      // Each is said when the one before has been heard: nothing but the bell tells of it.
      if (heard.length === 2) await worker.queue.report(claimed, [log('one')])
      if (heard.length === 3) await worker.queue.report(claimed, [log('two'), log('three')])
      if (heard.length === 5) await worker.queue.settle(claimed, { kind: 'succeeded', output: null }, noRetry)
    }
    expect(heard).toEqual(['1 queued', '2 running', '3 one', '4 two', '5 three', '6 succeeded'])
  })

  test('loses nothing to many followers of many runs while everything happens at the same time', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const runs = await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
    const follow = async (id: string) => {
      const heard: string[] = []
      for await (const event of feed.events(id, 0, hour, never)) heard.push(worded(event))
      return heard
    }
    const following = runs.flatMap(({ id }) => [follow(id), follow(id), follow(id)])
    const claims = await worker.queue.claim('worker', worker.workflows.list(), 10, 15)
    const execute = async (each: Claim) => {
      for (let said = 0; said < 5; said += 1) await worker.queue.report(each, [log(String(said))])
      await worker.queue.settle(each, { kind: 'succeeded', output: null }, noRetry)
    }
    await Promise.all(claims.map(execute))
    const all = ['1 queued', '2 running', '3 0', '4 1', '5 2', '6 3', '7 4', '8 succeeded']
    for (const heard of await Promise.all(following)) expect(heard).toEqual(all)
  })

  test('goes on after the event that was heard last', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const claimed = await claim(worker)
    await worker.queue.settle(claimed, { kind: 'succeeded', output: null }, noRetry, [log('one'), log('two')])
    const heard: string[] = []
    for await (const event of feed.events(run.id, 3, hour, never)) heard.push(worded(event))
    expect(heard).toEqual(['4 two', '5 succeeded'])
    expect(await feed.hasEventsAfter(run.id, 4)).toBe(true)
    expect(await feed.hasEventsAfter(run.id, 5)).toBe(false)
  })

  test('says when nothing has happened for a while', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const heard: string[] = []
    for await (const event of feed.events(run.id, 0, 0.01, never)) {
      heard.push(worded(event))
      if (heard.length === 3) break
    }
    expect(heard).toEqual(['1 queued', 'heartbeat', 'heartbeat'])
  })

  test('ends when the follower leaves, and for everybody when it is closed', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const leaving = new AbortController()
    for await (const event of feed.events(run.id, 0, hour, leaving.signal)) {
      expect(worded(event)).toBe('1 queued')
      setImmediate(() => leaving.abort())
    }
    for await (const event of feed.events(run.id, 0, hour, never)) {
      expect(worded(event)).toBe('1 queued')
      setImmediate(() => feed.close())
    }
  })

  test('waits until the run has finished in another process', async (test) => {
    const { domain, worker, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const waiting = feed.waitUntilFinished(domain.runs, run, hour, never)
    await worker.queue.settle(await claim(worker), { kind: 'succeeded', output: 7 }, noRetry)
    expect(await waiting).toMatchObject({ id: run.id, status: 'succeeded', output: 7 })
    expect(await feed.waitUntilFinished(domain.runs, run, hour, never)).toMatchObject({ status: 'succeeded' })
  })

  test('waits no longer than it is asked to, than the caller does, and than it is open', async (test) => {
    const { domain, principal, feed } = await openTwo(test, kind)
    const run = await queueRun(domain, principal)
    const queued = { id: run.id, status: 'queued' }
    expect(await feed.waitUntilFinished(domain.runs, run, 0.01, never)).toMatchObject(queued)
    expect(await feed.waitUntilFinished(domain.runs, run, 0, never)).toMatchObject(queued)
    const leaving = new AbortController()
    const left = feed.waitUntilFinished(domain.runs, run, hour, leaving.signal)
    leaving.abort()
    expect(await left).toMatchObject(queued)
    const closed = feed.waitUntilFinished(domain.runs, run, hour, never)
    feed.close()
    expect(await closed).toMatchObject(queued)
  })
})
