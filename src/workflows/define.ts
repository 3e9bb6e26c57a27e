/** What an author of a workflow imports, as `execution-service/workflow`. */
import type { Static, TSchema } from 'typebox'

/** How failed attempts are repeated: the wait before attempt n + 1 is `backoffSeconds × backoffFactor^(n − 1)`. */
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
  /** Aborted when the run is cancelled, out of time, or its worker is stopping; the process ends a few seconds later. */
  signal: AbortSignal
}

export interface WorkflowDefinition<Variables extends TSchema, Output extends TSchema> {
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
  run(context: RunContext<Static<Variables>>): Promise<Static<Output>> | Static<Output>
}

/**
 * Types a workflow from its schemas; a module of WORKFLOWS_DIR exports the result as its default.
 *
 * @example examples/workflows/count-words.ts
 */
export function defineWorkflow<const Variables extends TSchema, const Output extends TSchema>(
  definition: WorkflowDefinition<Variables, Output>,
): WorkflowDefinition<Variables, Output> {
  return definition
}
