/** Creates the clients of the two APIs. */

import createClient, { type FetchOptions, mergeHeaders } from 'openapi-fetch'
import {
  type BrowserContextAlphaOperations,
  browserContextAlphaOperations,
} from '../../generated/browser-context.alpha/client.ts'
import type * as browserContext from '../../generated/browser-context.alpha/types.ts'
import { type ExecutionV1Operations, executionV1Operations } from '../../generated/execution.v1/client.ts'
import type * as execution from '../../generated/execution.v1/types.ts'
import type { OperationDescription, Result, SurfaceDescription } from './operation.ts'
import {
  type CallOptions,
  type ClientOptions,
  checkOptions,
  type LimitOptions,
  preferredWaitSecondsMax,
  resolveLimits,
  withoutLimits,
} from './options.ts'
import { createList, type List } from './pages.ts'
import {
  aborted,
  invalidRequest,
  isRedirect,
  networkFailure,
  problemFrom,
  redirected,
  timedOut,
  unexpectedResponse,
  unreadable,
} from './problem.ts'
import { createRuns, type Runs } from './runs.ts'
import { mayRetry, pause, retryDelay, timeLimit, unlessAborted, withEndCallback } from './time-limit.ts'
import type { AnyWorkflows, CompleteWait, QueueRemoteRun, WorkflowTypes } from './typed-workflows.ts'

/** The query of `listWorkflows`. `limit` is the page size; `cursor` is the page to start with. */
export type WorkflowFilters = NonNullable<execution.operations['listWorkflows']['parameters']['query']>

export interface Workflows {
  /**
   * Lists all workflows, sorted by id, over all pages.
   *
   * @example
   * for await (const { id, title } of client.workflows.list()) console.log(id, title)
   */
  list(filters?: WorkflowFilters, options?: CallOptions): List<execution.components['schemas']['Workflow']>
}

/**
 * A client of the Execution API: a function for each operationId, and helpers of several requests. `Known` has the types of
 * workflows; see `createExecutionClient`.
 */
export interface ExecutionClient<Known extends WorkflowTypes<Known> = AnyWorkflows>
  extends Omit<ExecutionV1Operations, 'queueRemoteRun' | 'completeWait'> {
  /** Queue a remote run of a workflow, and respond as soon as it is stored. */
  queueRemoteRun: QueueRemoteRun<Known>
  /** Answer what a run waits for. */
  completeWait: CompleteWait<Known>
  /** List all runs, follow a run, wait until it finishes. */
  readonly runs: Runs<Known>
  /** List all workflows. */
  readonly workflows: Workflows
}

/**
 * Creates a client of the Execution API. It keeps no connection open and needs no closing.
 *
 * @example
 * const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey })
 * const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
 *
 * @typeParam Known The `Workflows` of the file that `npx execution-service-client types` writes. With it, ids, variables,
 * outputs and answers of workflows are checked; without it, a client accepts any.
 * @throws {TypeError} if `baseUrl` is empty, or `apiKey` cannot be the value of an API key.
 */
export function createExecutionClient<Known extends WorkflowTypes<Known> = AnyWorkflows>(
  options: ClientOptions,
): ExecutionClient<Known> {
  const operations = createOperations(executionV1Operations, options)
  const list: Workflows['list'] = (filters = {}, callOptions = {}) =>
    createList((cursor) => {
      const query = { ...filters, ...(cursor !== undefined && { cursor }) }
      return operations.listWorkflows({ ...callOptions, params: { query } })
    })
  const client: ExecutionClient = { ...operations, runs: createRuns(operations, options), workflows: { list } }
  // Types of workflows do not exist at run time: the service validates.
  return client as unknown as ExecutionClient<Known>
}

/** The query of `listBrowserContexts`. `limit` is the page size; `cursor` is the page to start with; `name` finds one. */
export type BrowserContextFilters = NonNullable<browserContext.operations['listBrowserContexts']['parameters']['query']>

