// Written by `npm run generate` from openapi/execution.v1.yaml. Do not edit.
import createClient, { type ClientOptions, type MaybeOptionalInit, mergeHeaders } from 'openapi-fetch'
import type { paths } from './types.ts'

/** What a service that follows the same document sends as `X-Document-Hash`. */
export const documentHash = '7c75b11b19b33ec4'

/** A client of Execution API 1.1.0 that sends `apiKey` with every request. */
export function createExecutionV1Client({ apiKey, ...options }: ClientOptions & { apiKey: string; baseUrl: string }) {
  const headers = mergeHeaders(options.headers, { Authorization: `Bearer ${apiKey}` })
  const client = createClient<paths>({ ...options, headers })
  return {
    /**
     * Queue a remote run of a workflow.
     *
     * Queues a run and answers as soon as it is stored durably. Every call makes a new run, unless an
     * `Idempotency-Key` says that it is the same one. `variableData` must fit the workflow's `variablesSchema`.
     *
     * `PUT /v1/execution/queue-remote/{workflowId}` · scopes: runs:write · answers: 200, 202, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
     */
    queueRemoteRun: (init: MaybeOptionalInit<paths['/v1/execution/queue-remote/{workflowId}'], 'put'>) => client.PUT('/v1/execution/queue-remote/{workflowId}', init),
    /**
     * List runs, newest first.
     *
     * Lists the account's runs, newest first, in pages. The filters narrow each other.
     *
     * `GET /v1/execution/runs` · scopes: runs:read · answers: 200, 400, 401, 403, 406, 429, 500, 503
     */
    listRuns: (init?: MaybeOptionalInit<paths['/v1/execution/runs'], 'get'>) => client.GET('/v1/execution/runs', init ?? {}),
    /**
     * Get a run.
     *
     * Reads one run of the account.
     *
     * `GET /v1/execution/runs/{runId}` · scopes: runs:read · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
     */
    getRun: (init: MaybeOptionalInit<paths['/v1/execution/runs/{runId}'], 'get'>) => client.GET('/v1/execution/runs/{runId}', init),
    /**
     * Cancel a run.
     *
     * A queued run is `cancelled` at once. A running one gets `cancelRequested`: its workflow's AbortSignal is
     * signalled, and it ends as `cancelled` a few seconds later at the latest. A finished run stays as it is.
     * Repeating the call changes nothing. It takes no body.
     *
     * `POST /v1/execution/runs/{runId}/cancel` · scopes: runs:write · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
     */
    cancelRun: (init: MaybeOptionalInit<paths['/v1/execution/runs/{runId}/cancel'], 'post'>) => client.POST('/v1/execution/runs/{runId}/cancel', init),
    /**
     * Follow a run.
     *
     * Server-sent events: first those that the run already has, then each new one as it happens. The stream ends
     * after the run's last event. Each event has its sequence number as `id`, its type as `event`, and a RunEvent as
     * `data`. A comment is sent every 15 seconds while nothing happens. To resume, send the last `id` that you saw
     * as `Last-Event-ID`; browsers' EventSource does so by itself. The stream ends within a second when the
     * API key is deleted or expires.
     *
     * `GET /v1/execution/runs/{runId}/events` · scopes: runs:read · answers: 200, 204, 400, 401, 403, 404, 406, 429, 500, 503
     */
    streamRunEvents: (init: MaybeOptionalInit<paths['/v1/execution/runs/{runId}/events'], 'get'>) => client.GET('/v1/execution/runs/{runId}/events', init),
    /**
     * Download an artifact of a run.
     *
     * A file that the run's workflow has made, such as a PDF or a screenshot. The run lists its artifacts. They are
     * removed at their `expiresAt`; from then on the answer is 404.
     *
     * `GET /v1/execution/runs/{runId}/artifacts/{artifactName}` · scopes: runs:read · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
     */
    getRunArtifact: (init: MaybeOptionalInit<paths['/v1/execution/runs/{runId}/artifacts/{artifactName}'], 'get'>) => client.GET('/v1/execution/runs/{runId}/artifacts/{artifactName}', init),
    /**
     * List workflows.
     *
     * Lists every workflow that can be run, sorted by id.
     *
     * `GET /v1/execution/workflows` · scopes: workflows:read · answers: 200, 400, 401, 403, 406, 429, 500, 503
     */
    listWorkflows: (init?: MaybeOptionalInit<paths['/v1/execution/workflows'], 'get'>) => client.GET('/v1/execution/workflows', init ?? {}),
    /**
     * Get a workflow.
     *
     * Reads one workflow with the JSON Schema of its variables.
     *
     * `GET /v1/execution/workflows/{workflowId}` · scopes: workflows:read · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
     */
    getWorkflow: (init: MaybeOptionalInit<paths['/v1/execution/workflows/{workflowId}'], 'get'>) => client.GET('/v1/execution/workflows/{workflowId}', init),
  }
}
