/** A time of a schedule while the run of an earlier time is unfinished. */
import { describe, expect, test } from 'vitest'
import { claimOne } from '../../support/claims.ts'
import { openDomain } from '../../support/domain.ts'
import { recordNotifications } from '../../support/interleaving.ts'
import { stores } from '../../support/store-kinds.ts'
import { findRuns, minute, openWithSchedule } from './schedule-helpers.ts'

describe.each(stores)('schedules ($name)', (kind) => {
  test('skip a time while an earlier run is unfinished, and say so', async (test) => {
    const { pass, minutes, get, finish, now } = await openWithSchedule(test, kind, { overlap: 'skip' })
    await pass(minute)
    await pass(minute)
    expect((await get()).lastSkipped).toEqual({ scheduledFor: now(), reason: 'overlap' })
    expect(await finish()).toBe(1)
    await pass(minute)
    expect(await minutes()).toEqual([1, 3])
  })

  test('let each time wait for the run of the earlier one', async (test) => {
    const { domain, pass, minutes, finish, get } = await openWithSchedule(test, kind, { overlap: 'queue' })
    for (let count = 0; count < 3; count += 1) await pass(minute)
    expect(await minutes()).toEqual([1])
    expect(new Date((await get()).nextTimes[0] ?? 0).getUTCMinutes()).toBe(2)
    for (const expected of [
      [1, 2],
      [1, 2, 3],
    ]) {
      expect(await finish()).toBe(1)
      await domain.scheduler.once()
      expect(await minutes()).toEqual(expected)
      if (expected.length === 2) expect(await domain.scheduler.nextDue()).toBe(null)
    }
    await finish()
    await pass(minute)
    expect(await minutes()).toEqual([1, 2, 3, 4])
  })

  test('cancel the earlier run and queue the next', async (test) => {
    const { pass, minutes } = await openWithSchedule(test, kind, { overlap: 'cancelPrevious' })
    await pass(minute)
    await pass(minute)
    expect(await minutes(['cancelled'])).toEqual([1])
    expect(await minutes(['queued'])).toEqual([2])
  })

  test('wake the worker of the earlier run that is cancelled, and those who follow it', async (test) => {
    const { domain, id, pass } = await openWithSchedule(test, kind, { overlap: 'cancelPrevious' })
    await pass(minute)
    await claimOne(domain)
    const notified = recordNotifications(
      domain.store,
      async () => (await findRuns(domain, id)).rows[0]?.cancel_requested,
    )
    await pass(minute)
    expect(await notified()).toMatchObject({ cancellations: 1, runs: 1 })
  })

  test('keep the earlier run if its successor is refused', async (test) => {
    const opened = await openWithSchedule(test, kind, { overlap: 'cancelPrevious' }, { queuedRunsMax: 1 })
    const { pass, minutes, get, now } = opened
    await pass(minute)
    await pass(minute)
    expect((await get()).lastSkipped).toEqual({ scheduledFor: now(), reason: 'queuedRunsLimit' })
    expect([await minutes(['queued']), await minutes(['cancelled'])]).toEqual([[1], []])
  })

  test('do not cancel the run of a later time when the clock is set back', async (test) => {
    const { pass, setClock, now, minutes, update } = await openWithSchedule(test, kind, { overlap: 'cancelPrevious' })
    await pass(2 * minute)
    setClock(now() - 2 * minute)
    await update({ timeZone: 'Europe/Berlin' })
    await pass(minute)
    expect(await minutes(['queued'])).toEqual([1, 2])
  })

  test('do not cancel the run that another process has queued for the same time', async (test) => {
    const { domain, pass, minutes, now } = await openWithSchedule(test, kind, { overlap: 'cancelPrevious' })
    const other = await openDomain(test, { kind, location: domain.location, now })
    await Promise.all([pass(minute), other.scheduler.once(), other.scheduler.once()])
    expect(await minutes(['queued'])).toEqual([1])
  })
})
