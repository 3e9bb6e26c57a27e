/** Helpers for runs that take more than one request: list all runs, follow a run, wait until it finishes. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components, operations } from '../../generated/execution.v1/types.ts'
import { type EventsOptions, followRun } from './follow.ts'
import type { Result } from './operation.ts'
import { type CallOptions, type ClientOptions, preferredWaitSecondsMax } from './options.ts'
import { createList, type List } from './pages.ts'
import { aborted, ProblemError, timedOut } from './problem.ts'
import { type TimeLimit, timeLimit } from './time-limit.ts'
import type { AnyWorkflows, RunOf, VariablesOf, WorkflowIdOf, WorkflowTypes } from './typed-workflows.ts'

type Run = components['schemas']['Run']
type RunEvent = components['schemas']['RunEvent']

type RunStatus = components['schemas']['RunStatus']
type ListRunsQuery = NonNullable<operations['listRuns']['parameters']['query']>

/** The query of `listRuns`. `limit` is the page size; `cursor` is the page to start with. */
export interface RunFilters extends Omit<ListRunsQuery, 'status' | 'tag'> {
  /** One status, or several for runs in any of them. */
  status?: RunStatus | RunStatus[]
  /** One tag, or several for runs with any of them. */
  tag?: string | string[]
}

/** The query of `queueRemoteRun`. */
export type QueueOptions = NonNullable<operations['queueRemoteRun']['parameters']['query']>

/** Options of `runs.wait`. */
export interface WaitOptions {
  /** How long to wait. Default: until the run finishes. */
  timeoutSeconds?: number | undefined
  /** Aborts the wait; the run continues. */
  signal?: AbortSignal | null | undefined
}

/** Options of `runs.queueAndWait`. */
export interface QueueAndWaitOptions extends QueueOptions, WaitOptions {
  /** Makes the call safe to repeat after the program restarts. Default: a random key that all tries of the call share. */
  idempotencyKey?: string | undefined
}

/** `Known` has the types of workflows; see `createExecutionClient`. */
export interface Runs<Known extends WorkflowTypes<Known> = AnyWorkflows> {
  /**
   * Lists all runs that match the filters, newest first, over all pages.
   *
   * @example
   * for await (const run of client.runs.list({ status: 'failed' })) console.log(run.id, run.error?.message)
   */
  list(filters?: RunFilters, options?: CallOptions): List<Run>
  /**
   * Waits until a run finishes and resolves to it, whatever its final status. Follows the run's event stream instead of
   * polling, and reconnects when the connection breaks. After `timeoutSeconds` the `error` has the type
   * `problemTypes.timeout`. Every `error` has the `runId`.
   *
   * @example
   * const { data: run, error } = await client.runs.wait(runId, { timeoutSeconds: 600 })
   */
  wait(runId: string, options?: WaitOptions): Promise<Result<Run>>
  /**
   * Yields the run's past events, then new ones as they happen; ends after the last one. Reconnects when the connection
   * breaks and resumes after the last event received. Permanent failures (401, 403, 404) throw a ProblemError. Leaving
   * the loop closes the connection.
   *
   * @example
   * for await (const event of client.runs.events(runId)) if (event.type === 'log') console.log(event.message)
   */
  events(runId: string, options?: EventsOptions): AsyncIterable<RunEvent>
  /**
   * Queues a run and waits until it finishes; a run of a few seconds takes a single request. If an error occurs after
   * the run was queued, it has the `runId` and the run continues.
   *
   * @example
   * const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
   */
  queueAndWait<Id extends WorkflowIdOf<Known>>(
    workflowId: Id,
    variableData: VariablesOf<Known, Id>,
    options?: QueueAndWaitOptions,
  ): Promise<Result<RunOf<Known, Id>>>
}

/** The service is asked to respond this long before the caller's time limit, so that the run's id arrives in time. */
const responseMarginSeconds = 1

export function createRuns(operations: ExecutionV1Operations, client: ClientOptions): Runs {
  const waitUntilFinished = async (runId: string, limit: TimeLimit): Promise<Result<Run>> => {
    const read = () => operations.getRun({ params: { path: { runId } }, signal: limit.signal })
    const now = await read()
    if (now.error || now.data.finishedAt !== null) return now
    for await (const _ of followRun(operations, client, runId, { signal: limit.signal }));
    return read()
  }
  return {
    list: ({ status, tag, ...filters } = {}, options = {}) =>
      createList((cursor) => {
        const lists = {
          ...(status !== undefined && { status: [status].flat() }),
          ...(tag !== undefined && { tag: [tag].flat() }),
        }
        const query = { ...filters, ...lists, ...(cursor !== undefined && { cursor }) }
        return operations.listRuns({ ...options, params: { query } })
      }),
    wait: (runId, options = {}) => withTimeLimit(options, { runId }, (limit) => waitUntilFinished(runId, limit)),
    events: (runId, options = {}) => followRun(operations, client, runId, options),
    queueAndWait(workflowId, variableData, { idempotencyKey, timeoutSeconds, signal, ...query } = {}) {
      const awaited: AwaitedRun = { workflowId }
      return withTimeLimit({ timeoutSeconds, signal }, awaited, async (limit) => {
        const wait = Math.floor(
          Math.min((timeoutSeconds ?? Number.POSITIVE_INFINITY) - responseMarginSeconds, preferredWaitSecondsMax),
        )
        const header = {
          ...(wait > 0 && { Prefer: `wait=${wait}` }),
          ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }),
        }
        const params = { path: { workflowId }, query, header }
        const queued = await operations.queueRemoteRun({ params, body: { variableData }, signal: limit.signal })
        if (queued.error || queued.data.finishedAt !== null) return queued
        awaited.runId = queued.data.id
        return waitUntilFinished(awaited.runId, limit)
      })
    },
  }
}

interface AwaitedRun {
  /** Unset until the run is queued. */
  runId?: string
  workflowId?: string
}

/** Runs `act` with a time limit, and adds to its error which run was awaited. */
async function withTimeLimit(
  { timeoutSeconds, signal }: WaitOptions,
  awaited: AwaitedRun,
  act: (limit: TimeLimit) => Promise<Result<Run>>,
): Promise<Result<Run>> {
  const limit = timeLimit(signal, timeoutSeconds)
  try {
    const result = await act(limit).catch((thrown: unknown): Result<Run> => {
      if (thrown instanceof ProblemError) return { error: thrown.problem, response: Response.error() }
      throw thrown
    })
    if (!result.error) return result
    const { runId, workflowId } = awaited
    const subject = runId ? `Run ${runId}` : `The run of ${workflowId}`
    const detail = `${subject} did not finish within ${timeoutSeconds} s. It continues.`
    const ended = limit.isOver ? timedOut(detail) : aborted(signal)
    const error = { ...(limit.signal.aborted ? ended : result.error), ...(runId && { runId }) }
    return { error, response: result.response }
  } finally {
    limit.end()
  }
}
