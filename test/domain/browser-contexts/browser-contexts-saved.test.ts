/** Versions that runs store: committed when the attempt ends, and only with the latest lease. */
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { RunStatus } from '../../../src/domain/runs/run-state.ts'
import type { Transaction } from '../../../src/storage/store.ts'
import { AttemptBrowser } from '../../../src/worker/attempt/attempt-browser.ts'
import { AttemptRedactor } from '../../../src/worker/attempt/reporter.ts'
import { TimeLimit } from '../../../src/worker/attempt/time-limit.ts'
import type { BrowserHost } from '../../../src/worker/browser/browser-host.ts'
import type { LiveViewSenders } from '../../../src/worker/live-view/live-view-senders.ts'
import { createState, openWithVersions } from '../../support/browser-contexts.ts'
import { claimAll, claimOne, createManualClock, leaseSeconds, noRetry } from '../../support/claims.ts'
import type { Domain, DomainOptions, Test } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const succeeded = { kind: 'succeeded', output: null } as const

/** The browser of an attempt that ended with this state. */
function attemptBrowser({ runContexts: contexts }: Domain, claim: Claim, json: string): AttemptBrowser {
  const parts = { redactor: new AttemptRedactor({}), reporter: { add() {} }, timeLimit: new TimeLimit() }
  const unused = { host: {} as BrowserHost, liveViews: {} as LiveViewSenders }
  const browser = new AttemptBrowser({ ...unused, contexts }, claim, parts)
  browser.capture({ json })
  return browser
}

