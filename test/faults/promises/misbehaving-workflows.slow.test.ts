/** P14: whatever a workflow does to its process, the API replies and other runs succeed. */
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { newLedger, queueRun, startCallers, untilAcknowledged, waitForOutcome } from '../../support/ledger.ts'
import { record } from '../figures.ts'

const ways = [
  'exit',
  'exhaust',
  'throwLater',
  'rejectUnhandled',
  'throwNoError',
  'returnNoJson',
  'closeChannel',
  'writeToChannel',
  'writeEndlessMessage',
  'writeEndlessLine',
  'allocate',
  'allocateInChild',
]
/** On a machine that the workflows keep busy. */
const responseSecondsMax = 5

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('workflows that block, leak, throw and exit affect neither the API nor other runs', async (test) => {
    const fleet = await newFleet(test, kind, {
      settings: { WORKFLOW_MEMORY_MB: '64', ABORT_GRACE_SECONDS: '1', WORKER_SLOTS: '12' },
    })
    const { key } = await fleet.createAccount()
    const api = await fleet.api()
    const worker = await fleet.worker()
    const badRuns = await Promise.all([
      ...ways.map((how) => queueRun(api.executionUrl, key, 'misbehave', { how })),
      queueRun(api.executionUrl, key, 'block', {}),
      queueRun(api.executionUrl, key, 'block', {}),
    ])
    const badIds = badRuns.flatMap((response) => response?.id ?? [])
    const neighbours = newLedger()
    const stop = startCallers(neighbours, { urls: () => [api.executionUrl], key, count: 2 })
    let slowest = 0
    let probing = true
    const probe = async () => {
      while (probing) {
        const began = performance.now()
        const { status } = await fetch(`${api.managementUrl}/readyz`)
        slowest = Math.max(slowest, (performance.now() - began) / 1000)
        expect(status).toBe(200)
      }
    }
    const probed = probe()
    await untilAcknowledged(neighbours, 40)
    await stop()
    const { succeeded } = await fleet.withStore((store) => waitForOutcome(store, neighbours.acknowledged))
    const ended = await fleet.withStore((store) => waitForOutcome(store, badIds))
    probing = false
    await probed
    record({
      promise: 'P14',
      store: kind.name,
      fault: `${badIds.length} workflows that block, leak, throw and exit`,
      figures: { acknowledged: neighbours.acknowledged.length, lost: neighbours.acknowledged.length - succeeded },
      remark: `slowest probe ${slowest.toFixed(2)} s`,
    })
    expect(badIds).toHaveLength(ways.length + 2)
    // "rejectUnhandled" returns normally.
    expect(ended.succeeded).toBeLessThanOrEqual(1)
    expect(succeeded).toBe(neighbours.acknowledged.length)
    expect(neighbours.rejected.size).toBe(0)
    expect(slowest).toBeLessThan(responseSecondsMax)
    expect([api.hasEnded(), worker.hasEnded()]).toEqual([false, false])
  })
})
