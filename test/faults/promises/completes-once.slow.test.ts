/** P5, P6: a run completes once, even if its workers are killed, and runs of a dead worker run again within 30 s. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { settings } from '../../../src/config/config.ts'
import { type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { until } from '../../support/service.ts'
import { record } from '../figures.ts'

const runs = 200
const workers = 4
const disturbances = 16
const leaseSeconds = 3
const seed = 20

function marksIn(fleet: Fleet): string {
  const directory = join(fleet.storage.directory, 'marks')
  mkdirSync(directory)
  return directory
}

async function queueMarks(url: string, key: string, count: number, directory: string, milliseconds: number) {
  const responses = await Promise.all(
    Array.from({ length: count }, () => queueRun(url, key, 'mark', { directory, milliseconds })),
  )
  return responses.flatMap((response) => response?.id ?? [])
}

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** Freezes and kills workers at pseudo-random times, and replaces killed ones. */
async function disturb(fleet: Fleet, members: Member[]) {
  const number = seededRandom(seed)
  const counts = { frozen: 0, killed: 0 }
  const freeze = async (member: Member) => {
    counts.frozen += 1
    member.signal('SIGSTOP')
    await wait((leaseSeconds + 1 + number()) * 1000)
    member.signal('SIGCONT')
    members.push(member)
  }
  const replace = async (member: Member) => {
    counts.killed += 1
    await member.kill()
    members.push(await fleet.worker())
  }
  const disturbing: Promise<void>[] = []
  for (let count = 0; count < disturbances; count += 1) {
    await wait(300 + number() * 600)
    const [victim] = members.splice(Math.floor(number() * members.length), 1)
    if (victim) disturbing.push(number() < 0.5 ? freeze(victim) : replace(victim))
  }
  await Promise.all(disturbing)
  return counts
}

describe.concurrent.each(fleetStores)('on the store "$name"', (kind) => {
  test('no run completes twice while its workers are frozen past their lease and killed', async (test) => {
    const fleet = await newFleet(test, kind, { settings: { LEASE_SECONDS: String(leaseSeconds) } })
    const { key } = await fleet.createAccount()
    const api = await fleet.api()
    const members = await Promise.all(Array.from({ length: workers }, () => fleet.worker()))
    const directory = marksIn(fleet)
    const ids = await queueMarks(api.executionUrl, key, runs, directory, 1000)
    const { frozen, killed } = await disturb(fleet, members)
    const outcome = await fleet.withStore((store) => waitForOutcome(store, ids))
    const { lost, duplicated, succeeded, unsuccessful, attempts } = outcome
    const marks = ids.map((id) => readFileSync(join(directory, id), 'utf8'))
    const repeated = marks.filter((text) => text.split('started').length > 2).length
    record({
      promise: 'P5',
      store: kind.name,
      fault: `${workers} workers frozen past their lease and killed`,
      figures: { acknowledged: ids.length, killed, lost, duplicated },
      remark: `${frozen} times frozen, ${attempts} attempts, ${repeated} runs started more than once`,
    })
    // A run that loses its worker too often fails.
    const givenUp = unsuccessful.filter((each) => each === 'failed, workerLost, null')
    expect({ lost, duplicated, ended: succeeded + givenUp.length }).toEqual({ lost: 0, duplicated: 0, ended: runs })
    expect(givenUp.length).toBeLessThan(runs / 10)
    expect(killed).toBeGreaterThan(2)
    expect(frozen).toBeGreaterThan(2)
    expect(repeated).toBeGreaterThan(0)
  })

  test.for([String(leaseSeconds), settings.LEASE_SECONDS.default ?? ''])(
    'the runs of a killed worker are running again within 30 seconds, with a lease of %s s',
    async (lease, test) => {
      const fleet = await newFleet(test, kind, { settings: { LEASE_SECONDS: lease } })
      const { key } = await fleet.createAccount()
      const api = await fleet.api()
      const killed = await fleet.worker()
      const directory = marksIn(fleet)
      const ids = await queueMarks(api.executionUrl, key, 4, directory, 60_000)
      const reads = (id: string, line: string) =>
        existsSync(join(directory, id)) && readFileSync(join(directory, id), 'utf8').includes(line)
      await until('all of them have started', () => ids.every((id) => reads(id, 'started 1')))
      const other = await fleet.worker()
      await killed.kill()
      const killedAt = performance.now()
      await until('all of them have started again', () => ids.every((id) => reads(id, 'started 2')))
      const seconds = (performance.now() - killedAt) / 1000
      const fault = `kill -9 of a worker, lease of ${lease} s`
      record({ promise: 'P6', store: kind.name, fault, figures: { killed: 1, seconds } })
      expect(seconds).toBeLessThan(30)
      expect(other.hasEnded()).toBe(false)
    },
  )
})
