/** P5: a kill during a claim or a completion of several runs loses, doubles and strands none of them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { leaseSeconds } from '../../support/claims.ts'
import { type Domain, newAccount, newDirectory, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { killRepeatedly } from '../../support/killed-processes.ts'
import { startProcess } from '../../support/processes.ts'
import { stores } from '../../support/store-kinds.ts'
import { record } from '../figures.ts'

const kills = process.env.TEST_SET === 'reliability' ? 1000 : 20
/** Processes at the same time. */
const processes = 4
/** Time from the start of a process until it is killed. */
const lifeMilliseconds = { min: 10, max: 200 }
const queuedRunsMin = 200
const minutesMax = 60

interface Harness {
  domain: Domain
  start(): ReturnType<typeof startProcess>
  ids: string[]
}

/** Keeps runs waiting, and returns those of killed processes to the queue, until the signal aborts. */
async function feed({ domain, ids }: Harness, signal: AbortSignal): Promise<void> {
  const { principal } = await newAccount(domain)
  while (!signal.aborted) {
    const depth = await domain.store.read.all<{ status: string; count: number }>(
      "SELECT status, COUNT(*) AS count FROM runs WHERE status IN ('queued', 'running') GROUP BY status",
      [],
    )
    const queued = depth.find(({ status }) => status === 'queued')?.count ?? 0
    if (queued < queuedRunsMin) {
      const added = await Promise.all(Array.from({ length: queuedRunsMin }, () => queueRun(domain, principal)))
      ids.push(...added.map(({ id }) => id))
    }
    await domain.maintenance.once()
    await delay(20)
  }
}

/** Executes the remaining runs. */
async function drain({ domain, start }: Harness): Promise<void> {
  await start()
  const unfinished = "SELECT id FROM runs WHERE status IN ('queued', 'running') LIMIT 1"
  const deadline = performance.now() + 10 * leaseSeconds * 1000
  while ((await domain.store.read.all(unfinished, [])).length > 0) {
    if (performance.now() > deadline) throw new Error('Runs are left queued or running.')
    await domain.maintenance.once()
    await delay(20)
  }
}

interface Completion {
  id: string
  workerId: string
  attempt: number
}

function readLedger(path: string): Completion[] {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const [id = '', workerId = '', attempt] = line.split(' ')
    return { id, workerId, attempt: Number(attempt) }
  })
}

/** Compares the rows and their events with what was queued, and with the completions that were confirmed. */
async function examine({ domain, ids }: Harness, confirmed: readonly Completion[]) {
  const { query } = domain.store.read
  const rows = await query.selectFrom('runs').select(['id', 'status', 'reason', 'attempts', 'output']).execute()
  const events = await query.selectFrom('run_events').select(['run_id', 'type', 'data']).execute()
  const runs = new Map(rows.map((row) => [row.id, row]))
  const eventsByRun = Map.groupBy(events, ({ run_id }) => run_id)
  const countOf = (id: string, status: string) =>
    (eventsByRun.get(id) ?? []).filter(({ type, data }) => type === 'status' && JSON.parse(data).status === status)
      .length
  /** A run whose worker is lost too often fails. */
  const hasEnded = (id: string) => {
    const { status, reason } = runs.get(id) ?? {}
    return status === 'succeeded' || (status === 'failed' && reason === 'workerLost')
  }
  const isStored = ({ id, workerId, attempt }: Completion) =>
    runs.get(id)?.output === JSON.stringify({ workerId, attempt })
  return {
    unfinished: ids.filter((id) => !hasEnded(id)),
    /** Confirmed, but not the stored outcome. */
    lost: confirmed.filter((each) => !isStored(each)),
    confirmedTwice: confirmed.length - new Set(confirmed.map(({ id }) => id)).size,
    finishedTwice: ids.filter((id) => countOf(id, 'succeeded') + countOf(id, 'failed') !== 1),
    attemptsWithoutEvent: ids.filter((id) => countOf(id, 'running') !== runs.get(id)?.attempts),
    repeated: rows.filter(({ attempts }) => attempts > 1).length,
    givenUp: rows.filter(({ status }) => status === 'failed').length,
  }
}

async function open(test: Test, kind: (typeof stores)[number]): Promise<Harness & { ledger: string }> {
  const domain = await openDomain(test, { kind })
  const ledger = join(await newDirectory(test), 'ledger')
  const module = new URL('./complete-batches.ts', import.meta.url)
  return { domain, ledger, ids: [], start: () => startProcess(test, module, [kind.name, domain.location, ledger]) }
}

test.concurrent.for(stores)(
  `${kills} kills during batched claims and completions lose and repeat no outcome ($name)`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const harness = await open(test, kind)
    const stop = new AbortController()
    const feeding = feed(harness, stop.signal)
    await killRepeatedly(harness.start, { kills, processes, lifeMilliseconds, seed: 16 })
    stop.abort()
    await feeding
    await drain(harness)
    const confirmed = readLedger(harness.ledger)
    const { repeated, givenUp, ...violations } = await examine(harness, confirmed)
    record({
      promise: 'P5',
      store: kind.name === 'sqlite' ? 'embedded' : 'PostgreSQL',
      fault: 'kill -9 during batched claims and completions',
      figures: {
        acknowledged: harness.ids.length,
        killed: kills,
        lost: violations.lost.length + violations.unfinished.length,
        duplicated: violations.confirmedTwice + violations.finishedTwice.length,
      },
      remark: `${confirmed.length} completions confirmed, ${repeated} runs started more than once, ${givenUp} failed after too many lost workers`,
    })
    expect(violations).toEqual({
      unfinished: [],
      lost: [],
      confirmedTwice: 0,
      finishedTwice: [],
      attemptsWithoutEvent: [],
    })
    expect(repeated).toBeGreaterThan(0)
  },
)
