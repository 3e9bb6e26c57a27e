// Written by `npm run generate` from openapi/execution.v1.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** A service built from the same document sends this as `X-Document-Hash`. */
export const documentHash = '7f9385bd32682ed9'

/** Every operation of Execution API 1.2.0 as a function. */
export interface ExecutionV1Operations {
  /**
   * Queue a remote run of a workflow.
   *
   * Queues a run, and responds as soon as the run is stored durably. Every call creates a new run unless it repeats
   * an `Idempotency-Key`. `variableData` must be valid by the workflow's `variablesSchema`.
   *
   * `PUT /v1/execution/queue-remote/{workflowId}` · scopes: runs:write or runs:write, browser-contexts:use · responses: 200, 202, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503, 507
   */
  queueRemoteRun: Operation<operations, 'queueRemoteRun'>
  /**
   * List runs, newest first.
   *
   * Lists the account's runs, newest first, in pages. A run must match all filters. A page ends before the run with
   * which its runs would exceed 1 MiB, so it may have fewer runs than `limit` although `nextCursor` is set.
   *
   * `GET /v1/execution/runs` · scopes: runs:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listRuns: Operation<operations, 'listRuns'>
  /**
   * Get a run.
   *
   * Returns one run of the account.
   *
   * `GET /v1/execution/runs/{runId}` · scopes: runs:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getRun: Operation<operations, 'getRun'>
  /**
   * Delete a run.
   *
   * Erases a finished run with its variables, output, events and artifacts, permanently. A run that is queued or
   * running is refused; cancel it first. Its `Idempotency-Key` stays used until its 24 hours are over: repeating the
   * request then gets 409, so that it does not run a second time.
   *
   * `DELETE /v1/execution/runs/{runId}` · scopes: runs:write · responses: 204, 400, 401, 403, 404, 409, 429, 500, 503
   */
  deleteRun: Operation<operations, 'deleteRun'>
  /**
   * Cancel a run.
   *
   * A queued run becomes `cancelled` at once. A running one gets `cancelRequested`: its workflow's AbortSignal is
   * aborted, and the run becomes `cancelled` within a few seconds. A finished run does not change. Repeating the
   * call has no effect. It takes no body.
   *
   * `POST /v1/execution/runs/{runId}/cancel` · scopes: runs:write · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  cancelRun: Operation<operations, 'cancelRun'>
  /**
   * Follow a run.
   *
   * Server-sent events: first all past events of the run, then each new one as it happens. The stream ends after the
   * run's last event. Each event has its sequence number as `id`, its type as `event`, and a RunEvent as `data`. The
   * service sends a comment after every 15 seconds without an event. To resume, send the last `id` that you received
   * as `Last-Event-ID`. A browser's EventSource cannot use this operation, because it cannot send the API key. The
   * stream ends within a second after the API key is deleted or expires.
   *
   * `GET /v1/execution/runs/{runId}/events` · scopes: runs:read · responses: 200, 204, 400, 401, 403, 404, 406, 429, 500, 503
   */
  streamRunEvents: Operation<operations, 'streamRunEvents', 'stream'>
  /**
   * Download an artifact of a run.
   *
   * Returns a file that the run's workflow created, such as a PDF or a screenshot. The run lists its artifacts. The
   * service removes an artifact at its `expiresAt`; after that, the response is 404. To resume a download, send
   * `Range` with the first missing byte, and `If-Range` with the `ETag` of the first response.
   *
   * `GET /v1/execution/runs/{runId}/artifacts/{artifactName}` · scopes: runs:read · responses: 200, 206, 400, 401, 403, 404, 406, 416, 429, 500, 503
   */
  getRunArtifact: Operation<operations, 'getRunArtifact', 'blob'>
  /**
   * List workflows.
   *
   * Lists every workflow that can be run, sorted by id, in pages.
   *
   * `GET /v1/execution/workflows` · scopes: workflows:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listWorkflows: Operation<operations, 'listWorkflows'>
  /**
   * Get a workflow.
   *
   * Returns one workflow with the JSON Schema of its variables.
   *
   * `GET /v1/execution/workflows/{workflowId}` · scopes: workflows:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getWorkflow: Operation<operations, 'getWorkflow'>
}

/** How to call the operations of Execution API 1.2.0. */
export const executionV1Operations: SurfaceDescription<ExecutionV1Operations> = {
  document: 'execution.v1',
  documentHash,
  credential: (apiKey) => ({ Authorization: `Bearer ${apiKey}` }),
  operations: {
    queueRemoteRun: { method: 'PUT', path: '/v1/execution/queue-remote/{workflowId}', retry: 'withIdempotencyKey' },
    listRuns: { method: 'GET', path: '/v1/execution/runs', retry: 'always' },
    getRun: { method: 'GET', path: '/v1/execution/runs/{runId}', retry: 'always' },
    deleteRun: { method: 'DELETE', path: '/v1/execution/runs/{runId}', retry: 'always' },
    cancelRun: { method: 'POST', path: '/v1/execution/runs/{runId}/cancel', retry: 'always' },
    streamRunEvents: { method: 'GET', path: '/v1/execution/runs/{runId}/events', retry: 'always', parseAs: 'stream' },
    getRunArtifact: { method: 'GET', path: '/v1/execution/runs/{runId}/artifacts/{artifactName}', retry: 'always', parseAs: 'blob' },
    listWorkflows: { method: 'GET', path: '/v1/execution/workflows', retry: 'always' },
    getWorkflow: { method: 'GET', path: '/v1/execution/workflows/{workflowId}', retry: 'always' },
  },
}
