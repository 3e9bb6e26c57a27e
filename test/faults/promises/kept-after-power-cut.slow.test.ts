/** P1: a run acknowledged with 202 survives a power cut under load. */
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import {
  failures,
  newLedger,
  readOutcome,
  startCallers,
  untilAcknowledged,
  waitForOutcome,
} from '../../support/ledger.ts'
import { newDisk, whyPowerCutsFail } from '../../support/mounts.ts'
import { until } from '../../support/service.ts'
import { record } from '../figures.ts'

const cuts = 3
const acknowledgedBeforeCut = 150
const fault = 'power cut under load (ext4 shut down without its journal)'
const refused = whyPowerCutsFail()

describe.each(fleetStores)('on the store "$name"', (kind) => {
  if (refused) record({ promise: 'P1', store: kind.name, fault, skipped: refused })

  test.skipIf(refused)('a power cut loses no acknowledged run', async (test) => {
    const disk = newDisk(test)
    const fleet = await newFleet(test, kind, { directory: disk.directory })
    const { key } = await fleet.createAccount()
    const ledger = newLedger()
    for (let cut = 1; cut <= cuts; cut += 1) {
      const members = await Promise.all([fleet.api({ worker: true }), fleet.api({ worker: true })])
      const urls = members.map(({ executionUrl }) => executionUrl)
      const stop = startCallers(ledger, { urls: () => urls, key })
      await untilAcknowledged(ledger, cut * acknowledgedBeforeCut)
      disk.cutPower()
      // A process that still believed in its writes would acknowledge lost runs.
      const before = failures(ledger)
      await until('others are refused or cut off', () => failures(ledger) > before + 20)
      await fleet.kill()
      await stop()
      await fleet.storage.halt?.()
      disk.restorePower()
      await fleet.storage.resume?.()
      expect(await fleet.withStore((store) => readOutcome(store, ledger.acknowledged))).toMatchObject({ lost: 0 })
    }
    await fleet.api({ worker: true })
    const { lost, duplicated } = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
    const figures = { acknowledged: ledger.acknowledged.length, lost, duplicated, refused: failures(ledger) }
    record({ promise: 'P1', store: kind.name, fault, figures, remark: `${cuts} cuts` })
    expect({ lost, duplicated }).toEqual({ lost: 0, duplicated: 0 })
  })
})
