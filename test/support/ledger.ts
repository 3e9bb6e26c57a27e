/** Callers that queue runs as fast as they can, what they were told, and what the store has of it afterwards. */
import { isFinal } from '../../src/domain/runs/run-state.ts'
import type { Store } from '../../src/storage/store.ts'
import { until } from './service.ts'

export interface Ledger {
  /** Ids of runs whose 202 has arrived. */
  acknowledged: string[]
  /** Statuses other than 202, with how often each came. */
  refused: Map<number, number>
  /** Requests whose connection broke. */
  unanswered: number
}

export interface CallersOptions {
  /** Read before each request, so that callers follow processes that are replaced. */
  urls: () => readonly string[]
  key: string
  count?: number
  workflowId?: string
  variables?: (index: number) => object
}

export function newLedger(): Ledger {
  return { acknowledged: [], refused: new Map(), unanswered: 0 }
}

/** How many requests did not end as they should. */
export function failures({ refused, unanswered }: Ledger): number {
  return [...refused.values()].reduce((sum, count) => sum + count, unanswered)
}

/** Resolves when so many runs are acknowledged in all. */
export async function untilAcknowledged(ledger: Ledger, count: number): Promise<void> {
  await until(`${count} runs are acknowledged`, () => ledger.acknowledged.length >= count)
}

/** Starts the callers; what they were told is in the ledger when the function that is returned has resolved. */
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
      const answer = await queueRun(url, key, workflowId, variables(sent))
      if (answer === undefined) ledger.unanswered += 1
      else if (answer.status === 202 && answer.id) ledger.acknowledged.push(answer.id)
      else ledger.refused.set(answer.status, (ledger.refused.get(answer.status) ?? 0) + 1)
      // What is refused at once would be asked for in a loop that leaves the others no processor.
      if (answer?.status !== 202) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const callers = Array.from({ length: count }, call)
  return async () => {
    calling = false
    await Promise.all(callers)
  }
}

export interface QueueAnswer {
  status: number
  id: string | undefined
  replayed: boolean
}

/** Answered is who has the head of the answer: it names the run. `undefined` for a connection that broke before. */
export async function queueRun(
  url: string,
  key: string,
  workflowId: string,
  variableData: object,
  headers: Record<string, string> = {},
): Promise<QueueAnswer | undefined> {
  try {
    const answer = await fetch(`${url}/v1/execution/queue-remote/${workflowId}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ variableData }),
    })
    const id = answer.headers.get('location')?.split('/').at(-1)
    await answer.arrayBuffer().catch(() => {})
    return { status: answer.status, id, replayed: answer.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return undefined
  }
}

export interface Outcome {
  /** Acknowledged, and not in the store. */
  lost: number
  /** Recorded more than one final status. */
  duplicated: number
  unfinished: number
  succeeded: number
  /** How those ended that did not succeed. */
  unsuccessful: string[]
  /** Over all runs. */
  attempts: number
}

const atOnce = 500

/** What the store has of the runs. */
export async function readOutcome({ read }: Store, ids: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { lost: 0, duplicated: 0, unfinished: 0, succeeded: 0, unsuccessful: [], attempts: 0 }
  for (let from = 0; from < ids.length; from += atOnce) {
    const some = ids.slice(from, from + atOnce)
    const events = read.query.selectFrom('run_events').select(['run_id', 'data']).where('type', '=', 'status')
    const ends = new Map<string, number>()
    for (const { run_id, data } of await events.where('run_id', 'in', some).execute()) {
      if (isFinal(JSON.parse(data).status)) ends.set(run_id, (ends.get(run_id) ?? 0) + 1)
    }
    // After the events: a run that has ended since is counted at the next look.
    const runs = await read.query
      .selectFrom('runs')
      .select(['id', 'status', 'reason', 'error', 'attempts'])
      .where('id', 'in', some)
      .execute()
    outcome.lost += some.length - runs.length
    outcome.duplicated += [...ends.values()].filter((count) => count > 1).length
    outcome.unfinished += runs.filter(({ id }) => !ends.has(id)).length
    const ended = runs.filter(({ id, status }) => ends.has(id) && status !== 'succeeded')
    outcome.unsuccessful.push(...ended.map(({ status, reason, error }) => `${status}, ${reason}, ${error}`))
    outcome.succeeded += runs.filter(({ status }) => status === 'succeeded').length
    outcome.attempts += runs.reduce((sum, run) => sum + run.attempts, 0)
  }
  return outcome
}

/** What the store has of the runs when all that are not lost have finished. */
export function waitForOutcome(store: Store, ids: readonly string[]): Promise<Outcome> {
  const all = async () => {
    const outcome = await readOutcome(store, ids)
    return outcome.unfinished === 0 && outcome
  }
  return until('all runs have finished', all)
}
