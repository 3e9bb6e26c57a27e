/** Callers that queue runs as fast as possible, the responses they got, and a comparison with the store. */
import { isFinal } from '../../src/domain/runs/run-state.ts'
import type { Store } from '../../src/storage/store.ts'
import { until } from './service.ts'

export interface Ledger {
  /** Ids of runs whose 202 response has arrived. */
  acknowledged: string[]
  /** Counts of statuses other than 202. */
  rejected: Map<number, number>
  /** Number of requests without a response. */
  withoutResponse: number
}

export interface CallersOptions {
  /** Read before each request, so that callers switch to replaced processes. */
  urls: () => readonly string[]
  key: string
  count?: number
  workflowId?: string
  variables?: (index: number) => object
}

export function newLedger(): Ledger {
  return { acknowledged: [], rejected: new Map(), withoutResponse: 0 }
}

/** Number of requests that did not return 202. */
export function failures({ rejected, withoutResponse }: Ledger): number {
  return [...rejected.values()].reduce((sum, count) => sum + count, withoutResponse)
}

/** Resolves when `count` runs are acknowledged in total. */
export async function untilAcknowledged(ledger: Ledger, count: number): Promise<void> {
  await until(`${count} runs are acknowledged`, () => ledger.acknowledged.length >= count)
}

/** Starts the callers. Returns a function that stops them and resolves when the ledger is complete. */
export function startCallers(
  ledger: Ledger,
  { urls, key, count = 8, workflowId = 'greet', variables = () => ({ name: 'Ada' }) }: CallersOptions,
): () => Promise<void> {
  let calling = true
  let sent = 0
  const call = async () => {
    while (calling) {
      sent += 1
      const all = urls()
      const url = all[sent % all.length] ?? ''
      const response = await queueRun(url, key, workflowId, variables(sent))
      if (response === undefined) ledger.withoutResponse += 1
      else if (response.status === 202 && response.id) ledger.acknowledged.push(response.id)
      else ledger.rejected.set(response.status, (ledger.rejected.get(response.status) ?? 0) + 1)
      // A busy loop of rejected requests would starve the other processes.
      if (response?.status !== 202) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const callers = Array.from({ length: count }, call)
  return async () => {
    calling = false
    await Promise.all(callers)
  }
}

export interface QueueResponse {
  status: number
  id: string | undefined
  replayed: boolean
}

/** Queues a run. The head of the response suffices, since it has the run's id. Returns `undefined` if the connection broke before. */
export async function queueRun(
  url: string,
  key: string,
  workflowId: string,
  variableData: object,
  headers: Record<string, string> = {},
): Promise<QueueResponse | undefined> {
  try {
    const response = await fetch(`${url}/v1/execution/queue-remote/${workflowId}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ variableData }),
    })
    const id = response.headers.get('location')?.split('/').at(-1)
    await response.arrayBuffer().catch(() => {})
    return { status: response.status, id, replayed: response.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return undefined
  }
}

export interface Outcome {
  /** Acknowledged runs that are not in the store. */
  lost: number
  /** Runs with more than one final status. */
  duplicated: number
  unfinished: number
  succeeded: number
  /** Status, reason and error of runs that ended without success. */
  unsuccessful: string[]
  /** Total over all runs. */
  attempts: number
}

const batchSize = 500

/** Reads the runs' outcome from the store. */
export async function readOutcome({ read }: Store, ids: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { lost: 0, duplicated: 0, unfinished: 0, succeeded: 0, unsuccessful: [], attempts: 0 }
  for (let from = 0; from < ids.length; from += batchSize) {
    const batch = ids.slice(from, from + batchSize)
    const events = read.query.selectFrom('run_events').select(['run_id', 'data']).where('type', '=', 'status')
    const ends = new Map<string, number>()
    for (const { run_id, data } of await events.where('run_id', 'in', batch).execute()) {
      if (isFinal(JSON.parse(data).status)) ends.set(run_id, (ends.get(run_id) ?? 0) + 1)
    }
    // After the events: runs that end in between count as unfinished.
    const runs = await read.query
      .selectFrom('runs')
      .select(['id', 'status', 'reason', 'error', 'attempts'])
      .where('id', 'in', batch)
      .execute()
    outcome.lost += batch.length - runs.length
    outcome.duplicated += [...ends.values()].filter((count) => count > 1).length
    outcome.unfinished += runs.filter(({ id }) => !ends.has(id)).length
    const ended = runs.filter(({ id, status }) => ends.has(id) && status !== 'succeeded')
    outcome.unsuccessful.push(...ended.map(({ status, reason, error }) => `${status}, ${reason}, ${error}`))
    outcome.succeeded += runs.filter(({ status }) => status === 'succeeded').length
    outcome.attempts += runs.reduce((sum, run) => sum + run.attempts, 0)
  }
  return outcome
}

/** Waits until all runs that are not lost have finished, and returns the outcome. */
export function waitForOutcome(store: Store, ids: readonly string[]): Promise<Outcome> {
  const all = async () => {
    const outcome = await readOutcome(store, ids)
    return outcome.unfinished === 0 && outcome
  }
  return until('all runs have finished', all)
}
