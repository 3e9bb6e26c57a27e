/** Dashboard processes that request the screencast of a run. */
import { describe, expect, test, vi } from 'vitest'
import { LiveViews } from '../../../src/domain/run-api/live-views.ts'
import { openDomain, type Test } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'
import { waitLimits } from '../../support/timeouts.ts'

describe.each(stores)('live views ($name)', (kind) => {
  async function open(test: Test) {
    const { store, encryption } = await openDomain(test, { kind })
    let now = 1_000_000
    const liveViews = new LiveViews(store, encryption, () => now)
    return {
      liveViews,
      pass: (seconds: number) => {
        now += seconds * 1000
      },
    }
  }

  test('are listed until they are closed, or not extended for a minute', async (test) => {
    const { liveViews, pass } = await open(test)
    const [kept, closed, forgotten] = await Promise.all(
      ['run-1', 'run-2', 'run-3'].map((runId) => liveViews.open(runId, 'http://127.0.0.1:3000')),
    )
    const listed = async () => (await liveViews.list()).map(({ id }) => id).sort()
    expect(await listed()).toEqual([kept?.id, closed?.id, forgotten?.id].sort())
    expect(await liveViews.list()).toContainEqual({
      id: kept?.id,
      runId: 'run-1',
      address: 'http://127.0.0.1:3000',
    })
    await liveViews.close(closed?.id ?? '')
    pass(59)
    if (kept) await liveViews.extend(kept)
    pass(1)
    expect(await listed()).toEqual([kept?.id])
  })

  test('are listed again when they are extended after another process has deleted them', async (test) => {
    const { liveViews, pass } = await open(test)
    const view = await liveViews.open('run-1', 'http://127.0.0.1:3000')
    pass(61)
    await liveViews.close(crypto.randomUUID())
    await liveViews.extend(view)
    expect(await liveViews.list()).toEqual([view])
  })

  test('notify workers when they are opened', async (test) => {
    const { liveViews } = await open(test)
    let notified = 0
    test.onTestFinished(
      liveViews.listen(() => {
        notified += 1
      }),
    )
    await liveViews.open('run-1', 'http://127.0.0.1:3000')
    await vi.waitUntil(() => notified > 0, waitLimits)
  })

  test('accept the token of the same view, run and attempt only', async (test) => {
    const { liveViews } = await open(test)
    const { id } = await liveViews.open('run-1', 'http://127.0.0.1:3000')
    const token = liveViews.token(id, { runId: 'run-1', attempt: 2 })
    expect(liveViews.isToken(token, id, { runId: 'run-1', attempt: 2 })).toBe(true)
    expect(liveViews.isToken(token, id, { runId: 'run-1', attempt: 1 })).toBe(false)
    expect(liveViews.isToken(token, id, { runId: 'run-2', attempt: 2 })).toBe(false)
    expect(liveViews.isToken(token, crypto.randomUUID(), { runId: 'run-1', attempt: 2 })).toBe(false)
    expect(liveViews.isToken('', id, { runId: 'run-1', attempt: 2 })).toBe(false)
  })
})
