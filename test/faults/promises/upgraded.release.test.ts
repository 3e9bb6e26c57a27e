/**
 * P24: a newer version migrates the store while an earlier one serves it, both serve it under load and kills, and the
 * earlier one can replace the newer one again. By default this checkout is the earlier version; UPGRADE_FROM names the
 * `src/main.ts` of another one, such as that of an unpacked release.
 */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { failures, newLedger, startCallers, untilAcknowledged, waitForOutcome } from '../../support/ledger.ts'
import { type Backend, startLoadBalancer } from '../../support/load-balancer.ts'
import { main, until } from '../../support/service.ts'
import { newerMigrations } from '../../upgrades/newer-version.ts'
import { record } from '../figures.ts'

const earlier = { program: process.env.UPGRADE_FROM ?? main }
const newer = { program: fileURLToPath(new URL('../../upgrades/newer-version-process.ts', import.meta.url)) }

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('an upgrade and its reversal under load refuse nothing and lose nothing, and each run completes once', async (context) => {
    // Much longer than the proxy takes to notice.
    const fleet = await newFleet(context, kind, { settings: { DRAIN_SECONDS: '5', SHUTDOWN_SECONDS: '10' } })
    const front = await startLoadBalancer()
    context.onTestFinished(front.close)
    const addApi = async (version: { program: string }) => {
      const api = await fleet.api(version)
      front.add(api)
      await until('the front uses the service', () => front.uses(api as Backend))
      return api
    }
    const { key } = await fleet.createAccount()
    const [firstApi, secondApi, killedWorker, earlierWorker] = await Promise.all([
      ...[addApi(earlier), addApi(earlier)],
      ...([fleet.worker(earlier), fleet.worker(earlier)] as const),
    ] as const)
    const ledger = newLedger()
    const stopCalling = startCallers(ledger, { urls: () => [front.url], key, count: 2 })
    const more = (count: number) => untilAcknowledged(ledger, ledger.acknowledged.length + count)
    const stop = async (member: { signal(signal: NodeJS.Signals): void; ended: Promise<unknown> }) => {
      member.signal('SIGTERM')
      expect(await member.ended).toEqual({ code: 0, signal: null })
    }

    await more(100)
    const [newerApi, newerWorker] = await Promise.all([addApi(newer), fleet.worker(newer)])
    await fleet.withStore(async ({ read }) => {
      const applied = await read.all<{ name: string }>('SELECT name FROM kysely_migration', [])
      expect(applied.map(({ name }) => name)).toEqual(expect.arrayContaining(newerMigrations.map(({ name }) => name)))
    })
    await more(100)
    await Promise.all([killedWorker.kill(), newerWorker.kill()])
    // A supervisor starts each again, so that the earlier version starts on the newer schema.
    const workers = await Promise.all([fleet.worker(earlier), fleet.worker(newer)])
    await more(100)
    for (const member of [firstApi, secondApi, earlierWorker, workers[0]]) {
      await stop(member)
      await more(20)
    }
    const laterWorker = await fleet.worker(earlier)
    await addApi(earlier)
    await Promise.all([stop(newerApi), stop(workers[1])])
    await more(100)
    await stopCalling()

    const [outcome, noted] = await fleet.withStore(async (store) => {
      const done = await waitForOutcome(store, ledger.acknowledged)
      const [row] = await store.read.all<{ count: number }>('SELECT COUNT(*) AS count FROM newer_notes', [])
      return [done, row?.count] as const
    })
    expect(laterWorker.hasEnded()).toBe(false)
    record({
      promise: 'P24',
      store: kind.name,
      fault: 'an upgrade and its reversal under load, kill -9 of a worker of each version',
      figures: {
        acknowledged: ledger.acknowledged.length,
        killed: 2,
        lost: outcome.lost,
        duplicated: outcome.duplicated,
        refused: failures(ledger),
      },
      remark: `${front.failures.length} connections reset, ${outcome.attempts} attempts`,
    })
    expect(front.failures).toEqual([])
    expect(failures(ledger), JSON.stringify([...ledger.rejected])).toBe(0)
    const { length } = ledger.acknowledged
    expect(outcome).toMatchObject({ lost: 0, duplicated: 0, unfinished: 0, unsuccessful: [], succeeded: length })
    expect(noted, 'runs that both versions ended are noted once by the trigger of the newer one').toBeGreaterThan(300)
    expect(noted).toBeLessThanOrEqual(length)
  })
})