export interface BrowserContexts {
  /**
   * Lists all browser contexts of the account, newest first, over all pages.
   *
   * @example
   * for await (const { id, name } of client.browserContexts.list()) console.log(id, name)
   */
  list(
    filters?: BrowserContextFilters,
    options?: CallOptions,
  ): List<browserContext.components['schemas']['BrowserContext']>
}

/** A client of the Browser Context API: a function for each operationId, and `browserContexts` to list them all. */
export interface BrowserContextClient extends BrowserContextAlphaOperations {
  /** List all browser contexts. */
  readonly browserContexts: BrowserContexts
}

/**
 * Creates a client of the Browser Context API (alpha). It keeps no connection open and needs no closing.
 *
 * @example
 * const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey })
 * const { data: context, error } = await client.createBrowserContext({ body: { name: 'Shop, signed in' } })
 *
 * @throws {TypeError} if `baseUrl` is empty, or `apiKey` cannot be the value of an API key.
 */
export function createBrowserContextClient(options: ClientOptions): BrowserContextClient {
  const operations = createOperations(browserContextAlphaOperations, options)
  const list: BrowserContexts['list'] = (filters = {}, callOptions = {}) =>
    createList((cursor) => {
      const query = { ...filters, ...(cursor !== undefined && { cursor }) }
      return operations.listBrowserContexts({ ...callOptions, params: { query } })
    })
  return { ...operations, browserContexts: { list } }
}

// Calls an operation: sends it, retries transient failures, and returns the result as a value.

type Init = Omit<FetchOptions<unknown>, 'params' | 'body'> &
  CallOptions & { params?: { header?: Record<string, string> }; body?: unknown }

/** The method of openapi-fetch's client that is used, without the types of a document. */
interface Sender {
  request(method: string, path: string, init: object): Promise<{ data?: unknown; error?: unknown; response: Response }>
}

interface Caller {
  sender: Sender
  options: ClientOptions
  reportDrift(response: Response): void
}

function createOperations<Operations>(surface: SurfaceDescription<Operations>, options: ClientOptions): Operations {
  checkOptions(options)
  const { baseUrl, apiKey, headers } = options
  const sender = createClient({
    baseUrl,
    headers: mergeHeaders(headers, surface.credential(apiKey)),
    // Following a redirect could send the key to another host: fetch only drops `Authorization`.
    // `error` would be indistinguishable from a network failure.
    redirect: 'manual',
  }) as unknown as Sender
  const caller = { sender, options, reportDrift: createDriftReporter(surface, options) }
  const descriptions = Object.entries(surface.operations) as [string, OperationDescription][]
  const functions = descriptions.map(([id, description]) => [
    id,
    (init?: Init) => call(caller, description, init ?? {}),
  ])
  return Object.fromEntries(functions)
}

function createDriftReporter({ document, documentHash }: SurfaceDescription<never>, { onDrift }: ClientOptions) {
  let reported = false
  return ({ headers }: Response) => {
    const serviceHash = headers.get('X-Document-Hash')
    if (reported || serviceHash === null || serviceHash === documentHash) return
    reported = true
    // An error of the callback must neither fail the call nor crash the program.
    Promise.resolve({ document, clientHash: documentHash, serviceHash })
      .then(onDrift)
      .catch(() => {})
  }
}

