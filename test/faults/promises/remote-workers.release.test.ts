/** P22: runs of workers outside of the service keep the promises while connections break and processes are killed. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.ts'
import { type ApiMember, type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, readOutcome } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { record } from '../figures.ts'

const isReliability = process.env.TEST_SET === 'reliability'
const kills = isReliability ? 200 : 20
const runs = isReliability ? 400 : 60
const workers = { node: 3, python: 3 }
/** A kill ends as many attempts. */
const slots = 2
const apis = 2
const faults = { latencyMilliseconds: 200, resetShare: 0.05, seed: 22 }
const leaseSeconds = 3
/** From one kill to the next, on average: processes live for longer than most runs take. */
const killMilliseconds = 850
const drainMinutesMax = 4
/** Of kills: most are of workers. */
const apiShare = 0.15
const module = fileURLToPath(new URL('./python/record.py', import.meta.url))
const hasPython = spawnSync('python3', ['-c', 'import sys; assert sys.version_info >= (3, 9)']).status === 0

interface Processes {
  apis: ApiMember[]
  workers: { kind: 'node' | 'python'; member: Member | undefined }[]
}

function startWorker(fleet: Fleet, kind: 'node' | 'python', url: string, key: string): Promise<Member> {
  return kind === 'node' ? fleet.remoteWorker({ url, key, slots }) : fleet.pythonWorker({ url, key, slots, module })
}

/** A process that is being replaced may be killed before it is ready, and its start may meet a broken connection. */
async function restart<Started>(start: () => Promise<Started>): Promise<Started> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await start()
    } catch (error) {
      if (tries === 10) throw error
    }
  }
}

/** Kills processes in a pseudo-random order, and replaces them meanwhile. */
async function disturb(fleet: Fleet, processes: Processes, url: string, key: string, random: () => number) {
  const replacing = new Set<Promise<void>>()
  let killed = 0
  while (killed < kills) {
    await delay(killMilliseconds * (0.6 + 0.8 * random()))
    const isApi = random() < apiShare
    if (isApi && processes.apis.length > 1) {
      const [api] = processes.apis.splice(Math.floor(random() * processes.apis.length), 1)
      await api?.kill()
      const replaced = restart(() => fleet.api({ settings: { WORKFLOWS_DIR: '' } })).then((started) => {
        processes.apis.push(started)
      })
      replacing.add(replaced.finally(() => replacing.delete(replaced)))
      killed += 1
      continue
    }
    const alive = processes.workers.filter(({ member }) => member)
    const worker = alive[Math.floor(random() * alive.length)]
    if (!worker) continue
    const { member } = worker
    worker.member = undefined
    await member?.kill()
    killed += 1
    const replaced = restart(() => startWorker(fleet, worker.kind, url, key)).then((started) => {
      worker.member = started
    })
    replacing.add(replaced.finally(() => replacing.delete(replaced)))
  }
  await Promise.all(replacing)
}

/** Queues a run, and answers what it will wait for. Returns its id if the 202 has arrived. */
async function queueAndAnswer(api: () => string, key: string, workflowId: string, file: string, value: number) {
  const queued = await queueRun(api(), key, workflowId, { file })
  if (!queued?.id) return undefined
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ value })
  for (;;) {
    const url = `${api()}/v1/execution/runs/${queued.id}/waits/answer`
    const response = await fetch(url, { method: 'PUT', headers, body }).catch(() => undefined)
    if (response?.status === 200) return queued.id
    if (response && response.status < 500) throw new Error(`${response.status} ${await response.text()}`)
    await delay(50)
  }
}

interface Acknowledged {
  id: string
  file: string
  value: number
}

/** Contradictions between what the store has of the runs and what their workflows recorded. */
async function examine(fleet: Fleet, acknowledged: readonly Acknowledged[]) {
  const violations: string[] = []
  await fleet.withStore(async ({ read }) => {
    for (const { id, file, value } of acknowledged) {
      const [run] = await read.query.selectFrom('runs').select(['status', 'output']).where('id', '=', id).execute()
      const events = read.query.selectFrom('run_events').select(['type', 'data']).where('run_id', '=', id)
      const steps = (await events.where('type', '=', 'step').execute()).map(({ data }) => JSON.parse(data))
      const finished = steps.filter(({ state }) => state === 'finished').map(({ name }) => name as string)
      if (new Set(finished).size !== finished.length) violations.push(`${id} stored a step twice: ${finished}`)
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
      const words = lines.map((line) => line.split(' '))
      for (const name of ['first', 'second']) {
        const tokens = (what: string) =>
          words.flatMap(([kind, step, token]) => (kind === what && step === name ? token : []))
        const seen = new Set(tokens('seen'))
        if (seen.size > 1) violations.push(`${id} got different results of ${name}: ${[...seen]}`)
        for (const token of seen) if (!tokens('done').includes(token)) violations.push(`${id} got an invented ${name}`)
        if (run?.status !== 'succeeded') continue
        if (!seen.has(JSON.parse(run.output ?? '{}')[name])) violations.push(`${id} returned another ${name}`)
      }
      if (run?.status !== 'succeeded') continue
      const output = JSON.parse(run.output ?? '{}')
      if (output.answer !== value) violations.push(`${id} got the answer ${output.answer}`)
      const [artifact] = await read.query.selectFrom('artifacts').selectAll().where('run_id', '=', id).execute()
      if (Buffer.from(artifact?.content ?? []).toString() !== output.first)
        violations.push(`${id} has another artifact`)
      const logs = (await events.where('type', '=', 'log').execute()).map(({ data }) => JSON.parse(data))
      if (!logs.some(({ message }) => message === `The first token is ${output.first}`))
        violations.push(`${id} has no line of its log`)
    }
  })
  return violations
}

