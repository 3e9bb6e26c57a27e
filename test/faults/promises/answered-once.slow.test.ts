/** P21: an answer that got 200 resumes its run exactly once, through kills of every process, and none is invented. */
import { expect, test } from 'vitest'
import { type ApiMember, type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { record } from '../figures.ts'

const kills = process.env.TEST_SET === 'reliability' ? 200 : 10
const runs = process.env.TEST_SET === 'reliability' ? 400 : 60
/** Runs that get no answer. */
const silent = 10
const workers = 3
const minutesMax = 40

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

/** Kills workers and the API in a pseudo-random order, and replaces them. */
async function disturb(fleet: Fleet, members: Member[], replaceApi: () => Promise<void>, random: () => number) {
  for (let count = 0; count < kills; count += 1) {
    await wait(200 + random() * 400)
    if (random() < 0.2) await replaceApi()
    else {
      const index = Math.floor(random() * members.length)
      await members[index]?.kill()
      members[index] = await fleet.worker()
    }
  }
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
  `an answer resumes its run once through ${kills} kills, on the store "$name"`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const fleet = await newFleet(test, kind, { settings: { LEASE_SECONDS: '3' } })
    const { key } = await fleet.createAccount()
    let api = await fleet.api()
    const members = await Promise.all(Array.from({ length: workers }, () => fleet.worker()))
    const random = seededRandom(21)
    const queued = await Promise.all(
      Array.from({ length: runs + silent }, () => queueRun(api.executionUrl, key, 'ask', {})),
    )
    const all = queued.flatMap((response) => response?.id ?? [])
    const ids = all.slice(0, runs)
    const values = new Map(ids.map((id, index) => [id, index]))
    const replaceApi = async () => {
      await api.kill()
      api = await fleet.api()
    }
    const span = kills * 500
    const answering = ids.map(async (id) => {
      // Some before the run has reached its wait.
      await wait(random() * span)
      await answer(() => api, key, id, values.get(id) as number)
    })
    await disturb(fleet, members, replaceApi, random)
    await Promise.all(answering)
    const { lost, duplicated, succeeded } = await fleet.withStore((store) => waitForOutcome(store, ids))
    const { outputs, ...violations } = await examine(fleet, ids)
    record({
      promise: 'P21',
      store: kind.name,
      fault: `${kills} kills of workers and the API while ${runs} runs wait, are answered, sleep and call another run`,
      figures: {
        acknowledged: ids.length,
        killed: kills,
        lost: lost + violations.missing,
        duplicated: violations.repeated,
      },
      remark: `${violations.invented} invented; ${silent} runs without an answer still wait`,
    })
    expect({ lost, duplicated, succeeded, ...violations }).toEqual({
      ...{ lost: 0, duplicated: 0, succeeded: runs },
      ...{ missing: 0, repeated: 0, invented: 0, childrenMore: 0 },
    })
    for (const [id, value] of values) expect(outputs.get(id)).toEqual({ value, doubled: 2 * value })
    for (const id of all.slice(runs)) expect(outputs.has(id)).toBe(false)
  },
)
