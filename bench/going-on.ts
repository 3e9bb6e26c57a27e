/**
 * Measures how soon a run goes on after its answer, and what a call costs, with an API process and a worker. The CPU time
 * is that of both and of the database.
 */
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Domain, newAccount, newDirectory, type Test } from '../test/support/domain.ts'
import { megabytesOf } from '../test/support/process-memory.ts'
import { median } from './figures.ts'
import { cpuSeconds, type Installation, startInstallation } from './separate-processes.ts'

const latencyRounds = 60
const intervalMilliseconds = 30
const costRounds = 9
/** Runs that call, and calls of each. */
const shapes = [
  [300, 1],
  [15, 20],
] as const

const now = () => performance.timeOrigin + performance.now()

/** Processes on the store of the domain, which the domain keeps open. */
export async function startOn({ location }: Domain, test: Test): Promise<Installation> {
  const isUrl = location.startsWith('postgres')
  return startInstallation(
    {
      ...(isUrl && { DATABASE_URL: location }),
      DATA_DIR: isUrl ? await newDirectory(test) : location,
      ENCRYPTION_KEY: hash('sha256', location, 'buffer').toString('base64'),
    },
    { apis: 1, workers: 1 },
  )
}

/** Of both processes, once they are idle. */
export async function residentMegabytes({ apiPids, workerPids }: Installation): Promise<number> {
  await delay(3000)
  return [...apiPids, ...workerPids].reduce((sum, pid) => sum + megabytesOf({ pid }), 0)
}

type Call = (method: string, path: string, body?: object) => Promise<{ json: { id: string }; at: number }>

export async function measureGoingOn(domain: Domain, test: Test, databasePid?: number): Promise<string[]> {
  const { key } = await newAccount(domain)
  const installation = await startOn(domain, test)
  try {
    const call: Call = async (method, path, body) => {
      const response = await fetch(`${installation.executionUrls[0]}/v1/execution/${path}`, {
        method,
        headers: { authorization: `Bearer ${key.value}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const at = now()
      if (!response.ok) throw new Error(await response.text())
      return { json: (await response.json()) as { id: string }, at }
    }
    const { apiPids, workerPids } = installation
    const pids = [...apiPids, ...workerPids, ...(databasePid === undefined ? [] : [databasePid])]
    const starts = await measureLatencies(domain, call)
    const costs = []
    for (const [runs, calls] of shapes) costs.push(...(await measureCosts(domain, pids, call, runs, calls)))
    return [...starts, ...costs]
  } finally {
    await installation.stop()
  }
}

const queue = (call: Call, workflowId: string, variableData: object) =>
  call('PUT', `queue-remote/${workflowId}`, { variableData })

async function untilIdle({ store }: Domain): Promise<void> {
  const unfinished = store.read.query.selectFrom('runs').select('id').where('finished_at', 'is', null).limit(1)
  while (await unfinished.executeTakeFirst()) await delay(20)
}

/** From the response to the first line, alternately of a new run and after a wait. */
async function measureLatencies(domain: Domain, call: Call): Promise<string[]> {
  const waiting = []
  for (let round = 0; round < latencyRounds; round += 1)
    waiting.push((await queue(call, 'wait-and-call', { how: 'answer' })).json.id)
  const isLeft = domain.store.read.query.selectFrom('runs').select('id').where('status', '<>', 'waiting').limit(1)
  while (await isLeft.executeTakeFirst()) await delay(20)
  const responses: [kind: 'started' | 'wentOn', id: string, at: number][] = []
  for (const id of waiting) {
    const { json, at } = await queue(call, 'first-line', {})
    responses.push(['started', json.id, at])
    await delay(intervalMilliseconds)
    const answered = await call('PUT', `runs/${id}/waits/answer`, { value: 1 })
    responses.push(['wentOn', id, answered.at])
    await delay(intervalMilliseconds)
  }
  await untilIdle(domain)
  const rows = await domain.store.read.query.selectFrom('runs').select(['id', 'output']).execute()
  const outputs = new Map(rows.map(({ id, output }) => [id, Number(output)]))
  // The first of each kind compile and plan.
  const latencies = (kind: 'started' | 'wentOn') =>
    responses.filter((each) => each[0] === kind).map(([, id, at]) => (outputs.get(id) ?? Number.NaN) - at)
  const [started, wentOn] = [latencies('started').slice(5), latencies('wentOn').slice(5)].map(median) as [
    number,
    number,
  ]
  return [`${started.toFixed(1)} ms`, `${wentOn.toFixed(1)} ms`, (wentOn / started).toFixed(2)]
}

interface Cost {
  cpu: number
  milliseconds: number
}

/** Runs that call others, divided by the same number of runs with steps, and others that are queued. */
async function measureCosts(
  domain: Domain,
  pids: readonly number[],
  call: Call,
  runs: number,
  calls: number,
): Promise<string[]> {
  const measure = async (act: () => Promise<unknown>): Promise<Cost> => {
    const [before, startedAt] = [cpuSeconds(pids), performance.now()]
    await act()
    await untilIdle(domain)
    const milliseconds = performance.now() - startedAt
    return { cpu: cpuSeconds(pids) - before, milliseconds }
  }
  const queueAll = (count: number, workflowId: string, variables: object) =>
    Promise.all(Array.from({ length: count }, () => queue(call, workflowId, variables)))
  const ratios: Cost[] = []
  for (let round = 0; round <= costRounds; round += 1) {
    const called = await measure(() => queueAll(runs, 'wait-and-call', { how: 'call', count: calls }))
    const queued = await measure(() =>
      Promise.all([
        queueAll(runs, 'wait-and-call', { how: 'step', count: calls }),
        queueAll(runs * calls, 'first-line', {}),
      ]),
    )
    if (round > 0)
      ratios.push({ cpu: called.cpu / queued.cpu, milliseconds: called.milliseconds / queued.milliseconds })
  }
  return [median(ratios.map(({ cpu }) => cpu)), median(ratios.map(({ milliseconds }) => milliseconds))].map((each) =>
    each.toFixed(2),
  )
}
