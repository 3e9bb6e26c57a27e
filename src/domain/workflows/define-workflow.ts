/** What an author of a workflow imports, as `execution-service/workflow`. */
import type { BrowserContext } from 'playwright-core'
import type { Static, TSchema } from 'typebox'

/** How failed attempts are repeated: after n of them the next one waits for `backoffSeconds × backoffFactor^(n − 1)`. */
export interface RetryPolicy {
  /** How many attempts there are at most; 1 (the default) means that nothing is repeated. */
  maxAttempts?: number
  /** Seconds before the second attempt; 1 by default. */
  backoffSeconds?: number
  /** By how much each further wait is longer; 2 by default. */
  backoffFactor?: number
}

/** What a workflow's `run` function is given. */
export interface RunContext<Variables> {
  /** The caller's values; they fit the `variables` schema, and its defaults are filled in. */
  variables: Variables
  runId: string
  /** 1 for the first attempt. */
  attempt: number
  /**
   * Runs `fn` and remembers what it returned, so that a later attempt of the run gets that value instead of running
   * it again. A step that was under way when its worker died runs again. The name is unique within the run and the
   * value is JSON.
   */
  step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value>
  /** Writes a line to the run's log, where its caller sees it at once. `console` goes there too. */
  log(message: string, level?: 'info' | 'warn' | 'error'): void
  /** Tells the caller how far the run is, in percent, and what it is doing. */
  progress(percent: number, message?: string): void
  /**
   * Keeps a file with the run for its caller to download, such as a PDF or a screenshot; resolves once it is stored. One
   * of the same name is replaced. The name is that of a file, from letters, digits, dots, underscores and hyphens. A run
   * may have 20, of 10 MiB each and 50 MiB together; an attempt may write one 100 times, replaced ones included. They
   * are removed after some days.
   */
  artifact(name: string, content: Uint8Array | string, options?: { mediaType?: ArtifactMediaType }): Promise<void>
  /** Aborted when the run is cancelled, out of time, or its worker is stopping; the process ends a few seconds later. */
  signal: AbortSignal
}

/** By default the one that the name's extension tells. */
export type ArtifactMediaType =
  | 'application/octet-stream'
  | 'application/json'
  | 'application/pdf'
  | 'application/zip'
  | 'image/jpeg'
  | 'image/png'
  | 'image/webp'
  | 'text/csv'
  | 'text/plain'

/** What the `run` function of a workflow with `browser: true` is given. */
export interface BrowserRunContext<Variables> extends RunContext<Variables> {
  /**
   * The run's browser: a context of Playwright's that no other run shares, with the cookies and storage of the browser
   * context that the run was queued with. What they are when `run` returns is kept as the run's `persistContext` says.
   * Every call gives the same one; it is closed when the run ends.
   */
  browser(): Promise<BrowserContext>
}

export interface WorkflowDefinition<Variables extends TSchema, Output extends TSchema, Browser extends boolean> {
  /** 1 to 128 letters, digits, dots, underscores and hyphens; unique among all workflows. */
  id: string
  version: string
  title: string
  description?: string
  /** JSON Schema (2020-12) of an object. A member marked `writeOnly` is a secret: encrypted at rest, masked everywhere. */
  variables: Variables
  /** JSON Schema (2020-12) of what `run` returns; an output that does not fit fails the run. */
  output: Output
  retry?: RetryPolicy
  /** How long one attempt may take, in seconds; 60 by default. A run that takes longer ends as `timedOut`. */
  timeLimitSeconds?: number
  /** How many of its runs may run at the same time, over all workers; without it there is no limit. */
  concurrencyLimit?: number
  /** Whether its runs use a browser; false by default. */
  browser?: Browser
  run(
    context: Browser extends true ? BrowserRunContext<Static<Variables>> : RunContext<Static<Variables>>,
  ): Promise<Static<Output>> | Static<Output>
}

/**
 * Types a workflow from its schemas; a module of WORKFLOWS_DIR exports the result as its default.
 *
 * @example examples/workflows/count-words.ts
 */
export function defineWorkflow<
  const Variables extends TSchema,
  const Output extends TSchema,
  const Browser extends boolean = false,
>(definition: WorkflowDefinition<Variables, Output, Browser>): WorkflowDefinition<Variables, Output, Browser> {
  return definition
}
