/** P2: a run is synced to disk before its 202 is sent. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { newLedger, queueRun, startCallers, untilAcknowledged } from '../../support/ledger.ts'
import { compareOrder, readCalls, trace, whyTracingFails } from '../../support/system-calls.ts'
import { record } from '../figures.ts'

const refused = whyTracingFails()
const oneByOne = 20
const underLoad = 200

describe.each(fleetStores)('on the store "$name"', (kind) => {
  const about = { promise: 'P2', store: kind.name, fault: 'order of system calls, one by one and under load' }
  if (refused) record({ ...about, skipped: refused })

  test.skipIf(refused)('every 202 is sent after the fsync of its run has returned', async (test) => {
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const output = join(fleet.storage.directory, 'calls')
    const api = await fleet.api()
    const stopTracing = await trace(() => [...new Set([api.pid, ...kind.syncing(fleet.storage, api.pid)])], output)
    for (let count = 0; count < oneByOne; count += 1) await queueRun(api.executionUrl, key, 'greet', { name: 'Ada' })
    const ledger = newLedger()
    const stop = startCallers(ledger, { urls: () => [api.executionUrl], key, count: 16 })
    await untilAcknowledged(ledger, underLoad)
    await stop()
    // Its thread has left the system call of the last response, so that the trace has the whole call.
    await fetch(api.executionUrl)
    await stopTracing()
    const { responses, afterSync, syncs } = compareOrder(readCalls(output), kind.logFiles)
    const lost = responses - afterSync
    record({ ...about, figures: { acknowledged: responses, lost }, remark: `${syncs} times \`fsync\`` })
    expect(responses).toBe(oneByOne + ledger.acknowledged.length)
    expect(afterSync).toBe(responses)
    // Under load, runs that arrive together share an fsync.
    expect(syncs).toBeLessThan(responses + oneByOne)
  })
})
