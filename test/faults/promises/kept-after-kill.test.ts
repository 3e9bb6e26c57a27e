/** P1: a run acknowledged with 202 survives kill -9 of every process, and finishes once. */
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { newLedger, startCallers, untilAcknowledged, waitForOutcome } from '../../support/ledger.ts'
import { record } from '../figures.ts'

const rounds = 3
const acknowledgedInRound = 100

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('kill -9 of every process under load loses no acknowledged run and finishes none twice', async (test) => {
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const ledger = newLedger()
    let killed = 0
    for (let round = 1; round <= rounds; round += 1) {
      const members = await Promise.all([fleet.api({ worker: true }), fleet.api({ worker: true })])
      const urls = members.map(({ executionUrl }) => executionUrl)
      const stop = startCallers(ledger, { urls: () => urls, key })
      await untilAcknowledged(ledger, round * acknowledgedInRound)
      await Promise.all([fleet.kill(), fleet.storage.halt?.()])
      killed += members.length
      await stop()
      await fleet.storage.resume?.()
    }
    await fleet.api({ worker: true })
    const outcome = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
    const { lost, duplicated, unsuccessful, attempts } = outcome
    record({
      promise: 'P1',
      store: kind.name,
      fault: 'kill -9 of every process under load',
      figures: { acknowledged: ledger.acknowledged.length, killed, lost, duplicated },
      remark: `${attempts} attempts; ${ledger.withoutResponse} connections broken`,
    })
    expect({ lost, duplicated, otherwise: unsuccessful }).toEqual({ lost: 0, duplicated: 0, otherwise: [] })
    expect(ledger.withoutResponse).toBeGreaterThan(0)
  })
})
