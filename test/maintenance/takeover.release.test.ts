/** Delays end and schedules run although the process that does the maintenance is killed, stopped or paused. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { leaseMilliseconds } from '../../src/maintenance/maintenance-lease.ts'
import { newFleet } from '../support/fleet.ts'
import { fleetStores } from '../support/fleet-stores.ts'

/** For timers and starting statements on a machine under load. */
const slackMilliseconds = 5000
const begins = 'this process does the maintenance'

const limits = { timeout: 180_000 }

test.for(fleetStores)('another process takes the maintenance over in time ($name)', limits, async (kind, test) => {
  const fleet = await newFleet(test, kind, { settings: { LOG_LEVEL: 'info' } })
  const members = [await fleet.api({ worker: true }), await fleet.api(), await fleet.api()]
  const { key } = await fleet.createAccount()
  const counts = () => members.map((member) => member.logged(begins))
  const sum = () => counts().reduce((total, count) => total + count, 0)
  await vi.waitUntil(() => sum() === 1, { timeout: leaseMilliseconds + slackMilliseconds })

  /** Queues a delayed run by one of the processes; resolves with the milliseconds by which its delay ends too late. */
  const lateness = async (member = members.at(-1)) => {
    const url = `${member?.executionUrl}/v1/execution`
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ variableData: { name: 'Ada' } })
    const queued = await fetch(`${url}/queue-remote/greet?delaySeconds=1`, { method: 'PUT', headers, body })
    expect(queued.status).toBe(202)
    const { id, availableAt } = (await queued.json()) as { id: string; availableAt: string }
    // Responses say by the clock that the delay has ended; maintenance lets workers have the run.
    const isDelayed = "SELECT 1 FROM runs WHERE id = ? AND status = 'queued' AND delayed = 1"
    await fleet.withStore(({ read }) =>
      vi.waitUntil(async () => (await read.all(isDelayed, [id])).length === 0, { timeout: 2 * leaseMilliseconds }),
    )
    return Date.now() - Date.parse(availableAt)
  }
  expect(await lateness()).toBeLessThan(slackMilliseconds)

  // Killed: its lease expires.
  const owner = () => counts().lastIndexOf(Math.max(...counts()))
  const [killed] = members.splice(owner(), 1)
  await killed?.kill()
  const survivors = sum()
  expect(await lateness()).toBeLessThan(leaseMilliseconds + slackMilliseconds)
  await vi.waitUntil(() => sum() === survivors + 1, { timeout: slackMilliseconds })

  // Stopped: it releases the lease.
  const [stopped] = members.splice(owner(), 1)
  const startedAt = performance.now()
  stopped?.signal('SIGTERM')
  await vi.waitUntil(() => members.some((member) => member.logged(begins) > 0), { timeout: leaseMilliseconds })
  expect(performance.now() - startedAt).toBeLessThan(leaseMilliseconds)

  // Paused: it learns that it has lost the lease when it continues.
  members.push(await fleet.api())
  const paused = members[0]
  paused?.signal('SIGSTOP')
  expect(await lateness()).toBeLessThan(leaseMilliseconds + slackMilliseconds)
  paused?.signal('SIGCONT')
  await delay(leaseMilliseconds)
  const lease = await fleet.withStore(({ read }) => read.query.selectFrom('leases').selectAll().executeTakeFirst())
  expect(lease?.owner).toMatch(new RegExp(` ${members[1]?.pid}$`))
})
