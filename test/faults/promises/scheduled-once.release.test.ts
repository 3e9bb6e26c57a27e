/** P18: kills and clocks that jump neither lose nor repeat a time of a schedule, in any number of processes. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Domain, newAccount, newDirectory, openDomain, type Test } from '../../support/domain.ts'
import { killRepeatedly } from '../../support/killed-processes.ts'
import { startProcess } from '../../support/processes.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { stores } from '../../support/store-kinds.ts'
import { record } from '../figures.ts'

const kills = process.env.TEST_SET === 'reliability' ? 500 : 20
/** Processes at the same time. */
const processes = 4
const lifeMilliseconds = { min: 10, max: 400 }
const schedules = 25
const intervalSeconds = 10
/** Of the processes' clock. */
const speed = 10
/** Forward less than the 100 times that `runAll` makes up for, in milliseconds of the processes' clock. */
const jump = { back: 120_000, forward: 300_000 }
const minutesMax = 30

/** The clock of all processes, in a file that is replaced at once. */
class SharedClock {
  readonly path: string
  #real = Date.now()
  #virtual = Date.parse('2026-11-23T10:00:00Z')

  constructor(directory: string) {
    this.path = join(directory, 'clock')
    this.jump(0)
  }

  now = (): number => Math.round(this.#virtual + (Date.now() - this.#real) * speed)

  jump(milliseconds: number): void {
    this.#virtual = this.now() + milliseconds
    this.#real = Date.now()
    const text = JSON.stringify({ real: this.#real, virtual: this.#virtual, speed })
    writeFileSync(`${this.path}.new`, text)
    renameSync(`${this.path}.new`, this.path)
  }
}

async function open(test: Test, kind: (typeof stores)[number]) {
  const directory = await newDirectory(test)
  const clock = new SharedClock(directory)
  const domain = await openDomain(test, { kind, now: clock.now })
  const ledger = join(directory, 'ledger')
  const module = new URL('./queue-scheduled.ts', import.meta.url)
  const start = () => startProcess(test, module, [kind.name, domain.location, clock.path, ledger])
  const errors = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : [])
  return { clock, domain, start, errors }
}

async function createSchedules(domain: Domain): Promise<void> {
  const { principal } = await newAccount(domain)
  for (let count = 0; count < schedules; count += 1) {
    const given = { workflowId: 'anything', variables: {}, intervalSeconds, missed: 'runAll' as const }
    await domain.schedules.create(principal.accountId, given, principal)
  }
}

async function isAnyDue({ store }: Domain, now: number): Promise<boolean> {
  const due = store.read.query.selectFrom('schedules').select('id').where('next_at', '<=', now)
  return (await due.executeTakeFirst()) !== undefined
}

/** Compares the runs with all times from the first one of each schedule to the last one that was decided. */
async function examine({ store }: Domain) {
  const rows = await store.read.query.selectFrom('schedules').selectAll().execute()
  const runs = await store.read.query.selectFrom('runs').select(['schedule_id', 'scheduled_for']).execute()
  const bySchedule = Map.groupBy(runs, ({ schedule_id }) => schedule_id)
  let [expected, missing, doubled, invented] = [0, 0, 0, 0]
  for (const { id, interval_starts_at, next_at } of rows) {
    const times = new Set<number>()
    const step = intervalSeconds * 1000
    for (let at = Number(interval_starts_at) + step; at < Number(next_at); at += step) times.add(at)
    const found = (bySchedule.get(id) ?? []).map(({ scheduled_for }) => Number(scheduled_for))
    const distinct = new Set(found)
    expected += times.size
    missing += [...times].filter((at) => !distinct.has(at)).length
    doubled += found.length - distinct.size
    invented += [...distinct].filter((at) => !times.has(at)).length
  }
  return { expected, runs: runs.length, violations: { missing, doubled, invented } }
}

test.concurrent.for(stores)(
  `each time of a schedule has one run through ${kills} kills and jumping clocks ($name)`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const { clock, domain, start, errors } = await open(test, kind)
    await createSchedules(domain)
    const stop = new AbortController()
    const random = seededRandom(18)
    let jumps = 0
    const jumping = (async () => {
      while (!stop.signal.aborted) {
        await delay(50 + random() * 150)
        // On a busy machine, more times could otherwise be due than `runAll` makes up for.
        if (await isAnyDue(domain, clock.now())) continue
        clock.jump(random() < 0.5 ? -random() * jump.back : random() * jump.forward)
        jumps += 1
      }
    })()
    await killRepeatedly(start, { kills, processes, lifeMilliseconds, seed: 18 })
    stop.abort()
    await jumping
    // The rest, by a process that is not killed.
    do await domain.scheduler.once()
    while (await isAnyDue(domain, clock.now()))
    const { expected, runs, violations } = await examine(domain)
    record({
      promise: 'P18',
      store: kind.name === 'sqlite' ? 'embedded' : 'PostgreSQL',
      fault: `${kills} kills while schedules are due, and clocks that jump back and forward`,
      figures: { acknowledged: expected, killed: kills, lost: violations.missing, duplicated: violations.doubled },
      remark: `${schedules} schedules, ${runs} runs, ${processes} processes, ${jumps} jumps; ${violations.invented} invented`,
    })
    expect(violations).toEqual({ missing: 0, doubled: 0, invented: 0 })
    expect(errors()).toEqual([])
    expect(expected).toBeGreaterThan(schedules * 10)
  },
)
