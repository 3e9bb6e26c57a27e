/** What runs leave in their browser context: it counts with their end, under their own hold, or not at all. */
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../src/domain/runs/attempts.ts'
import type { RunStatus } from '../../src/domain/runs/run-state.ts'
import type { Transaction } from '../../src/storage/store.ts'
import { AttemptBrowser } from '../../src/worker/attempt-browser.ts'
import type { BrowserHost } from '../../src/worker/browser/browser-host.ts'
import { createState, openWithVersions } from '../support/browser-contexts.ts'
import { claimAll, claimOne, createManualClock, leaseSeconds, noRetry } from '../support/claims.ts'
import type { Domain, DomainOptions, Test } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'

const succeeded = { kind: 'succeeded', output: null } as const

/** The browser of an attempt whose workflow has ended and left this state. */
function attemptBrowser({ contextVersions: versions }: Domain, claim: Claim, json: string): AttemptBrowser {
  const browser = new AttemptBrowser({ host: {} as BrowserHost, versions }, claim, {})
  browser.capture({ json })
  return browser
}

describe.each(stores)('versions that a run writes ($name)', (kind) => {
  const open = (test: Test, options: DomainOptions = {}) => openWithVersions(test, { kind, ...options })

  /** A run that has written a version, and what makes it count at the run's end. */
  async function openWriting(test: Parameters<typeof open>[0], options: Parameters<typeof open>[1] = {}) {
    const opened = await open(test, options)
    const { domain, versions, accountId, contextId } = opened
    await opened.put(createState('before'))
    const run = await opened.queue()
    const writeAs = async (claim: Awaited<ReturnType<typeof claimOne>>, value: string) => {
      const staged = await versions.stage(accountId, contextId, createState(value), { runId: claim.runId })
      if (!staged || !claim.contextLease) throw new Error('The run has no hold.')
      const { contextLease: hold } = claim
      const counted: boolean[] = []
      const alongside = async (tx: Transaction, _: RunStatus) => {
        counted.push(await versions.commitForRun(tx, staged, hold))
        return []
      }
      const settle = () => domain.queue.complete(claim, succeeded, noRetry, [], alongside)
      return { staged, hold, counted, settle }
    }
    return { ...opened, run, writeAs }
  }

  test('count with the end of the run, and not before', async (test) => {
    const { domain, run, writeAs, read, versions, accountId, contextId } = await openWriting(test)
    const { settle, counted } = await writeAs(await claimOne(domain), 'after')
    expect(await read()).toBe(createState('before'))
    expect(await settle()).toBe(true)
    expect(counted).toEqual([true])
    expect(await read()).toBe(createState('after'))
    const listed = [
      { number: 2, runId: run.id, isCurrent: true },
      { number: 1, runId: null },
    ]
    expect(await versions.list(accountId, contextId)).toMatchObject(listed)
  })

  test('count never when the run was lost meanwhile, also when the same run has another attempt', async (test) => {
    const clock = createManualClock()
    const { domain, writeAs, read, context, rows, run } = await openWriting(test, { now: clock.now })
    const paused = await writeAs(await claimOne(domain, 'paused'), 'of the paused one')
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    const taker = await writeAs(await claimOne(domain, 'taker'), 'of the other')
    expect([paused.hold, taker.hold]).toMatchObject([
      { runId: run.id, fence: 1 },
      { runId: run.id, fence: 2 },
    ])
    expect(await paused.settle()).toBe(false)
    expect(paused.counted).toEqual([])
    // The token alone fences it off, should its attempt be taken for the one that goes on.
    const { contextVersions } = domain
    const late = domain.store.write((tx) => contextVersions.commitForRun(tx, paused.staged, paused.hold))
    expect(await late).toBe(false)
    expect(await read()).toBe(createState('before'))
    expect(await context()).toMatchObject({ version: 1, heldByRunId: run.id })
    expect(await taker.settle()).toBe(true)
    expect(await read()).toBe(createState('of the other'))
    expect(await rows()).toHaveLength(2)
  })

  test('are gone with a context that was deleted meanwhile, and the run ends as it would', async (test) => {
    const { domain, writeAs, rows, run, accountId, contextId } = await openWriting(test)
    const { settle, counted } = await writeAs(await claimOne(domain), 'after')
    expect(await domain.browserContexts.delete(accountId, contextId)).toBe(true)
    expect(await settle()).toBe(true)
    expect(counted).toEqual([false])
    expect(await rows()).toEqual([])
    expect(await domain.runs.get(accountId, run.id)).toMatchObject({
      status: 'succeeded',
      browserContextId: contextId,
    })
  })

  test('are told to be missing by a run whose context is deleted as it saves, which succeeds all the same', async (test) => {
    const { domain, run, accountId, contextId } = await openWriting(test)
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
    expect(await saved.within({} as Transaction, 'succeeded')).toEqual([])
    expect(run.browserContextId).toBe(contextId)
  })

  test('have domains as long as the document lets them be, or are not saved', async (test) => {
    const { domain, rows } = await openWriting(test)
    const claim = await claimOne(domain)
    const longest = await attemptBrowser(domain, claim, createState('', 'x'.repeat(253))).save(succeeded)
    expect(longest.outcome).toEqual(succeeded)
    const message =
      "The browser's storage state could not be read: the domain of a cookie has 254 characters; the limit is 253."
    const refused = await attemptBrowser(domain, claim, createState('', 'x'.repeat(254))).save(succeeded)
    expect(refused.outcome).toMatchObject({ kind: 'failed', reason: 'contextNotSaved', error: { message } })
    expect(await rows()).toHaveLength(2)
  })

  test('count once, and leave the context to the next run', async (test) => {
    const { domain, writeAs, queue, context } = await openWriting(test)
    const { settle } = await writeAs(await claimOne(domain), 'after')
    const next = await queue()
    expect([await settle(), await settle()]).toEqual([true, false])
    expect(await context()).toMatchObject({ version: 2, heldByRunId: null })
    expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: next.id, contextLease: { fence: 2 } }])
  })
})
