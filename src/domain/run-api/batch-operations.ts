/** The handler of `queueRemoteRunBatch`: maps the request to a domain call, and its result to a response. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { batchRunDeleted, idempotencyConflict, refusedDetails, tooManyQueuedRuns } from '../queue/queue-problems.ts'
import { toResponse } from './run-response.ts'
import type { QueueRequest, Runs } from './runs.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'queueRemoteRunBatch'>
type Entry = components['schemas']['BatchEntry']

/** Bytes of a queued run in the response, without its variables. */
const runBytes = 1024

export function batchOperations({ runs }: { runs: Runs }): Operations {
  return {
    async queueRemoteRunBatch(request) {
      const { principal, body, header, reserve } = request
      if (body.runs.some(({ browserContextId }) => browserContextId !== undefined))
        request.requireScope('browser-contexts:use')
      const errors = body.runs.flatMap(findExpiryError)
      if (errors.length > 0) return invalidRequest(errors.slice(0, errorsMax))
      await reserve(body.runs.length * runBytes)
      const queued = await runs.queueBatch(principal, body.runs.map(toQueueRequest), header['Idempotency-Key'])
      switch (queued.kind) {
        case 'queued': {
          const headers = queued.replayed ? { 'Idempotent-Replayed': 'true' as const } : {}
          return { status: 202, headers, body: { data: queued.runs.map(toResponse) } }
        }
        case 'invalid':
          return invalidRequest(queued.errors.map(({ pointer, detail }) => ({ pointer: `/runs${pointer}`, detail })))
        case 'idempotencyConflict':
          return idempotencyConflict
        case 'runDeleted':
          return batchRunDeleted
        case 'tooManyQueuedRuns':
          return tooManyQueuedRuns(queued)
      }
    },
  }
}

const errorsMax = 20

function findExpiryError({ expiresInSeconds, delaySeconds = 0 }: Entry, index: number) {
  if (expiresInSeconds === undefined || expiresInSeconds > delaySeconds) return []
  return [{ pointer: `/runs/${index}/expiresInSeconds`, detail: refusedDetails.expiresTooSoon }]
}

function toQueueRequest(entry: Entry): QueueRequest {
  const { browserContextId, persistContext = 'onSuccess' } = entry
  return {
    workflowId: entry.workflowId,
    variables: entry.variableData,
    idempotencyKey: undefined,
    delaySeconds: entry.delaySeconds ?? 0,
    expiresInSeconds: entry.expiresInSeconds,
    priority: entry.priority ?? 0,
    tags: entry.tags,
    concurrencyKey: entry.concurrencyKey,
    browserContext: browserContextId === undefined ? undefined : { id: browserContextId, persist: persistContext },
  }
}
