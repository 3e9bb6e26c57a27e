/** Measures what a run with ten secrets costs, compared with one without, with an API process and a worker. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Domain, newAccount, type Test } from '../test/support/domain.ts'
import { onEachStore } from './bench-domain.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { startOn } from './going-on.ts'
import { cpuSeconds, type Installation } from './separate-processes.ts'

const rounds = 15
const runsOfRound = 300
/** Runs of one round that are queued at the same time. */
const parallel = 20

export async function secrets({ stores }: BenchOptions): Promise<void> {
  const rows = await onEachStore(stores, measure)
  print(table([['store', 'run: CPU', 'with ten secrets', 'ratio', 'run: time', 'with ten secrets', 'ratio'], ...rows]))
}

async function measure(domain: Domain, test: Test): Promise<string[]> {
  const { key } = await newAccount(domain)
  const installation = await startOn(domain, test)
  const call = async (path: string, body: object) => {
    const response = await fetch(`${installation.executionUrls[0]}/v1/execution/${path}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key.value}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(await response.text())
  }
  try {
    for (let index = 0; index < 10; index += 1)
      await call(`secrets/SECRET_${index}`, { value: `${crypto.randomUUID()}${crypto.randomUUID()}` })
    const costs = { 'first-line': [] as Cost[], 'ten-secrets': [] as Cost[] }
    for (let round = 0; round <= rounds; round += 1) {
      // Alternately first, so that what changes with time counts for both.
      const order = ['first-line', 'ten-secrets'] as const
      for (const id of round % 2 === 0 ? order : order.toReversed()) {
        const cost = await measureRuns(domain, installation, () => call(`queue-remote/${id}`, { variableData: {} }))
        if (round > 0) costs[id].push(cost)
      }
    }
    return describe(costs['first-line'], costs['ten-secrets'])
  } finally {
    await installation.stop()
  }
}

interface Cost {
  microseconds: number
  milliseconds: number
}

async function measureRuns(
  { store }: Domain,
  { apiPids, workerPids }: Installation,
  queue: () => Promise<void>,
): Promise<Cost> {
  const pids = [...apiPids, ...workerPids]
  const [before, startedAt] = [cpuSeconds(pids), performance.now()]
  for (let left = runsOfRound; left > 0; left -= parallel) await Promise.all(Array.from({ length: parallel }, queue))
  const unfinished = store.read.query.selectFrom('runs').select('id').where('finished_at', 'is', null).limit(1)
  while (await unfinished.executeTakeFirst()) await delay(5)
  const milliseconds = (performance.now() - startedAt) / runsOfRound
  return { microseconds: ((cpuSeconds(pids) - before) * 1e6) / runsOfRound, milliseconds }
}

function describe(plain: readonly Cost[], secret: readonly Cost[]): string[] {
  return (['microseconds', 'milliseconds'] as const).flatMap((unit) => {
    const [a, b] = [plain, secret].map((costs) => median(costs.map((each) => each[unit]))) as [number, number]
    const digits = unit === 'microseconds' ? 0 : 2
    const suffix = unit === 'microseconds' ? 'µs' : 'ms'
    return [`${a.toFixed(digits)} ${suffix}`, `${b.toFixed(digits)} ${suffix}`, (b / a).toFixed(3)]
  })
}
