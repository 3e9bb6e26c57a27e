/**
 * P1, P3: while PostgreSQL is unreachable, no process exits, readiness and requests get 503, and no acknowledged run is
 * lost. The service recovers by itself.
 */
import { describe, expect, test } from 'vitest'
import type { Test } from '../../support/domain.ts'
import { type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { postgresFleetStore } from '../../support/fleet-stores.ts'
import { newLedger, startCallers, untilAcknowledged, waitForOutcome } from '../../support/ledger.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { until } from '../../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { record } from '../figures.ts'

interface Outage {
  begin(): Promise<void> | void
  end(): Promise<void> | void
}

interface ProxiedFleet {
  fleet: Fleet
  proxy: TcpProxy
  server: PostgresServer
}

/** A fleet that connects to its database through a proxy. */
async function newProxiedFleet(test: Test): Promise<ProxiedFleet> {
  const fleet = await newFleet(test, postgresFleetStore)
  const { server } = fleet.storage
  if (!server) throw new Error('The fleet has no database server.')
  const proxy = await startTcpProxy(test, server.port)
  const url = new URL(server.url())
  url.port = String(proxy.port)
  fleet.settings.DATABASE_URL = url.href
  return { fleet, proxy, server }
}

const faults: [fault: string, broken: (connected: ProxiedFleet) => Outage][] = [
  [
    'PostgreSQL restarted at once (pg_ctl restart -m immediate)',
    ({ server }) => ({ begin: () => server.end('SIGQUIT'), end: () => server.start() }),
  ],
  ['connections to PostgreSQL reset and refused', ({ proxy }) => ({ begin: proxy.cut, end: proxy.restore })],
  ['connections to PostgreSQL stalled, then reset', ({ proxy }) => ({ begin: proxy.stall, end: proxy.restore })],
]

describe.each(faults)('%s', (fault, createOutage) => {
  test('ends no process, loses no acknowledged run, and needs no intervention', async (test) => {
    const connected = await newProxiedFleet(test)
    const { fleet } = connected
    const { begin, end } = createOutage(connected)
    const { key } = await fleet.createAccount()
    const members = await Promise.all([fleet.api(), fleet.api(), fleet.worker()])
    const [first, second, worker] = members
    const ledger = newLedger()
    const urls = [first.executionUrl, second.executionUrl]
    const stop = startCallers(ledger, { urls: () => urls, key })
    await untilAcknowledged(ledger, 60)
    await begin()
    const readiness = async () => {
      const responses = await Promise.all([first, second].map(({ managementUrl }) => fetch(`${managementUrl}/readyz`)))
      return responses.map(({ status }) => status)
    }
    const stalls = fault.includes('stalled')
    // A stalled request takes a while: a query may take 30 s.
    if (!stalls) {
      await until('both processes are not ready', async () => (await readiness()).every((status) => status === 503))
      await until('calls are rejected by 503', () => (ledger.rejected.get(503) ?? 0) >= 20)
    } else {
      const before = ledger.acknowledged.length
      await new Promise((resolve) => setTimeout(resolve, 2000))
      expect(ledger.acknowledged.length).toBeLessThan(before + 16)
    }
    await end()
    const repairedAt = performance.now()
    const before = ledger.acknowledged.length
    await until('both processes are ready', async () => (await readiness()).every((status) => status === 200))
    await untilAcknowledged(ledger, before + 60)
    const seconds = (performance.now() - repairedAt) / 1000
    await stop()
    const { lost, duplicated } = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
    const figures = {
      acknowledged: ledger.acknowledged.length,
      lost,
      duplicated,
      rejected: ledger.rejected.get(503) ?? 0,
    }
    const remark = 'seconds until ready, and 60 more 202s'
    record({ promise: 'P3', store: 'PostgreSQL', fault, figures: { ...figures, seconds }, remark })
    expect({ lost, duplicated }).toEqual({ lost: 0, duplicated: 0 })
    const unexpected = [...ledger.rejected.keys()].filter((status) => status !== 503)
    expect(unexpected, [first, second].map((member) => errorsIn(member)).join('\n')).toEqual([])
    expect(ledger.withoutResponse).toBe(0)
    expect(members.map((member) => member.hasEnded())).toEqual([false, false, false])
    expect(worker.logged('worker ready')).toBe(1)
  })
})

/** The errors in its log, for the report of a failing test. */
function errorsIn(member: Member): string {
  const lines = member.output().split('\n')
  return lines.filter((line) => line.includes('"level":50') || line.includes('"level":"error"')).join('\n')
}
