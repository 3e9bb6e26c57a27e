/** P3: a run that cannot be made durable is refused with 503, and the service recovers by itself. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ApiMember, type Fleet, newFleet } from '../../support/fleet.ts'
import { type FleetStore, fleetStores } from '../../support/fleet-stores.ts'
import {
  type Ledger,
  newLedger,
  queueRun,
  startCallers,
  untilAcknowledged,
  waitForOutcome,
} from '../../support/ledger.ts'
import { newSmallMount, whyMountingFails } from '../../support/mounts.ts'
import { until } from '../../support/service.ts'
import { injectFailures, whyTracingFails } from '../../support/system-calls.ts'
import { record } from '../figures.ts'

const refusals = 40

interface Scenario {
  about: { promise: string; store: string; fault: string }
  fleet: Fleet
  api: ApiMember
  begin(): Promise<void>
  /** Called while writes are refused. */
  meanwhile?(): Promise<void>
  end(): Promise<void>
}

/** Queues runs before, during and after the fault. */
async function queueDuringFault({ about, fleet, api, begin, meanwhile, end }: Scenario): Promise<void> {
  const { key } = await fleet.createAccount()
  const ledger = newLedger()
  const stop = startCallers(ledger, { urls: () => [api.executionUrl], key })
  await untilAcknowledged(ledger, 50)
  await begin()
  const refused = () => ledger.rejected.get(503) ?? 0
  await until('calls are refused by 503', () => refused() >= refusals)
  await meanwhile?.()
  await end()
  const repairedAt = performance.now()
  const before = ledger.acknowledged.length
  await until('50 more runs are acknowledged', async () => {
    // A database server that meets the fault during its recovery exits only then.
    await fleet.storage.resume?.()
    return ledger.acknowledged.length >= before + 50
  })
  const acknowledged = await until('a call is acknowledged at once', async () => {
    return (await queueRun(api.executionUrl, key, 'greet', { name: 'Ada' }))?.status === 202
  })
  expect(acknowledged).toBe(true)
  const seconds = (performance.now() - repairedAt) / 1000
  await stop()
  await finish(about, fleet, ledger, seconds)
}

async function finish(about: Scenario['about'], fleet: Fleet, ledger: Ledger, seconds: number): Promise<void> {
  const { lost, duplicated } = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
  const acknowledged = ledger.acknowledged.length
  const refused = ledger.rejected.get(503) ?? 0
  record({
    ...about,
    figures: { acknowledged, lost, duplicated, refused, seconds },
    remark: 'seconds until 50 more 202s',
  })
  expect({ lost, duplicated }).toEqual({ lost: 0, duplicated: 0 })
  // 503, and no other status.
  expect([...ledger.rejected.keys()]).toEqual([503])
  expect(ledger.withoutResponse).toBe(0)
}

async function fillDisk(kind: FleetStore, about: Scenario['about'], test: Parameters<typeof newSmallMount>[0]) {
  const directory = newSmallMount(test, kind.megabytesMin)
  const fleet = await newFleet(test, kind, { directory })
  const api = await fleet.api({ worker: true })
  const filler = join(directory, 'filler')
  const begin = async () => {
    const file = openSync(filler, 'w')
    const page = Buffer.alloc(4096)
    // The store grows meanwhile, so the free space is unknown.
    expect(() => {
      for (;;) writeSync(file, page)
    }).toThrow('ENOSPC')
    closeSync(file)
  }
  // Reads are served, so a proxy must not take the process out of use.
  const meanwhile = async () => {
    expect((await fetch(`${api.managementUrl}/readyz`)).status).toBe(200)
    const metrics = await (await fetch(`${api.managementUrl}/metrics`)).text()
    expect(metrics).toMatch(/^execution_service_ready\{.*\} 1$/m)
    expect(metrics).toMatch(/^execution_service_store_unavailable_total\{.*\} [1-9]\d*$/m)
  }
  const end = async () => rmSync(filler)
  await queueDuringFault({ about, fleet, api, begin, meanwhile, end })
}

describe.each(fleetStores)('on the store "$name"', (kind) => {
  const full = { promise: 'P3', store: kind.name, fault: 'disk full' }
  const noMounts = whyMountingFails()
  if (noMounts) record({ ...full, skipped: noMounts })
  test.skipIf(noMounts)('a full disk causes 503, and 202 again when there is space', async (test) => {
    await fillDisk(kind, full, test)
  })

  const broken = { promise: 'P3', store: kind.name, fault: 'I/O error at fsync' }
  const noTraces = whyTracingFails()
  if (noTraces) record({ ...broken, skipped: noTraces })
  test.skipIf(noTraces)('an I/O error at fsync causes 503, and 202 again without it', async (test) => {
    const fleet = await newFleet(test, kind)
    const api = await fleet.api({ worker: true })
    let stop = async () => {}
    const begin = async () => {
      stop = await injectFailures(kind.syncing(fleet.storage, api.pid), 'fsync,fdatasync', 'EIO')
    }
    const end = () => stop()
    await queueDuringFault({ about: broken, fleet, api, begin, end })
  })
})