/** Connections go on breaking meanwhile. */
async function waitUntilEnded(fleet: Fleet, ids: readonly string[]) {
  return fleet.withStore(async (store) => {
    for (const end = performance.now() + drainMinutesMax * 60_000; ; ) {
      const outcome = await readOutcome(store, ids)
      if (outcome.unfinished === 0 || performance.now() > end) return outcome
      await delay(200)
    }
  })
}

/** Rows of runs that have not ended, with their waits, their last events and the workers. */
async function describeUnfinished(fleet: Fleet) {
  return fleet.withStore(async ({ read }) => {
    const rows = await read.query.selectFrom('runs').selectAll().where('finished_at', 'is', null).execute()
    const ids = rows.map(({ id }) => id)
    const waits = await read.query.selectFrom('run_waits').selectAll().where('run_id', 'in', ids).execute()
    const events = await read.query.selectFrom('run_events').selectAll().where('run_id', 'in', ids).execute()
    return { now: Date.now(), rows, waits, events: events.slice(-30).map(({ type, data }) => `${type} ${data}`) }
  })
}

function remarkOf({ resets }: FaultProxy, repeated: number, givenUp: number): string {
  return `${resets.before} requests reset before the service got them, ${resets.after} after it had responded; ${repeated} attempts repeated, ${givenUp} failed after too many lost workers`
}

test.concurrent.for(fleetStores)(
  `runs of remote workers end once through ${kills} kills, latency and broken connections, on the store "$name"`,
  { timeout: 15 * 60_000 },
  async (kind, test) => {
    const fleet = await newFleet(test, kind, { settings: { LEASE_SECONDS: String(leaseSeconds) } })
    const { key } = await fleet.createAccount()
    const processes: Processes = { apis: [], workers: [] }
    for (let count = 0; count < apis; count += 1) processes.apis.push(await fleet.api())
    const targets = () => processes.apis.map(({ executionUrl }) => executionUrl)
    const proxy = await startFaultProxy(test, targets, faults)
    const kinds = hasPython ? (['node', 'python'] as const) : (['node'] as const)
    for (const kind of kinds)
      for (let count = 0; count < workers[kind]; count += 1)
        processes.workers.push({ kind, member: await restart(() => startWorker(fleet, kind, proxy.url, key)) })
    const directory = join(fleet.storage.directory, 'records')
    mkdirSync(directory)
    const random = seededRandom(22)
    const api = () => targets()[Math.floor(random() * targets().length)] as string
    const acknowledged: Acknowledged[] = []
    const queueAll = async () => {
      for (let count = 0; count < runs; count += 1) {
        const file = join(directory, String(count))
        const workflowId = hasPython && count % 2 === 1 ? 'python-record' : 'record'
        const id = await queueAndAnswer(api, key, workflowId, file, count)
        if (id) acknowledged.push({ id, file, value: count })
        await delay((kills * killMilliseconds) / runs)
      }
    }
    await Promise.all([queueAll(), disturb(fleet, processes, proxy.url, key, random)])
    const outcome = await waitUntilEnded(
      fleet,
      acknowledged.map(({ id }) => id),
    )
    const { lost, duplicated, unfinished, succeeded, unsuccessful, attempts } = outcome
    const violations = await examine(fleet, acknowledged)
    // A run that loses its worker too often fails. About half of the attempts lose theirs.
    const isGivenUp = (end: string) => end === 'failed, workerLost, null'
    const givenUp = unsuccessful.filter(isGivenUp)
    record({
      promise: 'P22',
      store: kind.name,
      fault: `${kills} kills of remote workers and APIs, 200 ms of latency, 5 % of connections reset before and after the service acted`,
      figures: { acknowledged: acknowledged.length, killed: kills, lost, duplicated },
      remark: remarkOf(proxy, attempts - acknowledged.length, givenUp.length),
    })
    expect({ lost, duplicated, unfinished: unfinished && (await describeUnfinished(fleet)), violations }).toEqual({
      lost: 0,
      duplicated: 0,
      unfinished: 0,
      violations: [],
    })
    expect(unsuccessful.filter((each) => !isGivenUp(each))).toEqual([])
    expect(succeeded + givenUp.length).toBe(acknowledged.length)
    expect(givenUp.length).toBeLessThan(runs / 5)
    expect(acknowledged.length).toBeGreaterThan(runs / 2)
    expect(Math.min(proxy.resets.before, proxy.resets.after)).toBeGreaterThan(0)
  },
)
