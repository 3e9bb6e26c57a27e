/** P21: an answer that got 200 resumes its run exactly once, whatever happens to processes and clocks, and none is invented. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import { newDirectory } from '../../support/domain.ts'
import { type ApiMember, type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../../support/ledger.ts'
import { newDisk, whyPowerCutsFail } from '../../support/mounts.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { until } from '../../support/service.ts'
import { writtenSnapshot } from '../../support/snapshots.ts'
import { record } from '../figures.ts'

const kills = process.env.TEST_SET === 'reliability' ? 200 : 10
const runs = process.env.TEST_SET === 'reliability' ? 400 : 60
/** Runs that get no answer. */
const silent = 10
const workers = 3
const minutesMax = 40
const deployments = 10
const jumps = process.env.TEST_SET === 'reliability' ? 5 : 1
/** Every tenth process stops as in an upgrade, the others are killed. */
const stopped = 0.1
const day = 86_400_000
const clock = new URL('./stepping-clock.ts', import.meta.url)

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** Sends an answer until it gets 200, and counts the answers of this run that were refused as others. */
async function answer(api: () => ApiMember, key: string, runId: string, value: number): Promise<void> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  for (;;) {
    const put = (body: object) =>
      fetch(`${api().executionUrl}/v1/execution/runs/${runId}/waits/answer`, {
        method: 'PUT',
        headers,
        body: JSON.stringify(body),
      }).catch(() => undefined)
    const response = await put({ value })
    if (response?.status === 200) {
      const other = await put({ value: value + 1 })
      if (other && other.status < 500) expect(other.status).toBe(409)
      return
    }
    if (response && response.status < 500) throw new Error(`${response.status} ${await response.text()}`)
    await wait(50)
  }
}

/** Later code of the workflow, which runs that are queued before must not execute. */
async function deploy(fleet: Fleet, patch: number): Promise<void> {
  const version = `1.0.${patch}`
  const waits = `{ answer: { schema: { type: 'integer' } } }`
  const snapshot = writtenSnapshot({
    ask: {
      version,
      module: `export default { waits: ${waits}, run: async ({ variables, waitFor }) =>
        variables.double !== undefined ? 2 * variables.double : { version: '${version}', ...await waitFor('answer') } }`,
      waits: { answer: { schema: { type: 'integer' }, title: null, description: null } },
    },
  })
  const options = { accountId: null, by: operator, directory: '/workflows' }
  await fleet.withStore((store) => new Deployments(store).deploy(snapshot, options))
}

/**
 * Ends workers and the API in a pseudo-random order, and replaces them. In between, deploys other versions, and lets the
 * clock of all processes jump a day forward and back.
 */
async function disturb(fleet: Fleet, clockFile: string, members: Member[], api: Replaceable, random: () => number) {
  for (let count = 0; count < kills; count += 1) {
    await wait(200 + random() * 400)
    if (count % (kills / deployments) === 0) await deploy(fleet, 1 + count / (kills / deployments))
    if (count % (kills / jumps) === Math.floor(kills / jumps / 2)) await jump(clockFile)
    const index = Math.floor(random() * members.length)
    const isApi = random() < 0.2
    const ended = isApi ? api.current : members[index]
    if (random() < stopped) {
      ended?.signal('SIGTERM')
      await ended?.ended
    } else await ended?.kill()
    // The directory of the fleet must not become current again.
    if (isApi) api.current = await fleet.api({ settings: { WORKFLOWS_DIR: '' } })
    else members[index] = await fleet.worker()
  }
}

interface Replaceable {
  current: ApiMember
}

/** Leases of a day from now would keep the runs of a killed worker, so processes extend theirs before any is killed. */
async function jump(clockFile: string): Promise<void> {
  writeFileSync(clockFile, String(day))
  await wait(3000)
  writeFileSync(clockFile, '0')
  await wait(3000)
}

interface Counted {
  run_id: string
  name: string
  count: number
}

/** What went on more or less often than once. */
async function examine(fleet: Fleet, ids: readonly string[]) {
  return fleet.withStore(async ({ read }) => {
    const events = await read.all<{ run_id: string; data: string }>(
      "SELECT run_id, data FROM run_events WHERE type = 'step' ORDER BY run_id, sequence",
      [],
    )
    const finished = new Map<string, number>()
    for (const { run_id, data } of events) {
      const { name, state, wait: kind } = JSON.parse(data)
      if (kind && state === 'finished') finished.set(`${run_id} ${name}`, (finished.get(`${run_id} ${name}`) ?? 0) + 1)
    }
    const expected = ids.flatMap((id) => ['answer', 'pause', 'double'].map((name) => `${id} ${name}`))
    const children = await read.all<Counted>(
      'SELECT parent_run_id AS run_id, COUNT(*) AS count FROM runs WHERE parent_run_id IS NOT NULL GROUP BY parent_run_id',
      [],
    )
    const outputs = await read.all<{ id: string; output: string }>(
      'SELECT id, output FROM runs WHERE output IS NOT NULL',
      [],
    )
    return {
      missing: expected.filter((each) => !finished.has(each)).length,
      repeated: [...finished.values()].filter((count) => count > 1).length,
      invented: [...finished.keys()].filter((each) => !expected.includes(each)).length,
      childrenMore: children.filter(({ count }) => Number(count) !== 1).length,
      outputs: new Map(outputs.map(({ id, output }) => [id, JSON.parse(output)])),
    }
  })
}

