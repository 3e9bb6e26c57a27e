/** The API for authors of workflows, imported as `execution-service/workflow`. */
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import type { Static, TSchema } from 'typebox'

/** How failed attempts are retried. After n attempts the next one waits `backoffSeconds × backoffFactor^(n − 1)`. */
export interface RetryPolicy {
  /** Maximum number of attempts. 1 (the default) means no retries. */
  maxAttempts?: number
  /** Seconds before the second attempt. 1 by default. */
  backoffSeconds?: number
  /** Factor by which each wait exceeds the previous one. 2 by default. */
  backoffFactor?: number
}

/** How many runs of a workflow may run at the same time, over all workers. */
export interface ConcurrencyPolicy {
  /** At least 1. */
  limit: number
  /**
   * Which runs are counted together: those of an `account` (the default), so that no account waits for another's; those of
   * an account that were queued with the same `concurrencyKey`, such as a customer or a site (`key`); or all of the
   * `workflow`.
   */
  per?: 'account' | 'key' | 'workflow'
}

/** How many runs of a workflow may start within a period, over all workers. Each attempt counts as a start. */
export interface ThrottlePolicy {
  /** Maximum number of starts within any period of this length: 1 to 10,000. */
  limit: number
  /** 1 to 86,400, which is a day. */
  periodSeconds: number
  /** Which starts are counted together, as in `concurrency`: those of an `account` by default. */
  per?: 'account' | 'key' | 'workflow'
}

/** The argument of a workflow's `run` function. */
export interface RunContext<Variables> {
  /** The caller's variables, validated against the `variables` schema, with its defaults filled in. */
  variables: Variables
  runId: string
  /** 1 for the first attempt. */
  attempt: number
  /**
   * Runs `fn` and stores its result, which later attempts of the run reuse instead of running `fn` again. A step that
   * was interrupted runs again. The name must be unique within the run and have at most 200 characters. The result must
   * be JSON of at most 1 MiB.
   */
  step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value>
  /** Writes a line to the run's log, which the caller can follow live. `console` writes there too. */
  log(message: string, level?: 'info' | 'warn' | 'error'): void
  /** Reports the progress of the run to the caller, in percent. */
  progress(percent: number, message?: string): void
  /**
   * Stores a file with the run for the caller to download, such as a PDF or a screenshot. Resolves once it is stored.
   * An artifact of the same name is replaced. Names consist of letters, digits, dots, underscores and hyphens; those of
   * evidence, such as `attempt-1-trace.zip`, are refused. Limits: 20 artifacts per run, 10 MiB each, 50 MiB together, and
   * 100 writes per attempt. Artifacts are deleted after ARTIFACT_RETENTION_DAYS.
   */
  artifact(name: string, content: Uint8Array | string, options?: { mediaType?: ArtifactMediaType }): Promise<void>
  /** Aborted when the run is cancelled, times out, or its worker stops. The process ends ABORT_GRACE_SECONDS later. */
  signal: AbortSignal
}

/** The media types of artifacts, as in the OpenAPI document. By default derived from the name's extension. */
export const artifactMediaTypes = [
  'application/octet-stream',
  'application/json',
  'application/pdf',
  'application/zip',
  'image/jpeg',
  'image/png',
  'image/webp',
  'text/csv',
  'text/plain',
] as const

export type ArtifactMediaType = (typeof artifactMediaTypes)[number]

/** The argument of the `run` function of a workflow with `browser: true`. */
export interface BrowserRunContext<Variables> extends RunContext<Variables> {
  /**
   * A Playwright browser context that no other run shares, with the cookies and storage of the browser context that the
   * run was queued with. The run's `persistContext` decides whether their final state is saved. Every call returns the
   * same context, which is closed when the run ends.
   *
   * @param options Playwright's, such as `proxy` or `locale`. Only those of the first call count.
   */
  browser(options?: Omit<BrowserContextOptions, 'storageState'>): Promise<BrowserContext>
  /**
   * Waits until someone has taken over the browser on the page of the run in the dashboard, and handed it back: for
   * example to enter a code. The time does not count towards the time limit, up to 30 minutes of an attempt.
   *
   * @param message what to do, for the run's log and the page.
   * @param options `waitMinutes`: how long to wait until someone takes over. 10 by default, at most 30.
   * @returns whether someone took over.
   */
  takeOver(message: string, options?: { waitMinutes?: number }): Promise<boolean>
}

/** When the service keeps what an attempt's browser did: if the attempt fails or times out, always, or never. */
export type EvidencePolicy = 'onFailure' | 'always' | 'off'

export interface WorkflowDefinition<Variables extends TSchema, Output extends TSchema, Browser extends boolean> {
  /** 1 to 128 letters, digits, dots, underscores and hyphens, unique among all workflows. */
  id: string
  version: string
  title: string
  description?: string
  /** JSON Schema (2020-12) of an object. `writeOnly` members are secrets: encrypted at rest and masked everywhere. */
  variables: Variables
  /** JSON Schema (2020-12) of the result of `run`. A result that does not match fails the run. */
  output: Output
  retry?: RetryPolicy
  /** Time limit of an attempt, in seconds. 60 by default. A run that exceeds it ends as `timedOut`. */
  timeLimitSeconds?: number
  /** A limit of concurrent runs per account, per key or per workflow. Unlimited by default. */
  concurrency?: ConcurrencyPolicy
  /**
   * A rate of starts per account, per key or per workflow, such as 10 in 60 seconds. Runs above it wait in the queue, and
   * delay no others. Without one by default.
   */
  throttle?: ThrottlePolicy
  /** Whether runs use a browser. False by default. */
  browser?: Browser
  /**
   * When the service keeps screenshots of the open pages, their console, failed requests, and a Playwright trace of an
   * attempt: if it fails or times out (`onFailure`, the default), also if it succeeds (`always`), or never (`off`).
   * `always` also records the DOM of each action and pictures, as attempts after a failed one do the DOM. Secrets are
   * masked, except in images.
   */
  evidence?: EvidencePolicy
  /** Whether callers should use another workflow, which the description names. False by default. */
  deprecated?: boolean
  run(
    context: Browser extends true ? BrowserRunContext<Static<Variables>> : RunContext<Static<Variables>>,
  ): Promise<Static<Output>> | Static<Output>
}

/**
 * Derives the types of `run` from the schemas. Each module of WORKFLOWS_DIR exports the result as its default.
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