describe.each(stores)('versions stored by a run ($name)', (kind) => {
  const open = (test: Test, options: DomainOptions = {}) => openWithVersions(test, { kind, ...options })

  /** A run, and a function that stages a version for a claim and completes the attempt with it. */
  async function openStaging(test: Parameters<typeof open>[0], options: Parameters<typeof open>[1] = {}) {
    const opened = await open(test, options)
    const { domain, versions, accountId, contextId } = opened
    await opened.put(createState('before'))
    const run = await opened.queue()
    const writeAs = async (claim: Awaited<ReturnType<typeof claimOne>>, value: string) => {
      const staged = await versions.stage(accountId, contextId, createState(value), { runId: claim.runId })
      if (!staged || !claim.contextLease) throw new Error('The run has no lease.')
      const { contextLease: lease } = claim
      const committed: boolean[] = []
      const within = async (tx: Transaction, _: RunStatus) => {
        committed.push(await versions.commitForRun(tx, staged, lease))
        return []
      }
      const complete = () => domain.queue.complete(claim, succeeded, noRetry, [], within)
      return { staged, lease, committed, complete }
    }
    return { ...opened, run, writeAs }
  }

  test('a version becomes current when the run ends, and not before', async (test) => {
    const { domain, run, writeAs, read, versions, accountId, contextId } = await openStaging(test)
    const { complete, committed } = await writeAs(await claimOne(domain), 'after')
    expect(await read()).toBe(createState('before'))
    expect(await complete()).toBe(true)
    expect(committed).toEqual([true])
    expect(await read()).toBe(createState('after'))
    const listed = [
      { number: 2, runId: run.id, isCurrent: true },
      { number: 1, runId: null },
    ]
    expect(await versions.list(accountId, contextId)).toMatchObject(listed)
  })

  test('a version of a lost attempt is never committed, even if another attempt of the run has the lease', async (test) => {
    const clock = createManualClock()
    const { domain, writeAs, read, context, rows, run } = await openStaging(test, { now: clock.now })
    const paused = await writeAs(await claimOne(domain, 'paused'), 'paused')
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    const successor = await writeAs(await claimOne(domain, 'taker'), 'taker')
    expect([paused.lease, successor.lease]).toMatchObject([
      { runId: run.id, fence: 1 },
      { runId: run.id, fence: 2 },
    ])
    expect(await paused.complete()).toBe(false)
    expect(paused.committed).toEqual([])
    // The fencing token alone prevents the commit.
    const { contextVersions } = domain
    const late = domain.store.write((tx) => contextVersions.commitForRun(tx, paused.staged, paused.lease))
    expect(await late).toBe(false)
    expect(await read()).toBe(createState('before'))
    expect(await context()).toMatchObject({ version: 1, heldByRunId: run.id })
    expect(await successor.complete()).toBe(true)
    expect(await read()).toBe(createState('taker'))
    expect(await rows()).toHaveLength(2)
  })

  test('a version is discarded if the context was deleted, and the run succeeds', async (test) => {
    const { domain, writeAs, rows, run, accountId, contextId } = await openStaging(test)
    const { complete, committed } = await writeAs(await claimOne(domain), 'after')
    expect(await domain.browserContexts.delete(accountId, contextId)).toBe(true)
    expect(await complete()).toBe(true)
    expect(committed).toEqual([false])
    expect(await rows()).toEqual([])
    expect(await domain.runs.get(accountId, run.id)).toMatchObject({
      status: 'succeeded',
      browserContextId: contextId,
    })
  })

  test('a run whose context is deleted while it saves logs a warning and succeeds', async (test) => {
    const { domain, run, accountId, contextId } = await openStaging(test)
    const { store, browserContexts } = domain
    const browser = attemptBrowser(domain, await claimOne(domain), createState('after'))
    const write = store.write
    vi.spyOn(store, 'write').mockImplementationOnce(async (work) => {
      const result = await write(work)
      await browserContexts.delete(accountId, contextId)
      return result
    })
    const message = 'The browser context was deleted during the run: its changes were not saved.'
    const saved = await browser.save(succeeded)
    expect(saved).toMatchObject({ outcome: succeeded, reports: [{ data: { level: 'warn', message } }] })
    expect(saved.within).toBeUndefined()
    expect(run.browserContextId).toBe(contextId)
  })

  test('a state that the OpenAPI document does not allow is not saved', async (test) => {
    const { domain, rows } = await openStaging(test)
    const claim = await claimOne(domain)
    const longest = await attemptBrowser(domain, claim, createState('', 'x'.repeat(253))).save(succeeded)
    expect(longest.outcome).toEqual(succeeded)
    const withOrigin = JSON.stringify({
      ...JSON.parse(createState('')),
      origins: [{ origin: 'null', localStorage: [] }],
    })
    for (const [json, place] of [
      [createState('', 'x'.repeat(254)), '/cookies/0/domain'],
      [withOrigin, '/origins/0/origin'],
      ['{"cookies":[]}', '/origins'],
      ['[]', 'it'],
    ] as const) {
      const message = expect.stringContaining(`The browser's storage state could not be read: ${place} `)
      const { outcome } = await attemptBrowser(domain, claim, json).save(succeeded)
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'contextNotSaved', error: { message } })
    }
    expect(await rows()).toHaveLength(2)
  })

  test('a state is not saved when the account has reached its storage quota', async (test) => {
    const { domain, accountId, rows } = await openStaging(test, { storageQuotaMegabytes: 1 })
    domain.usage.add(accountId, 1024 * 1024)
    const { outcome } = await attemptBrowser(domain, await claimOne(domain), createState('after')).save(succeeded)
    const message = expect.stringContaining('This account has reached its storage quota of 1 MB.')
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'contextNotSaved', error: { message } })
    expect(await rows()).toHaveLength(1)
  })

  test('a version is committed once, and the next run gets the lease', async (test) => {
    const { domain, writeAs, queue, context } = await openStaging(test)
    const { complete } = await writeAs(await claimOne(domain), 'after')
    const next = await queue()
    expect([await complete(), await complete()]).toEqual([true, false])
    expect(await context()).toMatchObject({ version: 2, heldByRunId: null })
    expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: next.id, contextLease: { fence: 2 } }])
  })
})
