/** A run's history for a page: complete for few events, the latest ones for many. */
import { describe, expect, test, vi } from 'vitest'
import type { Report, RunEvent } from '../../../src/domain/runs/run.ts'
import { claimableOf, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { sqlText } from '../../support/run-rows.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const log = (message: number): Report => ({ at: 1, type: 'log', data: { attempt: 1, level: 'info', message } })
const progress = (percent: number): Report => ({
  at: 2,
  type: 'progress',
  data: { attempt: 1, percent, message: null },
})
const step = (name: number): Report => ({ at: 3, type: 'step', data: { attempt: 1, name, state: 'started' } })

function many<Value>(count: number, make: (index: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** A succeeded run with these reports. */
async function openWithRun(test: Test, kind: StoreKind, reports: Report[]) {
  const domain = await openDomain(test, { kind })
  const { accountId, principal } = await newAccount(domain)
  const { id } = await queueRun(domain, principal)
  const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
  if (claim) await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry, reports)
  return { domain, accountId, id }
}

async function readHistory({ runs }: Domain, accountId: string, id: string, logsMax: number) {
  const history = await runs.getWithHistory(accountId, id, { logsMax })
  if (!history) throw new Error('The run was not found.')
  const { events, ...omitted } = history.history
  return { events: events.map(describeEvent), ...omitted }
}

function describeEvent({ sequence, type, data }: RunEvent): string {
  return `${sequence} ${type} ${data.status ?? data.message ?? data.percent ?? data.name}`
}

describe.each(stores)("a run's history ($name)", (kind) => {
  test('has all events in order, but only the last progress', async (test) => {
    const reports = [log(1), progress(10), step(1), log(2), progress(20), log(3)]
    const { domain, accountId, id } = await openWithRun(test, kind, reports)
    const events = ['1 status queued', '2 status running', '3 log 1', '5 step 1', '6 log 2', '7 progress 20', '8 log 3']
    const omitted = { logsOmitted: 0, othersOmitted: 0 }
    const all = { events: [...events, '9 status succeeded'], ...omitted }
    expect(await readHistory(domain, accountId, id, 3)).toEqual(all)
    expect(await readHistory(domain, accountId, id.toUpperCase(), 1000)).toEqual(all)
    const [, running] = (await domain.runs.getWithHistory(accountId, id, { logsMax: 3 }))?.history.events ?? []
    const data = { status: 'running', attempt: 1, reason: null }
    expect(running).toEqual({ sequence: 2, at: expect.any(Number), type: 'status', data })
  })

  test('has the last log lines up to the limit, and the number left out', async (test) => {
    const { domain, accountId, id } = await openWithRun(test, kind, [step(1), ...many(9, log), step(2)])
    const rest = ['1 status queued', '2 status running', '3 step 1']
    const end = ['13 step 2', '14 status succeeded']
    const two = { events: [...rest, '11 log 7', '12 log 8', ...end], logsOmitted: 7, othersOmitted: 0 }
    expect(await readHistory(domain, accountId, id, 2)).toEqual(two)
    const expected = { events: [...rest, ...end], logsOmitted: 9, othersOmitted: 0 }
    expect(await readHistory(domain, accountId, id, 0)).toEqual(expected)
  })

  test('is bounded for a run with 9,000 events, and has the latest of them', async (test) => {
    const reports = [
      ...many(2500, log),
      ...many(1500, step),
      ...many(3000, progress),
      ...many(2000, log),
      step(7),
      log(8),
    ]
    const { domain, accountId, id } = await openWithRun(test, kind, reports)
    const { events, logsOmitted, othersOmitted } = await readHistory(domain, accountId, id, 2100)
    const sequences = events.map((event) => Number(event.split(' ')[0]))
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b))
    const logs = events.filter((event) => event.includes(' log '))
    expect(logs).toHaveLength(2100)
    expect(logs[0]).toBe('2404 log 2401')
    expect(logs.at(-1)).toBe('9004 log 8')
    expect(logsOmitted).toBe(4501 - 2100)
    // Three statuses and 1,501 steps.
    const others = events.filter((event) => / (status|step) /.test(event))
    expect(others).toHaveLength(1000)
    expect(others[0]).toBe('3005 step 502')
    expect(others.at(-1)).toBe('9005 status succeeded')
    expect(othersOmitted).toBe(504)
    expect(events.filter((event) => event.includes('progress'))).toEqual(['7002 progress 2999'])
  })

  test('is complete for a run that finishes while it is read', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId, principal } = await newAccount(domain)
    const { id } = await queueRun(domain, principal)
    const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
    if (!claim) throw new Error('The run was not claimed.')
    const read = domain.store.read.all
    const reading = vi.spyOn(domain.store.read, 'all').mockImplementation(async (sql, values) => {
      const rows = await read(sql, values)
      if (!sqlText(sql).includes('FROM run_events')) return rows as never
      reading.mockRestore()
      await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
      return rows as never
    })
    const { run, history } = (await domain.runs.getWithHistory(accountId, id, { logsMax: 1 })) ?? {}
    expect(run?.status).toBe('succeeded')
    expect(history?.events.map(describeEvent)).toEqual(['1 status queued', '2 status running', '3 status succeeded'])
  })

  test('cannot be read by another account', async (test) => {
    const { domain, accountId, id } = await openWithRun(test, kind, [log(1)])
    const theirs = await newAccount(domain)
    expect(await domain.runs.getWithHistory(theirs.accountId, id, { logsMax: 1 })).toBeUndefined()
    expect(await domain.runs.getWithHistory(accountId, 'no-such-run', { logsMax: 1 })).toBeUndefined()
  })
})
