/** Schedules: each time makes one run, with any number of processes, and the policy for missed times. */
import { describe, expect, test } from 'vitest'
import { Workflows } from '../../../src/domain/workflows/workflows.ts'
import { claimableOf } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { beforeNextWrite, recordNotifications } from '../../support/interleaving.ts'
import { stores } from '../../support/store-kinds.ts'
import { findRuns, minute, openWithSchedule } from './schedule-helpers.ts'

describe.each(stores)('schedules ($name)', (kind) => {
  test('queue one run for each time, on time, with the options and defaults of the schedule', async (test) => {
    const options = { priority: 3, tags: ['nightly'], expiresInSeconds: 600 }
    const { domain, accountId, id, pass, get, now } = await openWithSchedule(test, kind, options)
    expect(await pass(minute - 1)).toBe(now() + 1)
    expect((await findRuns(domain, id)).rows).toEqual([])
    expect(await pass(1)).toBe(now() + minute)
    const { rows } = await findRuns(domain, id)
    expect(rows).toHaveLength(1)
    const run = await domain.runs.get(accountId, rows[0]?.id ?? '')
    expect(run).toMatchObject({ scheduleId: id, scheduledFor: now(), apiKeyId: null, priority: 3, tags: ['nightly'] })
    expect(Number(run?.expiresAt) - Number(run?.createdAt)).toBe(600_000)
    const { lastRun, nextTimes } = await get()
    expect(lastRun).toEqual({ id: run?.id, scheduledFor: now(), status: 'queued' })
    expect(nextTimes).toEqual([1, 2, 3, 4, 5].map((count) => now() + count * minute))
  })

  test('queue a run for a caller together with its entry in the audit log, or neither', async (test) => {
    const { domain, principal, accountId, id } = await openWithSchedule(test, kind)
    const rename = (from: string, to: string) =>
      domain.store.write((tx) => tx.all(`ALTER TABLE ${from} RENAME TO ${to}`, []))
    await rename('audit_log', 'moved')
    await expect(domain.schedules.trigger(accountId, id, principal)).rejects.toThrow('audit_log')
    expect((await findRuns(domain, id)).rows).toEqual([])
    await rename('moved', 'audit_log')
    const queued = await domain.schedules.trigger(accountId, id, principal)
    const [run] = (await findRuns(domain, id)).rows
    expect(queued).toMatchObject({ kind: 'queued', run: { id: run?.id } })
    const entries = await domain.store.read.query.selectFrom('audit_log').selectAll().execute()
    const triggered = entries.filter(({ action }) => action === 'schedule.triggered')
    expect(triggered.map(({ details }) => JSON.parse(details ?? '{}'))).toEqual([{ runId: run?.id }])
  })

  test('make one run for each time although several processes decide them', async (test) => {
    const { domain, create, pass, now } = await openWithSchedule(test, kind)
    for (let count = 0; count < 4; count += 1) await create()
    const others = await Promise.all([1, 2, 3].map(() => openDomain(test, { kind, location: domain.location, now })))
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([pass(minute), ...others.map(({ scheduler }) => scheduler.once())])
      await Promise.all([domain, ...others].map(({ scheduler }) => scheduler.once()))
    }
    const found = await domain.store.read.query.selectFrom('runs').select(['schedule_id', 'scheduled_for']).execute()
    expect(found).toHaveLength(15)
    expect(new Set(found.map((row) => JSON.stringify(row))).size).toBe(15)
  })

  test('repeat no time when the clock is set back, also not after their times were recomputed', async (test) => {
    const { domain, pass, setClock, now, minutes, update } = await openWithSchedule(test, kind)
    await pass(minute)
    await pass(minute)
    setClock(now() - 2 * minute)
    await domain.scheduler.once()
    expect(await minutes()).toEqual([1, 2])
    await update({ timeZone: 'Europe/Berlin' })
    await pass(minute)
    await pass(minute)
    await pass(minute)
    expect(await minutes()).toEqual([1, 2, 3])
  })

  test.for([
    ['skip', [], 29],
    ['runOnce', [29], 28],
    ['runAll', Array.from({ length: 29 }, (_, index) => index + 1), undefined],
  ] as const)('%s decides which missed times get a run', async ([missed, expected, skipped], test) => {
    const { pass, minutes, get, now } = await openWithSchedule(test, kind, { missed })
    await pass(30 * minute)
    expect(await minutes()).toEqual([...expected, 30])
    const at = skipped === undefined ? null : { scheduledFor: now() - (30 - skipped) * minute, reason: 'missed' }
    expect((await get()).lastSkipped).toEqual(at)
  })

  test('get no runs for the times of a pause', async (test) => {
    const { pass, update, minutes, get } = await openWithSchedule(test, kind, { missed: 'runAll' })
    await update({ paused: true })
    expect(await get()).toMatchObject({ pausedReason: 'request', nextTimes: [] })
    expect(await pass(5 * minute)).toBeNull()
    await update({ paused: false })
    await pass(minute)
    expect(await minutes()).toEqual([6])
  })

  test('lose a time at the limit of queued runs, and say so', async (test) => {
    const opened = await openWithSchedule(test, kind, {}, { queuedRunsMax: 1 })
    const { pass, minutes, get, now, finish } = opened
    await pass(minute)
    await pass(minute)
    expect((await get()).lastSkipped).toEqual({ scheduledFor: now(), reason: 'queuedRunsLimit' })
    expect((await get()).lastRun?.scheduledFor).toBe(now() - minute)
    await finish()
    await pass(minute)
    expect(await minutes()).toEqual([1, 3])
  })

  test('show the latest of several times lost at the limit of queued runs', async (test) => {
    const { pass, minutes, get, now } = await openWithSchedule(test, kind, { missed: 'runAll' }, { queuedRunsMax: 1 })
    await pass(4 * minute)
    expect(await minutes()).toEqual([1])
    expect((await get()).lastSkipped).toEqual({ scheduledFor: now(), reason: 'queuedRunsLimit' })
  })

  test('pause when a deployment refuses their variables or lacks their workflow, and say why', async (test) => {
    const strict = {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' } },
      additionalProperties: false,
    }
    let deployed = new Workflows([workflow()])
    const opened = await openWithSchedule(test, kind, {}, { registry: { current: () => deployed } })
    const { domain, get, pass, minutes, update } = opened
    deployed = new Workflows([workflow({ variables: strict })])
    await domain.scheduler.recheck()
    const pausedDetail = { kind: 'runInvalid', message: '/variableData/name is required' }
    const invalid = { pausedReason: 'runInvalid', pausedDetail, nextTimes: [] }
    expect(await get()).toMatchObject(invalid)
    deployed = new Workflows([workflow()])
    await update({ paused: false })
    deployed = new Workflows([workflow({ variables: strict })])
    // At the time itself, too: the process may not have noticed the deployment.
    await pass(minute)
    expect(await get()).toMatchObject(invalid)
    deployed = new Workflows([workflow()])
    await update({ paused: false })
    deployed = new Workflows([])
    await domain.scheduler.recheck()
    expect(await get()).toMatchObject({ pausedReason: 'workflowRemoved' })
    expect(await minutes()).toEqual([])
  })

  test('are not paused for variables that the caller has changed in the meantime', async (test) => {
    let deployed = new Workflows([workflow()])
    const opened = await openWithSchedule(test, kind, {}, { registry: { current: () => deployed } })
    const { domain, get, setClock, now, update } = opened
    const strict = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
    deployed = new Workflows([workflow({ variables: strict })])
    beforeNextWrite(domain.store, async () => {
      setClock(now() + 1)
      await update({ variables: { name: 'Ada' } })
    })
    await domain.scheduler.recheck()
    expect(await get()).toMatchObject({ pausedReason: null, variables: { name: 'Ada' } })
  })

  test('wake workers when their runs are queued', async (test) => {
    const { domain, id, pass } = await openWithSchedule(test, kind)
    const notified = recordNotifications(domain.store, async () => (await findRuns(domain, id)).rows.length)
    await pass(minute)
    expect((await notified()).queue).toBe(1)
  })

  test('encrypt secret variables for themselves and for each run', async (test) => {
    const secretSchema = {
      type: 'object',
      properties: { token: { type: 'string', writeOnly: true }, count: { type: 'integer', default: 7 } },
    }
    const workflows = [workflow({ variables: secretSchema })]
    const variables = { token: 'very secret' }
    const opened = await openWithSchedule(test, kind, { variables }, { workflows })
    const { domain, id, pass, get, update } = opened
    expect((await get()).variables).toEqual({ token: '********' })
    await pass(minute)
    const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 1000)
    expect(claim?.variables).toEqual({ token: '********', count: 7 })
    const secrets = claim?.secrets
    expect(secrets).toBeTruthy()
    const rows = await domain.store.read.query.selectFrom('schedules').selectAll().where('id', '=', id).execute()
    expect(Buffer.from(rows[0]?.secrets ?? []).includes('very secret')).toBe(false)
    // The masked variables of a response keep the secret; with any other change, it must be sent again.
    expect(await update({ variables: { token: '********' } })).toMatchObject({ variables: { token: '********' } })
    expect(await update({ variables: { token: '********', count: 1 } })).toMatchObject({
      errors: [{ pointer: '/variableData/token' }],
    })
  })

  test('count towards the limit of the account', async (test) => {
    const { create } = await openWithSchedule(test, kind, {}, { schedulesMax: 2 })
    expect((await create()).kind).toBe('created')
    expect(await create()).toEqual({ kind: 'tooManySchedules', schedulesMax: 2 })
  })

  test('a schedule that cannot be read is paused and stops no other', async (test) => {
    const { domain, id, create, pass, get } = await openWithSchedule(test, kind)
    const other = await create()
    await domain.store.write(({ query }) =>
      query.updateTable('schedules').set({ time_zone: 'Europe/Atlantis' }).where('id', '=', id).execute(),
    )
    await pass(minute)
    expect((await get()).pausedReason).toBe('error')
    const otherId = other.kind === 'created' ? other.schedule.id : ''
    expect((await findRuns(domain, otherId)).rows).toHaveLength(1)
  })

  test('are compared with a deployment although one of them cannot be read', async (test) => {
    let deployed = new Workflows([workflow()])
    const opened = await openWithSchedule(test, kind, {}, { registry: { current: () => deployed } })
    const { domain, accountId, id, create, get } = opened
    const other = await create()
    await domain.store.write(({ query }) =>
      query
        .updateTable('schedules')
        .set({ secrets: Buffer.from('of a lost key') })
        .where('id', '=', id)
        .execute(),
    )
    deployed = new Workflows([])
    await domain.scheduler.recheck()
    expect((await get()).pausedReason).toBe('error')
    const otherId = other.kind === 'created' ? other.schedule.id : ''
    expect((await domain.schedules.get(accountId, otherId))?.pausedReason).toBe('workflowRemoved')
  })

  test('queue no run once they are paused, although the pause is not committed yet', async (test) => {
    const { domain, pass, update, minutes, get } = await openWithSchedule(test, kind)
    let paused: Promise<unknown> = Promise.resolve()
    beforeNextWrite(domain.store, async () => {
      paused = update({ paused: true })
      // SQLite commits both writes together.
      if (kind.name !== 'sqlite') await paused
    })
    await pass(minute)
    await paused
    expect(await minutes()).toEqual([])
    expect((await get()).pausedReason).toBe('request')
  })

  test('are listed for their own account', async (test) => {
    const { domain, accountId, id } = await openWithSchedule(test, kind)
    const list = async (ofAccount: string) => (await domain.schedules.list(ofAccount, { limit: 10 }))?.schedules
    expect((await list(accountId))?.map((schedule) => schedule.id)).toEqual([id])
    expect(await list((await newAccount(domain)).accountId)).toEqual([])
  })

  test('list their runs', async (test) => {
    const { domain, principal, accountId, id, pass } = await openWithSchedule(test, kind)
    await queueRun(domain, principal)
    await pass(minute)
    const page = await domain.runs.list(accountId, { scheduleId: id, limit: 10 })
    expect(page?.runs.map(({ scheduleId }) => scheduleId)).toEqual([id])
    const other = await newAccount(domain)
    expect((await domain.runs.list(other.accountId, { scheduleId: id, limit: 10 }))?.runs).toEqual([])
  })
})
