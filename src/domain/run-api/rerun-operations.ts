/** The handler of `rerunRun`: a request to queue a run like a finished one, and the result as a response. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound } from '../problems.ts'
import {
  describeRefusedStart,
  idempotencyConflict,
  refusedDetails,
  runDeleted,
  tooManyQueuedRuns,
} from '../queue/queue-problems.ts'
import type { Run } from '../runs/run.ts'
import { isFinal } from '../runs/run-state.ts'
import { toResponse } from './run-response.ts'
import type { QueueRequest, QueueResult, Runs } from './runs.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'rerunRun'>
type RerunRequest = Parameters<Operations['rerunRun']>[0]

export function rerunOperations({ runs }: { runs: Runs }): Operations {
  return {
    async rerunRun(request) {
      const { principal, path, query } = request
      if (query.expiresInSeconds !== undefined && query.expiresInSeconds <= query.delaySeconds)
        return invalidRequest([{ parameter: 'expiresInSeconds', detail: refusedDetails.expiresTooSoon }])
      const finished = await runs.get(principal.accountId, path.runId)
      if (!finished) return notFound('run')
      if (!isFinal(finished.status)) return runUnfinished(finished)
      if (finished.browserContextId !== null) request.requireScope('browser-contexts:use')
      const start = await readStart(runs, finished, request)
      if (start && 'status' in start) return start
      const queued = await queueAgain(runs, principal, { ...toQueueRequest(finished, request), start })
      if (queued.kind !== 'queued') return toProblem(queued)
      const headers = {
        Location: `/v1/execution/runs/${queued.run.id}`,
        ...(queued.replayed && { 'Idempotent-Replayed': 'true' as const }),
      }
      return { status: 202, headers, body: toResponse(queued.run) }
    },
  }
}

/** What the new run needs to start from the named step, or the problem if it cannot. */
async function readStart(runs: Runs, finished: Run, { principal, body }: RerunRequest) {
  if (body?.fromStep === undefined) return undefined
  const variables = body.variableData ?? finished.variables
  const start = await runs.readStart(finished, body.fromStep, principal, variables)
  if (!('refused' in start)) return start
  const detail = describeRefusedStart(start)
  if (start.refused === 'erased' || start.refused === 'otherVersion') return doesNotFit(`fromStep ${detail}.`)
  return invalidRequest([{ pointer: '/fromStep', detail }])
}

function toQueueRequest(finished: Run, { query, header, body }: RerunRequest): QueueRequest {
  const { id, workflowId, priority, tags, concurrencyKey, browserContextId, persistContext } = finished
  const earlierTags = tags.length === 0 ? undefined : tags
  return {
    workflowId,
    variables: body?.variableData ?? finished.variables,
    idempotencyKey: header['Idempotency-Key'],
    delaySeconds: query.delaySeconds,
    expiresInSeconds: query.expiresInSeconds,
    priority: query.priority ?? priority,
    tags: query.tag ?? earlierTags,
    concurrencyKey: concurrencyKey ?? undefined,
    browserContext:
      browserContextId === null ? undefined : { id: browserContextId, persist: persistContext ?? 'onSuccess' },
    secretsFrom: id,
    rerunOf: id,
  }
}

/** Queues the run without its concurrency key if the workflow no longer has a limit per key. */
async function queueAgain(runs: Runs, principal: Principal, request: QueueRequest): Promise<QueueResult> {
  const queued = await runs.queue(principal, request)
  return queued.kind === 'usesNoConcurrencyKey'
    ? runs.queue(principal, { ...request, concurrencyKey: undefined })
    : queued
}

function toProblem(result: Exclude<QueueResult, { kind: 'queued' }>) {
  switch (result.kind) {
    case 'noSuchWorkflow':
      return doesNotFit('The account no longer has the workflow of the run.')
    case 'noSuchBrowserContext':
      return doesNotFit('The account no longer has the browser context of the run.')
    case 'usesNoBrowser':
      return doesNotFit('The run has a browser context, but its workflow no longer uses a browser.')
    case 'usesNoConcurrencyKey':
      return doesNotFit('The workflow of the run no longer has a limit per key.')
    case 'idempotencyConflict':
      return idempotencyConflict
    case 'runDeleted':
      return runDeleted
    case 'tooManyQueuedRuns':
      return tooManyQueuedRuns(result)
    case 'variablesInvalid':
      return invalidRequest(
        result.errors.map(({ pointer, detail }) => ({ pointer: `/variableData${pointer}`, detail })),
      )
  }
}

function doesNotFit(detail: string) {
  return { status: 409, problem: { kind: 'run-does-not-fit', detail: `${detail} Nothing was stored.` } } as const
}

export function runUnfinished({ status }: { status: unknown }) {
  const detail = `The run is ${status}. Wait for its end, or cancel it, then run it again. Nothing was stored.`
  return { status: 409, problem: { kind: 'run-not-finished', detail } } as const
}
