/** The Execution API's operations that queue runs: requests to domain calls, results to responses. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import { preferredWait } from '../../contract/prefer.ts'
import { CredentialRevoked, invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound } from '../problems.ts'
import {
  batchRunDeleted,
  describeRefusedRepeat,
  describeRefusedStart,
  idempotencyConflict,
  runDeleted,
  tooManyQueuedRuns,
  toParameterErrors,
} from '../queue/queue-problems.ts'
import type { QueueRequest } from '../queue/queue-request.ts'
import { fromMembers, fromParameters, repeatedOptions, scopesOf } from '../queue/run-options.ts'
import type { Run } from '../runs/run.ts'
import { isFinal } from '../runs/run-state.ts'
import { readSized } from '../sized.ts'
import type { RunFeed } from './run-feed.ts'
import { toResponse } from './run-response.ts'
import type { QueueResult, Runs } from './runs.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'queueRemoteRun' | 'queueRemoteRunBatch' | 'rerunRun'>
type RerunRequest = Parameters<Operations['rerunRun']>[0]

type WaitingRequest = Pick<
  Parameters<Operations['queueRemoteRun']>[0],
  'whileAuthenticated' | 'reserve' | 'stillAuthenticated'
>

/** Maximum seconds that a response waits for its run to finish (`Prefer: wait`). */
export const waitSecondsMax = 30

/** Bytes of a queued run in the response, without its variables. */
const runBytes = 1024

export interface QueueDependencies {
  runs: Runs
  feed: RunFeed
}

export function queueOperations({ runs, feed }: QueueDependencies): Operations {
  return {
    async queueRemoteRun(request) {
      const { principal, path, query, header, body } = request
      const queued = await runs.queue(principal, {
        workflowId: path.workflowId,
        variables: body.variableData,
        idempotencyKey: header['Idempotency-Key'],
        ...fromParameters(query),
      })
      if (queued.kind !== 'queued') return toProblem(queued)
      const wait = preferredWait(header.Prefer, waitSecondsMax)
      if (wait !== undefined) request.unlockProcessing()
      const run = wait === undefined ? queued.run : await waitUntilFinished(feed, runs, queued.run, wait, request)
      return toQueuedResponse(run, principal, { waited: wait, replayed: queued.replayed })
    },

    async queueRemoteRunBatch(request) {
      const { principal, body, header, reserve } = request
      const requests = body.runs.map(({ workflowId, variableData, ...options }): QueueRequest => {
        return { workflowId, variables: variableData, ...fromMembers(options) }
      })
      for (const scope of new Set(requests.flatMap(scopesOf))) request.requireScope(scope)
      await reserve(requests.length * runBytes)
      const queued = await runs.queueBatch(principal, requests, header['Idempotency-Key'])
      switch (queued.kind) {
        case 'queued': {
          const headers = queued.replayed ? { 'Idempotent-Replayed': 'true' as const } : {}
          return { status: 202, headers, body: { data: queued.runs.map((run) => toResponse(run, principal)) } }
        }
        case 'invalid':
          return invalidRequest(
            queued.errors.map(({ index, member, pointer, detail }) => {
              return { pointer: `/runs/${index}/${member}${pointer}`, detail }
            }),
          )
        case 'runDeleted':
          return batchRunDeleted
        default:
          return toConflict(queued)
      }
    },

    async rerunRun(request) {
      const { principal, path } = request
      const finished = await runs.get(principal.accountId, path.runId)
      if (!finished) return notFound('run')
      if (!isFinal(finished.status)) return runUnfinished(finished)
      const repeated = toRepeatedRequest(finished, request)
      for (const scope of scopesOf(repeated)) request.requireScope(scope)
      const start = await readStart(runs, finished, request)
      if (start && 'status' in start) return start
      const queued = await runs.queue(principal, { ...repeated, start })
      if (queued.kind !== 'queued') return toRerunProblem(queued)
      const headers = {
        Location: `/v1/execution/runs/${queued.run.id}`,
        ...(queued.replayed && { 'Idempotent-Replayed': 'true' as const }),
      }
      return { status: 202, headers, body: toResponse(queued.run, principal) }
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

function toRepeatedRequest(finished: Run, { query, header, body }: RerunRequest): QueueRequest {
  return {
    ...repeatedOptions(finished),
    ...fromParameters(query),
    workflowId: finished.workflowId,
    variables: body?.variableData ?? finished.variables,
    idempotencyKey: header['Idempotency-Key'],
    secretsFrom: finished.id,
    rerunOf: finished.id,
  }
}

/** @param waited the seconds of `Prefer: wait`. A new run that was not waited for has not finished. */
function toQueuedResponse(
  run: Run,
  principal: Principal,
  { waited, replayed }: { waited: number | undefined; replayed: boolean },
) {
  const headers = {
    Location: `/v1/execution/runs/${run.id}`,
    ...(waited !== undefined && { 'Preference-Applied': `wait=${waited}` }),
    ...(replayed && { 'Idempotent-Replayed': 'true' as const }),
  }
  const finished = (waited !== undefined || replayed) && isFinal(run.status)
  return finished
    ? { status: 200 as const, headers, body: toResponse(run, principal) }
    : { status: 202 as const, headers, body: toResponse(run, principal) }
}

type Refused = Exclude<QueueResult, { kind: 'queued' }>
type Conflict = Extract<Refused, { kind: 'idempotencyConflict' | 'runDeleted' | 'tooManyQueuedRuns' }>

function toConflict(refused: Conflict) {
  if (refused.kind === 'tooManyQueuedRuns') return tooManyQueuedRuns(refused)
  return refused.kind === 'runDeleted' ? runDeleted : idempotencyConflict
}

function toProblem(refused: Refused) {
  switch (refused.kind) {
    case 'idempotencyConflict':
    case 'runDeleted':
    case 'tooManyQueuedRuns':
      return toConflict(refused)
    case 'noSuchWorkflow':
      return notFound('workflow')
    case 'noSuchBrowserContext':
      return notFound('browser context', toParameterErrors(refused))
    default:
      return invalidRequest(toParameterErrors(refused))
  }
}

function toRerunProblem(refused: Refused) {
  switch (refused.kind) {
    case 'idempotencyConflict':
    case 'runDeleted':
    case 'tooManyQueuedRuns':
      return toConflict(refused)
    case 'expiresTooSoon':
    case 'variablesInvalid':
      return invalidRequest(toParameterErrors(refused))
    default:
      return doesNotFit(describeRefusedRepeat(refused))
  }
}

function doesNotFit(detail: string) {
  return { status: 409, problem: { kind: 'run-does-not-fit', detail: `${detail} Nothing was stored.` } } as const
}

function runUnfinished({ status }: { status: unknown }) {
  const detail = `The run is ${status}. Wait for its end, or cancel it, then run it again. Nothing was stored.`
  return { status: 409, problem: { kind: 'run-not-finished', detail } } as const
}

/** @throws {CredentialRevoked} within about a second after the API key of the request was deleted or has expired. */
async function waitUntilFinished(
  feed: RunFeed,
  runs: Runs,
  run: Run,
  seconds: number,
  request: WaitingRequest,
): Promise<Run> {
  try {
    await feed.waitUntilFinished(run.id, seconds, request.whileAuthenticated())
    if (!(await request.stillAuthenticated())) throw new CredentialRevoked()
    const found = await runs.measure(run.accountId, run.id)
    return (found && (await readSized(request.reserve, found))) ?? run
  } catch (error) {
    if (error instanceof CredentialRevoked) throw error
    // The run is stored: if waiting fails, 202 is still correct.
    return run
  }
}
