// Written by `npm run generate` from openapi/execution.v1.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** A service built from the same document sends this as `X-Document-Hash`. */
export const documentHash = '270a03399bbba647'

/** Every operation of Execution API 1.2.0 as a function. */
export interface ExecutionV1Operations {
  /**
   * Queue a remote run of a workflow.
   *
   * Queues a run, and responds as soon as the run is stored durably. Every call creates a new run unless it repeats
   * an `Idempotency-Key`. `variableData` must be valid by the workflow's `variablesSchema`.
   *
   * Although HTTP takes PUT for idempotent, a call without `Idempotency-Key` is not: a proxy that repeats a PUT whose server
   * has ended, as nginx does by default, or that gives up before the time that `Prefer` allows, creates a second run. Send a
   * key, and let proxies repeat no PUT and wait for at least 60 seconds.
   *
   * `PUT /v1/execution/queue-remote/{workflowId}` · scopes: runs:write or runs:write, browser-contexts:use · responses: 200, 202, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503, 507
   */
  queueRemoteRun: Operation<operations, 'queueRemoteRun'>
  /**
   * Queue up to 1000 runs, all or none.
   *
   * Queues a run for each entry of `runs`, of any workflows, in one durable write: all are stored, or none is. The
   * response has the runs in the order of the entries. The response 400 has an error for each entry
   * that cannot be queued, up to 20 of them. The body may have 5 MiB, and the `variableData` of an entry 1 MiB as JSON.
   *
   * Repeating an `Idempotency-Key` returns the runs of the first call in their current state, but with `output`
   * `null`, since the outputs may be large: read them with `getRun`. A key with scopes needs
   * `browser-contexts:use` if an entry has a `browserContextId`.
   *
   * `POST /v1/execution/queue-remote-batch` · scopes: runs:write or runs:write, browser-contexts:use · responses: 202, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503, 507
   */
  queueRemoteRunBatch: Operation<operations, 'queueRemoteRunBatch'>
  /**
   * List runs, newest first.
   *
   * Lists the account's runs, newest first, in pages. A run must match all filters. A page ends before the run with
   * which its runs would exceed 1 MiB, so it may have fewer runs than `limit` although `nextCursor` is set.
   *
   * Every list is read from an index, whatever the number of runs. Therefore a request may have only one of
   * `browserContextId`, `tag`, `reason`, `apiKeyId`, `scheduleId`, `parentRunId` and `errorWord`, and none of `apiKeyId`,
   * `scheduleId` and `parentRunId` can be combined with `workflowId`. Otherwise it is refused (400). `status`,
   * `createdAfter`, `createdBefore` and `order` go with all.
   *
   * Lines of logs have no index, so `logText` is refused as every unknown parameter. Search the words of errors with
   * `errorWord`, or give runs a tag.
   *
   * `GET /v1/execution/runs` · scopes: runs:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listRuns: Operation<operations, 'listRuns'>
  /**
   * Cancel the runs of a filter.
   *
   * Cancels the runs that match the filters and were queued before this call, like `cancelRun`, oldest first. Without
   * `status`, these are queued, running and waiting ones; other statuses are refused. The response does not wait for it: read the
   * bulk action. At most 100,000 runs are worked on.
   *
   * The filters are those of `listRuns`, with the same permitted combinations.
   *
   * `POST /v1/execution/runs/bulk-cancel` · scopes: runs:write · responses: 202, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  bulkCancelRuns: Operation<operations, 'bulkCancelRuns'>
  /**
   * Run the finished runs of a filter again.
   *
   * Queues a new run for each finished run that matches the filters and was queued before this call, like `rerunRun`
   * without a body, oldest first. Without `status`, these are finished runs of any status; other statuses are refused.
   * The response does not wait for it: read the bulk action. At most 100,000 runs are worked on; each gets exactly one new
   * run.
   *
   * The filters are those of `listRuns`, with the same permitted combinations. A key with scopes needs
   * `browser-contexts:use` if they have a `browserContextId`; without it, runs with a browser context fail.
   *
   * `POST /v1/execution/runs/bulk-rerun` · scopes: runs:write or runs:write, browser-contexts:use · responses: 202, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  bulkRerunRuns: Operation<operations, 'bulkRerunRuns'>
  /**
   * Get a bulk action.
   *
   * Returns the progress of a bulk action of the account. It is kept as long as runs are.
   *
   * `GET /v1/execution/bulk-actions/{bulkActionId}` · scopes: runs:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getBulkAction: Operation<operations, 'getBulkAction'>
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
   * Erases a finished run with its variables, output, events and artifacts, permanently. A run that is queued, waiting or
   * running is refused; cancel it first. Its `Idempotency-Key` stays used until its 24 hours are over: repeating the
   * request then gets 409, so that it does not run a second time.
   *
   * `DELETE /v1/execution/runs/{runId}` · scopes: runs:write · responses: 204, 400, 401, 403, 404, 409, 429, 500, 503
   */
  deleteRun: Operation<operations, 'deleteRun'>
  /**
   * Cancel a run.
   *
   * A queued or waiting run becomes `cancelled` at once. A running one gets `cancelRequested`: its workflow's AbortSignal is
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
   * as `Last-Event-ID`. A browser's EventSource cannot use this operation, because it cannot send the header; use
   * fetch. The stream ends within a second after the API key is deleted, or the key or token expires.
   *
   * `GET /v1/execution/runs/{runId}/events` · scopes: runs:read · responses: 200, 204, 400, 401, 403, 404, 406, 429, 500, 503
   */
  streamRunEvents: Operation<operations, 'streamRunEvents', 'stream'>
  /**
   * Run a finished run again.
   *
   * Queues a new run of the same workflow. It has the variables, secrets, priority, tags, browser context and
   * `persistContext` of the finished run, except for what this request changes, and its concurrency key if the workflow
   * still has a limit per key. With `fromStep`, it does not repeat the steps before that one. Its delay, expiry and schedule are not repeated. The current deployment validates and
   * executes the new run, whose `rerunOf` is the finished one.
   *
   * The body may be absent. Every call queues another run unless it repeats an `Idempotency-Key`. A key with scopes
   * needs `browser-contexts:use` if the finished run has a browser context.
   *
   * `POST /v1/execution/runs/{runId}/rerun` · scopes: runs:write or runs:write, browser-contexts:use · responses: 202, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503, 507
   */
  rerunRun: Operation<operations, 'rerunRun'>
  /**
   * Download an artifact of a run.
   *
   * Returns a file of the run: one that its workflow created, such as a PDF, or evidence of what its browser did, such as
   * a screenshot. The run lists its artifacts. The
   * service removes an artifact at its `expiresAt`; after that, the response is 404. To resume a download, send
   * `Range` with the first missing byte, and `If-Range` with the `ETag` of the first response.
   *
   * `GET /v1/execution/runs/{runId}/artifacts/{artifactName}` · scopes: runs:read · responses: 200, 206, 400, 401, 403, 404, 406, 416, 429, 500, 503
   */
  getRunArtifact: Operation<operations, 'getRunArtifact', 'blob'>
  /**
   * List waits.
   *
   * Lists what the account's runs wait for, oldest first, in pages. With `kind=answer&status=open` it is an inbox of what
   * people and systems have to answer.
   *
   * `GET /v1/execution/waits` · scopes: runs:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listWaits: Operation<operations, 'listWaits'>
  /**
   * List the waits of a run.
   *
   * Lists what the run waits for and has waited for, oldest first, in pages.
   *
   * `GET /v1/execution/runs/{runId}/waits` · scopes: runs:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  listRunWaits: Operation<operations, 'listRunWaits'>
  /**
   * Answer a wait.
   *
   * Stores the answer to a wait that the run's workflow declares, and lets the run go on. The first answer counts: the
   * same answer again gets 200, another one 409. An answer may come before the run has reached its wait.
   *
   * `PUT /v1/execution/runs/{runId}/waits/{name}` · scopes: waits:write · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  completeWait: Operation<operations, 'completeWait'>
  /**
   * Create a link to answer a wait.
   *
   * Creates an address at which a person without an account answers the wait, once. The page shows the title, what the
   * workflow shows, and a form made from the answer's schema. Opening the page changes nothing. The address is a secret:
   * whoever has it may answer. It works until it expires, as long as the key that created it may write waits.
   *
   * `POST /v1/execution/runs/{runId}/waits/{name}/links` · scopes: waits:write · responses: 201, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  createWaitLink: Operation<operations, 'createWaitLink'>
  /**
   * Get the usage by workflow and day.
   *
   * Returns what the account has used on each day, for each workflow with runs that finished on it. Usage remains for three
   * years, whatever is deleted in the meantime. Days are in UTC.
   *
   * A run counts once, on the day on which it finished, with all of its attempts: also those that failed, that waited in
   * parts, and that workers outside of the service executed. The time of an attempt is that from its claim to its end, or
   * to its suspension; that of a lost worker ends with its lease. An attempt that was handed back counts as none. A run that
   * has not finished counts later. A run counts about a minute after it finished: `countedUntil` says which do.
   *
   * A request for more than 20,000 rows of workflows and days is refused: ask for fewer days at once.
   *
   * A key that is restricted to workflows gets 403.
   *
   * `GET /v1/execution/usage` · scopes: runs:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  getUsage: Operation<operations, 'getUsage'>
  /**
   * List workers.
   *
   * Lists the workers that can execute runs of this account, in the order in which they started: its own, and those of the
   * service, which have no workflows here. A worker that has sent nothing for `leaseSeconds` is not listed.
   *
   * `GET /v1/execution/workers` · scopes: runs:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listWorkers: Operation<operations, 'listWorkers'>
  /**
   * Register a worker.
   *
   * Announces a worker and the workflows that it executes. They are workflows of the account from then on: callers queue their
   * runs, and see them in `listWorkflows` and the live document. The highest version of a workflow that was registered is
   * current. A worker executes runs of its workflows that were queued for the same major version. The same request again
   * renews the registration.
   *
   * New definitions are checked before the response, one request of an account at a time, and two at a time for all
   * accounts, in turn. An account may have 40 such requests at once; others get 429.
   *
   * The worker belongs to the API key: with another key, its other operations respond with 404, reports of its attempts
   * with 409, and a registration of the same id with 409 until the worker has ended. With a key that is restricted to
   * workflows, a registration with another workflow gets 403, and `deployed` is for its workflows only.
   *
   * `PUT /v1/execution/workers/{workerId}` · scopes: runs:execute · responses: 200, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  registerWorker: Operation<operations, 'registerWorker'>
  /**
   * Sign a worker off.
   *
   * Removes the worker. Its runs go back to the queue at once, and count no attempt.
   *
   * `DELETE /v1/execution/workers/{workerId}` · scopes: runs:execute · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteWorker: Operation<operations, 'deleteWorker'>
  /**
   * Claim runs.
   *
   * Leases runs to the worker, which executes them. Without any, the service waits up to `waitSeconds`. Leases of the worker
   * that `executing` does not list are answered again: the response to an earlier call was lost. A worker sends one such
   * request at a time.
   *
   * `POST /v1/execution/workers/{workerId}/claims` · scopes: runs:execute · responses: 200, 204, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  claimRuns: Operation<operations, 'claimRuns'>
  /**
   * Renew leases.
   *
   * Extends the leases of the worker. Send it three times within `leaseSeconds`; a run whose lease ends goes back to the queue.
   *
   * `POST /v1/execution/workers/{workerId}/leases` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  renewLeases: Operation<operations, 'renewLeases'>
  /**
   * Store the result of a step.
   *
   * Stores the result of a finished step. Later attempts get it instead of executing the step again. The same result again
   * changes nothing.
   *
   * `PUT /v1/execution/runs/{runId}/attempts/{attempt}/steps/{stepName}` · scopes: runs:execute · responses: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  putRunStep: Operation<operations, 'putRunStep'>
  /**
   * Report events of an attempt.
   *
   * Appends log lines, progress, and states of steps. The service masks secrets, and gives each event the time at which it
   * arrives. It skips those that it has by `position`, so the request may be repeated.
   *
   * `POST /v1/execution/runs/{runId}/attempts/{attempt}/events` · scopes: runs:execute · responses: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  appendRunEvents: Operation<operations, 'appendRunEvents'>
  /**
   * Store an artifact.
   *
   * Stores a file of the attempt, in place of an earlier one of the same name. An attempt may write 100 times, including
   * replacements, and have 7 files of evidence; further files are refused with 400.
   *
   * `PUT /v1/execution/runs/{runId}/attempts/{attempt}/artifacts/{artifactName}` · scopes: runs:execute · responses: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  putAttemptArtifact: Operation<operations, 'putAttemptArtifact'>
  /**
   * Read the browser context of a run.
   *
   * Returns the state with which the browser of the attempt starts: the current version of the run's browser context. Unless
   * `persistContext` is `never`, no other run or caller changes it during the attempt. `completeAttempt` stores the state
   * at the end. It gives access to every account that the browser is signed in to: write it to no disk or log.
   *
   * `GET /v1/execution/runs/{runId}/attempts/{attempt}/browser-context` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 409, 429, 500, 503
   */
  getAttemptBrowserContext: Operation<operations, 'getAttemptBrowserContext'>
  /**
   * Read a file of a run.
   *
   * Returns the content of a file in the variables of the run, which `files` of the claim lists. The worker writes it into
   * a temporary directory of the attempt, and gives its code the path in place of the file's id.
   *
   * `GET /v1/execution/runs/{runId}/attempts/{attempt}/files/{fileId}` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 409, 429, 500, 503
   */
  getAttemptFile: Operation<operations, 'getAttemptFile', 'blob'>
  /**
   * Wait for viewers.
   *
   * Returns the open live views of the attempt, each of a dashboard process in which people watch its browser. While there
   * are none but those in `except`, the service waits up to `waitSeconds`. Send it from when the browser is open. A
   * worker that never sends it has no live view; its runs are executed the same.
   *
   * `GET /v1/execution/runs/{runId}/attempts/{attempt}/live-views` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 409, 429, 500, 503
   */
  getLiveViews: Operation<operations, 'getLiveViews'>
  /**
   * Show a browser to its viewers.
   *
   * Sends what the browser of the attempt shows, and returns what its viewers do. Frames are not stored. Two requests are open
   * at a time: one has `waitForCommands`, and the other sends the latest frame, tabs and control. The next of each follows
   * when it was answered. Without a request that waits for commands for five seconds, viewers see that the connection has
   * ended. Each connection begins with the frame, tabs and control as they are.
   *
   * `POST /v1/execution/runs/{runId}/attempts/{attempt}/live-views/{viewId}` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  updateLiveView: Operation<operations, 'updateLiveView'>
  /**
   * Complete an attempt.
   *
   * Ends the attempt with its outcome. The run finishes, or is queued again as its workflow's `retry` says. An output that does
   * not fit its schema fails the attempt with the reason `outputInvalid`.
   *
   * `POST /v1/execution/runs/{runId}/attempts/{attempt}/complete` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  completeAttempt: Operation<operations, 'completeAttempt'>
  /**
   * Wait in an attempt.
   *
   * Stores what the run waits for, in the order in which its code reaches it, and returns what has ended. Otherwise it suspends
   * the run: the attempt is over for this worker. The run is claimed again when one of its waits has ended, with the outcome
   * among `steps`.
   *
   * In `refused` are calls of other workflows with a key that is restricted to workflows, and calls with a browser context
   * with a key that has scopes but not `browser-contexts:use`.
   *
   * `POST /v1/execution/runs/{runId}/attempts/{attempt}/suspend` · scopes: runs:execute or runs:execute, browser-contexts:use · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  suspendAttempt: Operation<operations, 'suspendAttempt'>
  /**
   * Hand a run back.
   *
   * Returns the run to the queue without outcome, and counts no attempt. With a message, the worker cannot execute it: the run
   * waits 1, 2, 4, … at most 300 seconds, and shows the message.
   *
   * `POST /v1/execution/runs/{runId}/attempts/{attempt}/hand-back` · scopes: runs:execute · responses: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  handBackAttempt: Operation<operations, 'handBackAttempt'>
  /**
   * Read the code of a deployment.
   *
   * Returns the definitions and the files of a deployment, while a worker of the API key executes one of its runs; 404 for any
   * other one. It never changes: the id is the SHA-256 of its content. A key that is restricted to workflows gets these, and
   * the files that they need.
   *
   * `GET /v1/execution/deployments/{deploymentId}/bundle` · scopes: runs:execute · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getDeploymentBundle: Operation<operations, 'getDeploymentBundle', 'blob'>
  /**
   * List secrets.
   *
   * Lists the account's secrets by name, in pages, with the workflows that declare them. No response contains a value.
   *
   * `GET /v1/execution/secrets` · scopes: secrets:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listSecrets: Operation<operations, 'listSecrets'>
  /**
   * Store a secret.
   *
   * Stores a secret, or a new version of it. An account has at most 100. Its value is encrypted, and no response contains it.
   *
   * A workflow gets a secret that it declares when an attempt starts: running attempts keep the value that they have. Runs
   * that wait for the secret go on at once. The service masks its value in whatever a run of such a workflow reports.
   *
   * `PUT /v1/execution/secrets/{name}` · scopes: secrets:write · responses: 200, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  putSecret: Operation<operations, 'putSecret'>
  /**
   * Delete a secret.
   *
   * Deletes a secret, in every version. Later attempts do not get it: runs of workflows that declare it wait until it is stored again.
   *
   * `DELETE /v1/execution/secrets/{name}` · scopes: secrets:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteSecret: Operation<operations, 'deleteSecret'>
  /**
   * List settings.
   *
   * Lists the account's settings by name, in pages, with their values and the workflows that declare them.
   *
   * `GET /v1/execution/settings` · scopes: secrets:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listSettings: Operation<operations, 'listSettings'>
  /**
   * Store a setting.
   *
   * Stores a setting, or a new version of it. An account has at most 100. A setting is not a secret: responses and logs may
   * show its value.
   *
   * A workflow that declares the setting has a schema for it. A run whose workflow's schema the value does not fit waits,
   * with `waitingFor: setting`, until a value is stored that does. Running attempts keep the value that they have.
   *
   * `PUT /v1/execution/settings/{name}` · scopes: secrets:write · responses: 200, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  putSetting: Operation<operations, 'putSetting'>
  /**
   * Delete a setting.
   *
   * Deletes a setting. Runs of workflows that declare it wait until it is stored again.
   *
   * `DELETE /v1/execution/settings/{name}` · scopes: secrets:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteSetting: Operation<operations, 'deleteSetting'>
  /**
   * Upload a file.
   *
   * Stores a file, which runs take as variables with `format: file`: the caller gives the file's `id`, and the workflow
   * gets a path. The body is the content of the file, and `Content-Type` its media type. The service reads it while it
   * arrives: up to 100 MiB, unless the operator has set another limit (`FILE_MAX_MB`). A file may be empty.
   *
   * The same content with the same name and media type is the same file, so that a repeated call returns it again, with
   * a later `expiresAt`. A file that no run and no schedule refers to is deleted at its `expiresAt`.
   *
   * The variables of a run may name 100 files. A request to queue a run, or a schedule, whose variables name more, or a
   * file that the account does not have, gets 400. A key that is restricted to workflows gets 403 here.
   *
   * The content must keep arriving: it has 20 seconds, and one more for each 64 KiB that has arrived.
   *
   * `POST /v1/execution/files` · scopes: files:write · responses: 201, 400, 401, 403, 406, 413, 415, 429, 500, 503, 507
   */
  createFile: Operation<operations, 'createFile'>
  /**
   * Download a file.
   *
   * Returns the content of a file, with the media type that it was uploaded with if that is one of those below, and
   * otherwise as `application/octet-stream`. To resume a download, send `Range` with the first missing byte, and
   * `If-Range` with the `ETag` of the first response.
   *
   * `GET /v1/execution/files/{fileId}` · scopes: files:read · responses: 200, 206, 400, 401, 403, 404, 406, 416, 429, 500, 503
   */
  getFile: Operation<operations, 'getFile', 'blob'>
  /**
   * Delete a file.
   *
   * Deletes a file with its content. A file that an unfinished run or a schedule refers to stays (409). Finished runs keep
   * its id in their variables: running one of them again is refused then.
   *
   * `DELETE /v1/execution/files/{fileId}` · scopes: files:write · responses: 204, 400, 401, 403, 404, 409, 429, 500, 503
   */
  deleteFile: Operation<operations, 'deleteFile'>
  /**
   * Create a token that reads one run.
   *
   * Creates a token with which a web page, for example, can read and follow one run: getRun, streamRunEvents and
   * getRunArtifact accept it in place of the API key, for this run only. It expires after the given time, or earlier if
   * the API key that created it is deleted or expires. It shares the rate limit of that key. The service does not store
   * tokens: each call creates another one.
   *
   * `POST /v1/execution/run-tokens` · scopes: runs:read · responses: 201, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  createRunToken: Operation<operations, 'createRunToken'>
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
  /**
   * Get this document with an operation for each workflow.
   *
   * Returns this OpenAPI document with one more operation for each workflow that can be run, such as
   * `PUT /v1/execution/queue-remote/count-words`, which is `queueRemoteRun` with the types of the workflow's variables
   * and output, and for each wait that workflows declare, such as
   * `PUT /v1/execution/runs/{runId}/waits/approval`, which is `completeWait` with the types of the answers. Generate a
   * client from it, or its types. Its `servers` are the addresses of this service.
   *
   * The `operationId` of a workflow is `queue` and the words of its id, such as `queueCountWords`. `_` and 8 digits of
   * the SHA-256 of the id are appended, as in `queueCountWords_2f1a90c4`, if the id has characters other than lower-case
   * letters, digits and single hyphens, if one of its words begins with a digit, or if it begins with `remote`. Names
   * therefore do not collide, and do not depend on other workflows. `x-workflow-id` has the id. A member of
   * `variableData` or of an answer that has a default is not required. Secrets in an output are `********`.
   *
   * The `operationId` for a wait is `completeWait` and its name, such as `completeWaitApproval`, with digits appended in
   * the same way unless the name has only letters and digits and begins with a lower-case letter. `x-wait-name` has the
   * name. Where several workflows declare a wait of the same name, an answer has the type of any of them, and
   * `x-workflow-answers` has the component for each workflow. Which one applies depends on the run.
   *
   * The response may be several megabytes long. `ETag` identifies it: send it as `If-None-Match` to read the document only
   * if it has changed.
   *
   * `GET /v1/execution/openapi.json` · scopes: workflows:read · responses: 200, 304, 400, 401, 403, 406, 429, 500, 503
   */
  getWorkflowsDocument: Operation<operations, 'getWorkflowsDocument'>
  /**
   * List deployments.
   *
   * Lists the account's own deployments, the newest first. Of those for all accounts, which the operator makes, the page
   * names the current one. Own deployments that have not been current for the retention of runs are deleted, unless an unfinished run
   * needs them.
   *
   * `GET /v1/execution/deployments` · scopes: deployments:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listDeployments: Operation<operations, 'listDeployments'>
  /**
   * Deploy workflows.
   *
   * Stores a bundle of workflows, and makes it the account's current deployment: from then on, the account sees these
   * workflows in addition to those of all accounts, and in place of those with the same id. The workflows of its
   * previous deployment that the bundle lacks get no new runs. Queued runs are executed by the deployment that they were
   * queued under.
   *
   * The body has the modules with everything that they import, as `workflows build` prints it. The service loads each
   * module once, in a separate process that may take 20 seconds, and reads the definition from its default export, so
   * that nothing depends on what the caller says about it. What is no valid workflow is refused with 400, and a
   * version that breaks callers of the one before with 409, unless its major version rises or `allowBreaking` is set.
   * Packages with native code are not in the bundle: `externals` names them, and the service and its workers must have
   * them installed.
   *
   * The same content again changes nothing and gets 200 with the same deployment; its id is the SHA-256 of the content.
   * The operator must have set `API_DEPLOYMENTS` to `on`, otherwise every bundle gets 409. A process describes one
   * bundle at a time, and an account may have two of them in a process; another one gets 429. Deployments count for the
   * storage quota with the size of their files.
   *
   * `POST /v1/execution/deployments` · scopes: deployments:write · responses: 200, 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503, 507
   */
  createDeployment: Operation<operations, 'createDeployment'>
  /**
   * Return to a deployment.
   *
   * Makes a deployment of the account current again, for example the one before a faulty one. The deployment for all
   * accounts, `installationDeployment` of `listDeployments`, sets the account's own aside: its callers then see the
   * workflows that all accounts see. It is compared with the current one as a new deployment is: what breaks callers gets
   * 409, unless `allowBreaking` is set. Activating the current deployment changes nothing.
   *
   * `POST /v1/execution/deployments/{deploymentId}/activate` · scopes: deployments:write · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  activateDeployment: Operation<operations, 'activateDeployment'>
  /**
   * List webhook endpoints.
   *
   * Lists the account's webhook endpoints, newest first, in pages.
   *
   * `GET /v1/execution/webhook-endpoints` · scopes: webhooks:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listWebhookEndpoints: Operation<operations, 'listWebhookEndpoints'>
  /**
   * Create a webhook endpoint.
   *
   * Registers a URL that gets a signed request for each run that ends after the response. An account has at most 20
   * endpoints.
   *
   * The response is the only one that contains the secret. Verify every request with it by the Standard Webhooks
   * specification; the client exports `verifyWebhook`.
   *
   * `POST /v1/execution/webhook-endpoints` · scopes: webhooks:write · responses: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  createWebhookEndpoint: Operation<operations, 'createWebhookEndpoint'>
  /**
   * Get a webhook endpoint.
   *
   * Returns an endpoint, without its secret.
   *
   * `GET /v1/execution/webhook-endpoints/{endpointId}` · scopes: webhooks:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getWebhookEndpoint: Operation<operations, 'getWebhookEndpoint'>
  /**
   * Change a webhook endpoint.
   *
   * Changes the members that the body contains. `enabled: true` enables a disabled endpoint: its pending deliveries are
   * attempted again at once. It gets no events of runs that ended while it was disabled.
   *
   * `PATCH /v1/execution/webhook-endpoints/{endpointId}` · scopes: webhooks:write · responses: 200, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  updateWebhookEndpoint: Operation<operations, 'updateWebhookEndpoint'>
  /**
   * Delete a webhook endpoint.
   *
   * Deletes an endpoint with its secret and its deliveries. A request that is being sent may still arrive.
   *
   * `DELETE /v1/execution/webhook-endpoints/{endpointId}` · scopes: webhooks:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteWebhookEndpoint: Operation<operations, 'deleteWebhookEndpoint'>
  /**
   * Replace the secret of a webhook endpoint.
   *
   * Creates a new secret, which only this response contains. For 24 hours, requests are signed with the new and the
   * previous secret. Another rotation within this time ends the use of the oldest.
   *
   * `POST /v1/execution/webhook-endpoints/{endpointId}/rotate-secret` · scopes: webhooks:write · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  rotateWebhookSecret: Operation<operations, 'rotateWebhookSecret'>
  /**
   * Send a test event.
   *
   * Queues a delivery of the event `webhook.test`, whatever the endpoint's `events`. A disabled endpoint gets it when it is
   * enabled. Read the outcome with `listWebhookDeliveries`.
   *
   * `POST /v1/execution/webhook-endpoints/{endpointId}/test` · scopes: webhooks:write · responses: 202, 400, 401, 403, 404, 406, 429, 500, 503
   */
  sendTestWebhook: Operation<operations, 'sendTestWebhook'>
  /**
   * List deliveries of a webhook endpoint.
   *
   * Lists the endpoint's deliveries, newest first, in pages, each with its last attempt. They are kept as long as
   * runs, and at least four days.
   *
   * `GET /v1/execution/webhook-endpoints/{endpointId}/deliveries` · scopes: webhooks:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  listWebhookDeliveries: Operation<operations, 'listWebhookDeliveries'>
  /**
   * Deliver an event again.
   *
   * Queues the delivery again with the same id and event, to be sent at once and retried for three days. A delivery that
   * is still pending is attempted at once.
   *
   * `POST /v1/execution/webhook-endpoints/{endpointId}/deliveries/{deliveryId}/redeliver` · scopes: webhooks:write · responses: 202, 400, 401, 403, 404, 406, 429, 500, 503
   */
  redeliverWebhook: Operation<operations, 'redeliverWebhook'>
  /**
   * Deliver the events since a given time again.
   *
   * Queues again the deliveries that were created at or after `since` and are not pending, oldest first, at most 1,000. If
   * there are more, `nextSince` is the `since` of the next call.
   *
   * `POST /v1/execution/webhook-endpoints/{endpointId}/redeliver` · scopes: webhooks:write · responses: 202, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  redeliverWebhooks: Operation<operations, 'redeliverWebhooks'>
  /**
   * List notification rules.
   *
   * Lists the account's notification rules, newest first, in pages.
   *
   * `GET /v1/execution/notification-rules` · scopes: notifications:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listNotificationRules: Operation<operations, 'listNotificationRules'>
  /**
   * Create a notification rule.
   *
   * Sends messages about what happens after the response, by email, to a Slack-compatible incoming webhook, or as a Standard
   * Webhook. An account has at most 20 rules. Its messages go to at most 500 email addresses within an hour; those beyond wait.
   *
   * The first event of a workflow is sent at once. Events of the next ten minutes are sent together after them, in one
   * message that counts them and names the first ten.
   *
   * For `channel: webhook`, the response is the only one that contains the secret of the signatures.
   *
   * `POST /v1/execution/notification-rules` · scopes: notifications:write · responses: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  createNotificationRule: Operation<operations, 'createNotificationRule'>
  /**
   * Get a notification rule.
   *
   * Returns a rule with its last message, without the address of its webhook and without its secret.
   *
   * `GET /v1/execution/notification-rules/{ruleId}` · scopes: notifications:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getNotificationRule: Operation<operations, 'getNotificationRule'>
  /**
   * Change a notification rule.
   *
   * Changes the members that the body contains. The channel of a rule does not change. A disabled rule collects no events;
   * its messages that are not delivered yet are still sent.
   *
   * `PATCH /v1/execution/notification-rules/{ruleId}` · scopes: notifications:write · responses: 200, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  updateNotificationRule: Operation<operations, 'updateNotificationRule'>
  /**
   * Delete a notification rule.
   *
   * Deletes a rule with its secrets and its messages. A message that is being sent may still arrive.
   *
   * `DELETE /v1/execution/notification-rules/{ruleId}` · scopes: notifications:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteNotificationRule: Operation<operations, 'deleteNotificationRule'>
  /**
   * Send a test message.
   *
   * Queues a message that says that it is a test, also for a disabled rule. Within a minute, further calls return the same
   * message and send nothing. Read the outcome in `lastMessage` of the rule.
   *
   * `POST /v1/execution/notification-rules/{ruleId}/test` · scopes: notifications:write · responses: 202, 400, 401, 403, 404, 406, 429, 500, 503
   */
  testNotificationRule: Operation<operations, 'testNotificationRule'>
  /**
   * List schedules.
   *
   * Lists the account's schedules, newest first, in pages.
   *
   * `GET /v1/execution/schedules` · scopes: schedules:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listSchedules: Operation<operations, 'listSchedules'>
  /**
   * Create a schedule.
   *
   * Creates a schedule, which queues a run of its workflow at each of its times: those of a cron expression in a time
   * zone, or every `intervalSeconds` from now on. Exactly one of `cron` and `intervalSeconds` is required, and
   * `timeZone` goes with `cron`.
   *
   * The variables must be valid by the workflow's `variablesSchema`. A run gets the defaults of the deployment that is
   * current at its time. A schedule that a later deployment does not fit is paused, with `pausedReason`. A key with
   * scopes needs `browser-contexts:use` for a schedule with a `browserContextId`. Deleting the key does not stop the
   * schedule.
   *
   * `POST /v1/execution/schedules` · scopes: schedules:write or schedules:write, browser-contexts:use · responses: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  createSchedule: Operation<operations, 'createSchedule'>
  /**
   * Get a schedule.
   *
   * Returns a schedule with its next five times and its last run.
   *
   * `GET /v1/execution/schedules/{scheduleId}` · scopes: schedules:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getSchedule: Operation<operations, 'getSchedule'>
  /**
   * Change, pause or resume a schedule.
   *
   * Changes the members that the body contains. `cron` replaces an interval and `intervalSeconds` a cron expression.
   * `paused: true` pauses the schedule, and `paused: false` resumes it; times that pass while it is paused get no runs.
   * The workflow cannot be changed.
   *
   * `variableData` replaces all variables, including secrets. Only variables that equal those of a response, with
   * `********` for every secret, keep the secrets. A key with scopes needs `browser-contexts:use` to name a browser
   * context, and to change the variables of a schedule that has one.
   *
   * `PATCH /v1/execution/schedules/{scheduleId}` · scopes: schedules:write or schedules:write, browser-contexts:use · responses: 200, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  updateSchedule: Operation<operations, 'updateSchedule'>
  /**
   * Delete a schedule.
   *
   * Deletes a schedule with its variables. Its runs stay as they are.
   *
   * `DELETE /v1/execution/schedules/{scheduleId}` · scopes: schedules:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteSchedule: Operation<operations, 'deleteSchedule'>
  /**
   * Run a schedule now.
   *
   * Queues a run of the schedule now, also when it is paused and whatever its `overlap`. The schedule's times stay as
   * they are. Every call queues another run. A key with scopes needs `browser-contexts:use` for a schedule with a
   * `browserContextId`.
   *
   * `POST /v1/execution/schedules/{scheduleId}/trigger` · scopes: schedules:write or schedules:write, browser-contexts:use · responses: 202, 400, 401, 403, 404, 406, 409, 429, 500, 503, 507
   */
  triggerSchedule: Operation<operations, 'triggerSchedule'>
}