async function call(caller: Caller, description: OperationDescription, given: Init): Promise<Result<unknown>> {
  const limits = resolveLimits(caller.options, given)
  let headers: Headers
  try {
    headers = mergeHeaders(given.headers, given.params?.header)
  } catch (cause) {
    return { error: invalidRequest(cause), response: Response.error() }
  }
  if (description.retry === 'withIdempotencyKey') ensureIdempotencyKey(headers)
  const isRaw = description.body === 'raw'
  const isStream = isRaw && given.body instanceof ReadableStream
  if (isRaw && !headers.has('Content-Type')) headers.set('Content-Type', mediaTypeOf(given.body))
  // If a lost response was a success, the condition no longer holds, and another try would be refused.
  const rule = headers.has('If-Match') ? 'ifRefused' : description.retry
  const raw = isRaw && { bodySerializer: (body: unknown) => body, ...(isStream && { duplex: 'half' }) }
  const init = { ...withoutLimits(given), headers, ...raw } as Omit<Init, keyof LimitOptions>
  const timeoutSeconds = limits.timeoutSeconds + preferredWaitSeconds(headers)
  // A monotonic clock: the wall clock may be set during the call.
  const deadline = performance.now() + limits.totalSeconds * 1000
  for (let failures = 1; ; failures += 1) {
    const left = (deadline - performance.now()) / 1000
    const result = await tryOnce(caller, description, init, Math.min(timeoutSeconds, left))
    if (!result.error || isStream || failures > limits.retries || !mayRetry(rule, result.error)) return result
    const seconds = retryDelay(failures, result.error, limits)
    if (seconds === undefined || performance.now() + seconds * 1000 >= deadline) return result
    await pause(seconds, init.signal)
    if (init.signal?.aborted) return { error: aborted(init.signal), response: result.response }
  }
}

async function tryOnce(
  { sender, options, reportDrift }: Caller,
  { method, path, parseAs = 'json' }: OperationDescription,
  init: Omit<Init, keyof LimitOptions>,
  seconds: number,
): Promise<Result<unknown>> {
  let response = Response.error()
  if (init.signal?.aborted) return { error: aborted(init.signal), response }
  const limit = timeLimit(init.signal, seconds)
  const as = init.parseAs ?? parseAs
  let url = ''
  const send = init.fetch ?? options.fetch ?? ((request: Request) => globalThis.fetch(request))
  const fetch = async (request: Request) => {
    url = request.url
    response = await send(request)
    reportDrift(response)
    return response
  }
  let isStreaming = false
  try {
    const sent = sender.request(method, path, { ...init, parseAs: as, fetch, signal: limit.signal })
    const result = await unlessAborted(sent, limit.signal)
    response = result.response
    if (isRedirect(response)) return { error: redirected(response), response }
    if (!response.ok) return { error: problemFrom(response, result.error), response }
    const data = result.data ?? (await readEmptyBody(response, as))
    const isMissing = data === undefined && response.status !== 204
    if (isMissing) return { error: unexpectedResponse(response, 'The response has no content.'), response }
    isStreaming = as === 'stream' && data !== undefined
    if (!isStreaming) return { data, response }
    return { data: withEndCallback(data as ReadableStream<Uint8Array>, limit.signal, limit.end), response }
  } catch (cause) {
    if (init.signal?.aborted) return { error: aborted(init.signal), response }
    if (limit.isOver)
      return { error: timedOut(`${method} ${url} got no response within ${Number(seconds.toFixed(1))} s.`), response }
    if (url === '') return { error: invalidRequest(cause), response }
    if (cause instanceof SyntaxError) return { error: unreadable(response, cause), response }
    return { error: networkFailure(method, url, cause), response }
  } finally {
    // The time limit does not apply to a stream once it has started; the caller's signal does.
    if (isStreaming) limit.stop()
    else limit.end()
  }
}

/** openapi-fetch does not read a body with `Content-Length: 0`, but an empty file is still a file. */
function readEmptyBody(response: Response, as: NonNullable<Init['parseAs']>): unknown {
  if (response.status === 204 || as === 'json') return undefined
  return as === 'stream' ? new Response('').body : response[as]()
}

function mediaTypeOf(body: unknown): string {
  return (body instanceof Blob && body.type) || 'application/octet-stream'
}

/** All tries of a call share the key. Not randomUUID, which browsers provide only in secure contexts. */
function ensureIdempotencyKey(headers: Headers): void {
  if (headers.has('Idempotency-Key')) return
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  headers.set('Idempotency-Key', Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''))
}

/** The delay that the caller asks for with `Prefer: wait=N` (RFC 7240, section 4.3). */
function preferredWaitSeconds(headers: Headers): number {
  const wait = headers.get('Prefer')?.match(/(?:^|,)\s*wait\s*=\s*"?(\d+)/i)?.[1]
  return Math.min(Number(wait ?? 0), preferredWaitSecondsMax)
}