test.concurrent.for(fleetStores)(
  `an answer resumes its run once through ${kills} kills, deployments and clocks that jump, on the store "$name"`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const clockFile = join(await newDirectory(test), 'clock')
    writeFileSync(clockFile, '0')
    const stepped = { NODE_OPTIONS: `--import=${clock.href}`, CLOCK_STEP: clockFile }
    const fleet = await newFleet(test, kind, { settings: { LEASE_SECONDS: '3', ...stepped } })
    const { key } = await fleet.createAccount()
    const api = { current: await fleet.api() }
    const members = await Promise.all(Array.from({ length: workers }, () => fleet.worker()))
    const random = seededRandom(21)
    const queued = await Promise.all(
      Array.from({ length: runs + silent }, () => queueRun(api.current.executionUrl, key, 'ask', {})),
    )
    const all = queued.flatMap((response) => response?.id ?? [])
    const ids = all.slice(0, runs)
    const values = new Map(ids.map((id, index) => [id, index]))
    const span = kills * 500
    const answering = ids.map(async (id) => {
      // Some before the run has reached its wait.
      await wait(random() * span)
      await answer(() => api.current, key, id, values.get(id) as number)
    })
    await disturb(fleet, clockFile, members, api, random)
    await Promise.all(answering)
    const { lost, duplicated, succeeded } = await fleet.withStore((store) => waitForOutcome(store, ids))
    const { outputs, ...violations } = await examine(fleet, ids)
    record({
      promise: 'P21',
      store: kind.name,
      fault: `${kills} ends of processes, ${deployments} deployments and clocks that jump by a day while runs wait`,
      figures: {
        acknowledged: ids.length,
        killed: kills,
        lost: lost + violations.missing,
        duplicated: violations.repeated,
      },
      remark: `${jumps} jumps; ${violations.invented} invented; ${silent} runs without an answer still wait`,
    })
    expect({ lost, duplicated, succeeded, ...violations }).toEqual({
      ...{ lost: 0, duplicated: 0, succeeded: runs },
      ...{ missing: 0, repeated: 0, invented: 0, childrenMore: 0 },
    })
    for (const [id, value] of values) expect(outputs.get(id)).toEqual({ value, doubled: 2 * value })
    for (const id of all.slice(runs)) expect(outputs.has(id)).toBe(false)
  },
)

const cuts = 3
const fault = 'power cut while runs are answered (ext4 shut down without its journal)'
const refused = whyPowerCutsFail()

describe.each(fleetStores)('on the store "$name"', (kind) => {
  if (refused) record({ promise: 'P21', store: kind.name, fault, skipped: refused })

  test.skipIf(refused)('a power cut loses no answer', async (test) => {
    const disk = newDisk(test)
    const fleet = await newFleet(test, kind, { directory: disk.directory })
    const { key } = await fleet.createAccount()
    const random = seededRandom(22)
    const values = new Map<string, number>()
    const acknowledged = new Set<string>()
    const put = async ({ executionUrl }: ApiMember, id: string, value: number) => {
      const response = await fetch(`${executionUrl}/v1/execution/runs/${id}/waits/answer`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ value }),
      }).catch(() => undefined)
      if (response?.status === 200) acknowledged.add(id)
      // An answer whose response was lost may have been stored.
      else if (response && response.status < 500) throw new Error(`${response.status} ${await response.text()}`)
    }
    for (let cut = 1; cut <= cuts; cut += 1) {
      const api = await fleet.api({ worker: true })
      const queued = await Promise.all(Array.from({ length: 100 }, () => queueRun(api.executionUrl, key, 'ask', {})))
      const ids = queued.flatMap((response) => response?.id ?? [])
      expect(ids).toHaveLength(100)
      for (const id of ids) values.set(id, values.size)
      const before = acknowledged.size
      const answering = ids.map(async (id) => {
        await wait(random() * 1000)
        await put(api, id, values.get(id) as number)
      })
      await until('answers are stored', () => acknowledged.size >= before + 30)
      disk.cutPower()
      await Promise.all(answering)
      await fleet.kill()
      await fleet.storage.halt?.()
      disk.restorePower()
      await fleet.storage.resume?.()
    }
    const api = await fleet.api({ worker: true })
    const cutOff = [...values.keys()].filter((id) => !acknowledged.has(id))
    const confirmed = [...acknowledged]
    const { lost, duplicated } = await fleet.withStore((store) => waitForOutcome(store, confirmed))
    for (const id of cutOff) await put(api, id, values.get(id) as number)
    await fleet.withStore((store) => waitForOutcome(store, [...values.keys()]))
    const { outputs, ...violations } = await examine(fleet, [...values.keys()])
    const figures = { acknowledged: confirmed.length, lost, duplicated: duplicated + violations.repeated }
    record({
      promise: 'P21',
      store: kind.name,
      fault,
      figures,
      remark: `${cuts} cuts; ${violations.invented} invented`,
    })
    expect({ lost, duplicated, ...violations }).toEqual({
      ...{ lost: 0, duplicated: 0 },
      ...{ missing: 0, repeated: 0, invented: 0, childrenMore: 0 },
    })
    for (const [id, value] of values) expect(outputs.get(id)).toEqual({ value, doubled: 2 * value })
  })
})
