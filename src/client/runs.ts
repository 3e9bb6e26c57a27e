/** What a caller wants to do with runs that is more than one request: list them all, follow one, wait for its end. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components, operations } from '../../generated/execution.v1/types.ts'
import { type EventsOptions, follow } from './follow.ts'
import type { Answer } from './operation.ts'
import { type CallOptions, type ClientOptions, preferredWaitSecondsMax } from './options.ts'
import { type List, listOf } from './pages.ts'
import { aborted, ProblemError, timedOut } from './problem.ts'
import { type TimeLimit, timeLimit } from './time-limit.ts'

type Run = components['schemas']['Run']
type RunEvent = components['schemas']['RunEvent']

/** Which runs: the query of `listRuns`. `limit` is the size of a page, not of the list; `cursor` is where it starts. */
export type RunFilters = NonNullable<operations['listRuns']['parameters']['query']>

/** How a run is queued: the query of `queueRemoteRun`. */
export type QueueOptions = NonNullable<operations['queueRemoteRun']['parameters']['query']>

/** What `runs.wait` can be told. */
export interface WaitOptions {
  /** How long to wait for the run's end. Without it: until it comes. */
  timeoutSeconds?: number | undefined
  /** Ends the wait at once; the run goes on. */
  signal?: AbortSignal | null | undefined
}

/** What `runs.queueAndWait` can be told. */
export interface QueueAndWaitOptions extends QueueOptions, WaitOptions {
  /** Makes the call safe to repeat also for a caller who starts anew. Without it, the client makes one for its own tries. */
  idempotencyKey?: string | undefined
}

/** Runs, beyond what one request does. */
export interface Runs {
  /**
   * All runs that the filters leave, newest first, over all pages.
   *
   * @example
   * for await (const run of client.runs.list({ status: 'failed' })) console.log(run.id, run.error?.message)
   */
  list(filters?: RunFilters, options?: CallOptions): List<Run>
  /**
   * Waits until the run has finished, and resolves with it, whatever its status then is. Follows its event stream, so that
   * it costs the service next to nothing, and survives disconnects. Out of time, the `error` has the type `timeout`. Every
   * `error` has the `runId`.
   *
   * @example
   * const { data: run, error } = await client.runs.wait(runId, { timeoutSeconds: 600 })
   */
  wait(runId: string, options?: WaitOptions): Promise<Answer<Run>>
  /**
   * The run's events, old ones first, then each as it happens; ends after the run's last one. Connects again when the
   * connection breaks, and goes on after the last event that came. What cannot be followed (401, 403, 404) is thrown as a
   * ProblemError. Leaving the loop closes the connection.
   *
   * @example
   * for await (const event of client.runs.events(runId)) if (event.type === 'log') console.log(event.message)
   */
  events(runId: string, options?: EventsOptions): AsyncIterable<RunEvent>
  /**
   * Queues a run and waits until it has finished: for a run of a few seconds, this is one request. An `error` after the
   * run was queued has its `runId`; the run goes on.
   *
   * @example
   * const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
   */
  queueAndWait(
    workflowId: string,
    variableData: Record<string, unknown>,
    options?: QueueAndWaitOptions,
  ): Promise<Answer<Run>>
}

/** So much sooner than the caller's time is over does the service have to answer, so that the run's id is known in time. */
const answerSeconds = 1

export function runsOf(operations: ExecutionV1Operations, client: ClientOptions): Runs {
  const waitUntil = async (runId: string, limit: TimeLimit): Promise<Answer<Run>> => {
    const read = () => operations.getRun({ params: { path: { runId } }, signal: limit.signal })
    const now = await read()
    if (now.error || now.data.finishedAt !== null) return now
    for await (const _ of follow(operations, client, runId, { signal: limit.signal }));
    return read()
  }
  return {
    list: (filters = {}, options = {}) =>
      listOf((cursor) => {
        const query = { ...filters, ...(cursor !== undefined && { cursor }) }
        return operations.listRuns({ ...options, params: { query } })
      }),
    wait: (runId, options = {}) => within(options, { runId }, (limit) => waitUntil(runId, limit)),
    events: (runId, options = {}) => follow(operations, client, runId, options),
    queueAndWait(workflowId, variableData, { idempotencyKey, timeoutSeconds, signal, ...query } = {}) {
      const awaited: AwaitedRun = { workflowId }
      return within({ timeoutSeconds, signal }, awaited, async (limit) => {
        const wait = Math.floor(
          Math.min((timeoutSeconds ?? Number.POSITIVE_INFINITY) - answerSeconds, preferredWaitSecondsMax),
        )
        const header = {
          ...(wait > 0 && { Prefer: `wait=${wait}` }),
          ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }),
        }
        const params = { path: { workflowId }, query, header }
        const queued = await operations.queueRemoteRun({ params, body: { variableData }, signal: limit.signal })
        if (queued.error || queued.data.finishedAt !== null) return queued
        awaited.runId = queued.data.id
        return waitUntil(awaited.runId, limit)
      })
    },
  }
}

/** What is waited for: a run, or one of a workflow that may be queued only now. */
interface AwaitedRun {
  runId?: string
  workflowId?: string
}

/** What `act` comes to within the time; the limit's signal tells `act` when to stop. */
async function within(
  { timeoutSeconds, signal }: WaitOptions,
  awaited: AwaitedRun,
  act: (limit: TimeLimit) => Promise<Answer<Run>>,
): Promise<Answer<Run>> {
  const limit = timeLimit(signal, timeoutSeconds)
  try {
    const answer = await act(limit).catch((thrown: unknown): Answer<Run> => {
      if (thrown instanceof ProblemError) return { error: thrown.problem, response: Response.error() }
      throw thrown
    })
    if (!answer.error) return answer
    const { runId, workflowId } = awaited
    const subject = runId ? `Run ${runId}` : `The run of ${workflowId}`
    const detail = `${subject} has not finished within ${timeoutSeconds} s. It goes on.`
    const ended = limit.isOver ? timedOut(detail) : aborted(signal)
    const error = { ...(limit.signal.aborted ? ended : answer.error), ...(runId && { runId }) }
    return { error, response: answer.response }
  } finally {
    limit.end()
  }
}