/** How to call the operations of Execution API 1.2.0. */
export const executionV1Operations: SurfaceDescription<ExecutionV1Operations> = {
  document: 'execution.v1',
  documentHash,
  credential: (apiKey) => ({ Authorization: `Bearer ${apiKey}` }),
  operations: {
    queueRemoteRun: { method: 'PUT', path: '/v1/execution/queue-remote/{workflowId}', retry: 'withIdempotencyKey' },
    queueRemoteRunBatch: { method: 'POST', path: '/v1/execution/queue-remote-batch', retry: 'withIdempotencyKey' },
    listRuns: { method: 'GET', path: '/v1/execution/runs', retry: 'always' },
    bulkCancelRuns: { method: 'POST', path: '/v1/execution/runs/bulk-cancel', retry: 'withIdempotencyKey' },
    bulkRerunRuns: { method: 'POST', path: '/v1/execution/runs/bulk-rerun', retry: 'withIdempotencyKey' },
    getBulkAction: { method: 'GET', path: '/v1/execution/bulk-actions/{bulkActionId}', retry: 'always' },
    getRun: { method: 'GET', path: '/v1/execution/runs/{runId}', retry: 'always' },
    deleteRun: { method: 'DELETE', path: '/v1/execution/runs/{runId}', retry: 'always' },
    cancelRun: { method: 'POST', path: '/v1/execution/runs/{runId}/cancel', retry: 'always' },
    streamRunEvents: { method: 'GET', path: '/v1/execution/runs/{runId}/events', retry: 'always', parseAs: 'stream' },
    rerunRun: { method: 'POST', path: '/v1/execution/runs/{runId}/rerun', retry: 'withIdempotencyKey' },
    getRunArtifact: { method: 'GET', path: '/v1/execution/runs/{runId}/artifacts/{artifactName}', retry: 'always', parseAs: 'blob' },
    listWaits: { method: 'GET', path: '/v1/execution/waits', retry: 'always' },
    listRunWaits: { method: 'GET', path: '/v1/execution/runs/{runId}/waits', retry: 'always' },
    completeWait: { method: 'PUT', path: '/v1/execution/runs/{runId}/waits/{name}', retry: 'always' },
    createWaitLink: { method: 'POST', path: '/v1/execution/runs/{runId}/waits/{name}/links', retry: 'ifRefused' },
    getUsage: { method: 'GET', path: '/v1/execution/usage', retry: 'always' },
    listWorkers: { method: 'GET', path: '/v1/execution/workers', retry: 'always' },
    registerWorker: { method: 'PUT', path: '/v1/execution/workers/{workerId}', retry: 'always' },
    deleteWorker: { method: 'DELETE', path: '/v1/execution/workers/{workerId}', retry: 'always' },
    claimRuns: { method: 'POST', path: '/v1/execution/workers/{workerId}/claims', retry: 'always' },
    renewLeases: { method: 'POST', path: '/v1/execution/workers/{workerId}/leases', retry: 'always' },
    putRunStep: { method: 'PUT', path: '/v1/execution/runs/{runId}/attempts/{attempt}/steps/{stepName}', retry: 'always' },
    appendRunEvents: { method: 'POST', path: '/v1/execution/runs/{runId}/attempts/{attempt}/events', retry: 'always' },
    putAttemptArtifact: { method: 'PUT', path: '/v1/execution/runs/{runId}/attempts/{attempt}/artifacts/{artifactName}', retry: 'always' },
    getAttemptBrowserContext: { method: 'GET', path: '/v1/execution/runs/{runId}/attempts/{attempt}/browser-context', retry: 'always' },
    getAttemptFile: { method: 'GET', path: '/v1/execution/runs/{runId}/attempts/{attempt}/files/{fileId}', retry: 'always', parseAs: 'blob' },
    getLiveViews: { method: 'GET', path: '/v1/execution/runs/{runId}/attempts/{attempt}/live-views', retry: 'always' },
    updateLiveView: { method: 'POST', path: '/v1/execution/runs/{runId}/attempts/{attempt}/live-views/{viewId}', retry: 'ifRefused' },
    completeAttempt: { method: 'POST', path: '/v1/execution/runs/{runId}/attempts/{attempt}/complete', retry: 'always' },
    suspendAttempt: { method: 'POST', path: '/v1/execution/runs/{runId}/attempts/{attempt}/suspend', retry: 'always' },
    handBackAttempt: { method: 'POST', path: '/v1/execution/runs/{runId}/attempts/{attempt}/hand-back', retry: 'always' },
    getDeploymentBundle: { method: 'GET', path: '/v1/execution/deployments/{deploymentId}/bundle', retry: 'always', parseAs: 'blob' },
    listSecrets: { method: 'GET', path: '/v1/execution/secrets', retry: 'always' },
    putSecret: { method: 'PUT', path: '/v1/execution/secrets/{name}', retry: 'always' },
    deleteSecret: { method: 'DELETE', path: '/v1/execution/secrets/{name}', retry: 'always' },
    listSettings: { method: 'GET', path: '/v1/execution/settings', retry: 'always' },
    putSetting: { method: 'PUT', path: '/v1/execution/settings/{name}', retry: 'always' },
    deleteSetting: { method: 'DELETE', path: '/v1/execution/settings/{name}', retry: 'always' },
    createFile: { method: 'POST', path: '/v1/execution/files', retry: 'always', body: 'raw' },
    getFile: { method: 'GET', path: '/v1/execution/files/{fileId}', retry: 'always', parseAs: 'blob' },
    deleteFile: { method: 'DELETE', path: '/v1/execution/files/{fileId}', retry: 'always' },
    createRunToken: { method: 'POST', path: '/v1/execution/run-tokens', retry: 'ifRefused' },
    listWorkflows: { method: 'GET', path: '/v1/execution/workflows', retry: 'always' },
    getWorkflow: { method: 'GET', path: '/v1/execution/workflows/{workflowId}', retry: 'always' },
    getWorkflowsDocument: { method: 'GET', path: '/v1/execution/openapi.json', retry: 'always' },
    listDeployments: { method: 'GET', path: '/v1/execution/deployments', retry: 'always' },
    createDeployment: { method: 'POST', path: '/v1/execution/deployments', retry: 'always' },
    activateDeployment: { method: 'POST', path: '/v1/execution/deployments/{deploymentId}/activate', retry: 'always' },
    listWebhookEndpoints: { method: 'GET', path: '/v1/execution/webhook-endpoints', retry: 'always' },
    createWebhookEndpoint: { method: 'POST', path: '/v1/execution/webhook-endpoints', retry: 'ifRefused' },
    getWebhookEndpoint: { method: 'GET', path: '/v1/execution/webhook-endpoints/{endpointId}', retry: 'always' },
    updateWebhookEndpoint: { method: 'PATCH', path: '/v1/execution/webhook-endpoints/{endpointId}', retry: 'ifRefused' },
    deleteWebhookEndpoint: { method: 'DELETE', path: '/v1/execution/webhook-endpoints/{endpointId}', retry: 'always' },
    rotateWebhookSecret: { method: 'POST', path: '/v1/execution/webhook-endpoints/{endpointId}/rotate-secret', retry: 'ifRefused' },
    sendTestWebhook: { method: 'POST', path: '/v1/execution/webhook-endpoints/{endpointId}/test', retry: 'ifRefused' },
    listWebhookDeliveries: { method: 'GET', path: '/v1/execution/webhook-endpoints/{endpointId}/deliveries', retry: 'always' },
    redeliverWebhook: { method: 'POST', path: '/v1/execution/webhook-endpoints/{endpointId}/deliveries/{deliveryId}/redeliver', retry: 'ifRefused' },
    redeliverWebhooks: { method: 'POST', path: '/v1/execution/webhook-endpoints/{endpointId}/redeliver', retry: 'ifRefused' },
    listNotificationRules: { method: 'GET', path: '/v1/execution/notification-rules', retry: 'always' },
    createNotificationRule: { method: 'POST', path: '/v1/execution/notification-rules', retry: 'ifRefused' },
    getNotificationRule: { method: 'GET', path: '/v1/execution/notification-rules/{ruleId}', retry: 'always' },
    updateNotificationRule: { method: 'PATCH', path: '/v1/execution/notification-rules/{ruleId}', retry: 'ifRefused' },
    deleteNotificationRule: { method: 'DELETE', path: '/v1/execution/notification-rules/{ruleId}', retry: 'always' },
    testNotificationRule: { method: 'POST', path: '/v1/execution/notification-rules/{ruleId}/test', retry: 'ifRefused' },
    listSchedules: { method: 'GET', path: '/v1/execution/schedules', retry: 'always' },
    createSchedule: { method: 'POST', path: '/v1/execution/schedules', retry: 'ifRefused' },
    getSchedule: { method: 'GET', path: '/v1/execution/schedules/{scheduleId}', retry: 'always' },
    updateSchedule: { method: 'PATCH', path: '/v1/execution/schedules/{scheduleId}', retry: 'ifRefused' },
    deleteSchedule: { method: 'DELETE', path: '/v1/execution/schedules/{scheduleId}', retry: 'always' },
    triggerSchedule: { method: 'POST', path: '/v1/execution/schedules/{scheduleId}/trigger', retry: 'ifRefused' },
  },
}
