/**
 * The published client of both APIs: a typed function for each operation, with retries, time limits, pagination and event
 * streams. Needs only `fetch` and web streams: Node 20 and later, browsers, and other runtimes.
 */
import type { components as browserContextComponents } from '../../generated/browser-context.alpha/types.ts'
import type { components as executionComponents } from '../../generated/execution.v1/types.ts'

export { documentHash as browserContextDocumentHash } from '../../generated/browser-context.alpha/client.ts'
export { documentHash as executionDocumentHash } from '../../generated/execution.v1/client.ts'
export {
  type BrowserContextClient,
  type BrowserContextFilters,
  type BrowserContexts,
  createBrowserContextClient,
  createExecutionClient,
  type ExecutionClient,
  type WorkflowFilters,
  type Workflows,
} from './clients.ts'
export type { EventsOptions } from './follow.ts'
export type { Result } from './operation.ts'
export type { CallOptions, ClientOptions, Drift, LimitOptions } from './options.ts'
export type { List, Page } from './pages.ts'
export { type Problem, ProblemError, type ProblemMember, problemTypes, unwrap } from './problem.ts'
export type { QueueAndWaitOptions, QueueOptions, RunFilters, Runs, WaitOptions } from './runs.ts'
export type { AnyWorkflows, RunOf, VariablesOf, WorkflowType } from './typed-workflows.ts'
export { verifyWebhook, type WebhookEvent, type WebhookHeaders, WebhookVerificationError } from './webhooks.ts'

/** The schemas of the Execution API, by name. */
export type ExecutionSchemas = executionComponents['schemas']
/** The schemas of the Browser Context API, by name. */
export type BrowserContextSchemas = browserContextComponents['schemas']

/** One execution of a workflow. */
export type Run = ExecutionSchemas['Run']
/** `succeeded`, `failed`, `timedOut`, `cancelled` and `expired` are final. */
export type RunStatus = ExecutionSchemas['RunStatus']
/** An event in the life of a run, distinguished by `type`. A later version of the service may add types. */
export type RunEvent = ExecutionSchemas['RunEvent']
/** A file that a run created. */
export type RunArtifact = ExecutionSchemas['RunArtifact']
/** A workflow that can be run, with the JSON Schema of its variables. */
export type Workflow = ExecutionSchemas['Workflow']
/** A stored browser profile. */
export type BrowserContext = BrowserContextSchemas['BrowserContext']
/** The cookies and storage of a browser context, in Playwright's format. */
export type StorageState = BrowserContextSchemas['StorageState']
