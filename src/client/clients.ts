/** Creates the clients of the two APIs. */
import {
  type BrowserContextAlphaOperations,
  browserContextAlphaOperations,
} from '../../generated/browser-context.alpha/client.ts'
import type * as browserContext from '../../generated/browser-context.alpha/types.ts'
import { type ExecutionV1Operations, executionV1Operations } from '../../generated/execution.v1/client.ts'
import type * as execution from '../../generated/execution.v1/types.ts'
import { createOperations } from './call.ts'
import type { CallOptions, ClientOptions } from './options.ts'
import { createList, type List } from './pages.ts'
import { createRuns, type Runs } from './runs.ts'
import type { AnyWorkflows, QueueRemoteRun, WorkflowTypes } from './typed-workflows.ts'

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
  extends Omit<ExecutionV1Operations, 'queueRemoteRun'> {
  /** Queue a remote run of a workflow, and respond as soon as it is stored. */
  queueRemoteRun: QueueRemoteRun<Known>
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
 * @typeParam Known The `Workflows` of the file that `npx execution-service-client types` writes. With it, ids, variables
 * and outputs of workflows are checked; without it, a client accepts any.
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
