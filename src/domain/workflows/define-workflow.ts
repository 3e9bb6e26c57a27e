/** The API for authors of workflows, imported as `execution-service/workflow`. */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
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

/** An answer that a run may wait for. */
export interface WaitDeclaration {
  /** JSON Schema (2020-12) of the answer. Values that it marks as `writeOnly` are masked in responses. */
  schema: TSchema
  /** What to decide, for the person who answers: at most 8,192 characters. A run may give another title. */
  title?: string
  /** Markdown, for the person who answers and for callers. */
  description?: string
}

/** At most 100, by their names of 1 to 200 characters. */
export type WaitDeclarations = Readonly<Record<string, WaitDeclaration>>

/** JSON Schemas (2020-12) of settings, by name. */
export type SettingDeclarations = Readonly<Record<string, TSchema>>

/** How long a sleep takes, as the sum of the members, or when it ends: at most 366 days from now. */
export type SleepTime = { seconds?: number; minutes?: number; hours?: number; days?: number } | { until: Date }

export interface WaitForOptions {
  /** What to decide, for the person who answers: at most 8,192 characters. The declared title by default. */
  title?: string
  /** How long to wait: at most 366 days. 7 days by default. */
  timeoutSeconds?: number
  /** Values to show to the person who answers: at most 1 MiB as JSON. Secrets among them are masked. */
  show?: Record<string, unknown>
}

/** `ok` is false if no answer came in time. */
export type Answer<Value> = { ok: true; value: Value } | { ok: false }

/** How the called run is queued: as in a request to queue a run. */
export interface CallOptions {
  /** Whether the called run goes on when the caller is cancelled. False by default. */
  detached?: boolean
  /** At most 10, of 1 to 64 characters. */
  tags?: readonly string[]
  /** −10 to 10. 0 by default. */
  priority?: number
  concurrencyKey?: string
  browserContextId?: string
}

/**
 * The workflows whose variables and output `call` knows, by id. Extend it with the types that
 * `npx execution-service-client types` writes:
 *
 * ```ts
 * declare module 'execution-service/workflow' {
 *   interface CalledWorkflows extends Workflows {}
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: a type alias could not be extended.
export interface CalledWorkflows {}

type Called<Id> = Id extends keyof CalledWorkflows ? CalledWorkflows[Id] : unknown
type OutputOf<Id, Other> = Called<Id> extends { output: infer Output } ? Output : Other
type VariablesOf<Id> =
  Called<Id> extends { variables: infer Variables }
    ? [variables: Variables, options?: CallOptions]
    : [variables?: object, options?: CallOptions]

/** A deployment has its own copy of the class, while the executor throws one of the service's. */
const isCalledRunFailed = Symbol.for('execution-service/CalledRunFailed')

/** A run that was called has not succeeded. */
export class CalledRunFailed extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Object(value)[isCalledRunFailed] === true
  }

  override name = 'CalledRunFailed'
  readonly [isCalledRunFailed] = true
  readonly runId: string
  /** `failed`, `timedOut`, `cancelled`, `expired`; or `deleted` if the run no longer exists. */
  readonly status: string
  /** The error of the run; `null` if it has none. */
  readonly error: { name: string; message: string } | null

  constructor(call: string, run: { runId: string; status: string; error: { name: string; message: string } | null }) {
    const reason = run.error ? `: ${run.error.name}: ${run.error.message}` : '.'
    super(`Run ${run.runId}, called as "${call}", has ended as ${run.status}${reason}`)
    this.runId = run.runId
    this.status = run.status
    this.error = run.error
  }
}

/** A deployment has its own copy of the class. */
const isNonRetryableError = Symbol.for('execution-service/NonRetryableError')

/**
 * Throw it, in a step or outside of one, when another attempt would fail in the same way: for example when the caller's
 * variables name a customer that does not exist. The run then fails with the reason `nonRetryable`, however many attempts
 * its `retry` has left. The workflow may catch it as any other error.
 */
export class NonRetryableError extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Object(value)[isNonRetryableError] === true
  }

  override name = 'NonRetryableError'
  readonly [isNonRetryableError] = true
}

/** A deployment has its own copy of the class. */
const isSignedOutError = Symbol.for('execution-service/SignedOut')

/**
 * Throw it when the run finds that its browser context is signed out. If the context has a sign-in, the run is suspended,
 * which costs no attempt, and goes on by executing `run` again when another run has signed in. Otherwise the attempt fails.
 */
export class SignedOut extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Object(value)[isSignedOutError] === true
  }

  override name = 'SignedOut'
  readonly [isSignedOutError] = true

  constructor(message = 'The browser context is signed out.') {
    super(message)
  }
}

/** The argument of a workflow's `run` function. */
export interface RunContext<
  Variables,
  Waits extends WaitDeclarations = WaitDeclarations,
  Secret extends string = string,
  Settings extends SettingDeclarations = SettingDeclarations,
> {
  /** The caller's variables, validated against the `variables` schema, with its defaults filled in. */
  variables: Variables
  /**
   * The secrets that the definition declares, as they were when the attempt started. They are masked in everything that
   * the run reports. A part that goes on after a wait gets the values that are stored at that time.
   */
  secrets: Readonly<Record<Secret, string>>
  /** The settings that the definition declares, as they were when the attempt started, with defaults filled in. */
  settings: { readonly [Name in keyof Settings]: Static<Settings[Name]> }
  runId: string
  /** 1 for the first attempt. */
  attempt: number
  /**
   * Runs `fn` and stores its result, which later attempts of the run reuse instead of running `fn` again. A step that
   * was interrupted runs again. The name must be unique within the run and have at most 200 characters. The result must
   * be JSON of at most 1 MiB.
   */
  step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value>
  /**
   * Resolves when the time has passed. A run that waits for more than a few seconds leaves its process and its worker's
   * slot, and goes on by executing `run` again: steps and waits return at once what they have returned before, and other
   * code executes again. So `await` every step and wait, and give it the same name each time; steps and waits share their
   * names. The end is stored when the run first reaches the sleep. Time spent waiting does not count for
   * `timeLimitSeconds`, and going on is no further attempt.
   *
   * @throws {RangeError} if the time is negative or longer than 366 days.
   */
  sleep(name: string, time: SleepTime): Promise<void>
  /**
   * Resolves with the answer of a caller or a person. The first answer counts, also if it came before the run got here.
   * Leaves the process as `sleep` does. `ok` is false if no answer came in time.
   *
   * @param name of a wait that the definition declares.
   * @throws {TypeError} if the definition does not declare it. {RangeError} for a time-out longer than 366 days. {Error}
   * of the name `TooManyWaitingRuns` if the account has reached its limit of waiting runs.
   */
  waitFor<Name extends keyof Waits & string>(
    name: Name,
    options?: WaitForOptions,
  ): Promise<Answer<Static<Waits[Name]['schema']>>>
  /**
   * Queues a run of a workflow, once however often the caller's code executes, and resolves with its output. Leaves the
   * process as `sleep` does. Calls may be awaited together with `Promise.all`. A run has at most 10,000 steps and waits,
   * and calls go at most 100 levels deep. When the caller is cancelled, the called run is, too, unless it is `detached`.
   *
   * @param workflowId of a workflow that the caller's account sees. Its current version executes the run.
   * @param variables as a request has them, checked by the schema of that workflow.
   * @throws {CalledRunFailed} if the run does not succeed. {Error} of the name `CallRefused` if it cannot be queued.
   */
  call<Output = unknown, const Id extends string = string>(
    name: string,
    workflowId: Id,
    ...rest: VariablesOf<Id>
  ): Promise<OutputOf<Id, Output>>
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
export interface BrowserRunContext<
  Variables,
  Waits extends WaitDeclarations = WaitDeclarations,
  Secret extends string = string,
  Settings extends SettingDeclarations = SettingDeclarations,
> extends RunContext<Variables, Waits, Secret, Settings> {
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
  /**
   * The present one-time code of the sign-in's TOTP seed (RFC 6238), of a run that signs a browser context in. Each call
   * resolves with another code: the second one of a period waits for the next. Codes are masked as secrets are.
   *
   * @throws {Error} if the run signs no browser context in, or if its sign-in has no seed.
   */
  totp(): Promise<string>
}

/** When the service keeps what an attempt's browser did: if the attempt fails or times out, always, or never. */
export type EvidencePolicy = 'onFailure' | 'always' | 'off'

export interface WorkflowDefinition<
  Variables extends TSchema,
  Output extends TSchema,
  Browser extends boolean,
  Waits extends WaitDeclarations = WaitDeclarations,
  Secret extends string = string,
  Settings extends SettingDeclarations = SettingDeclarations,
> {
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
  /**
   * Whether the workflow signs browser contexts in, with `browser: true`: `run` signs in and returns, and the state of its
   * browser becomes the browser context's new version. A sign-in of a browser context gives it its variables, and a seed for
   * `totp`. False by default.
   */
  signsIn?: boolean
  /**
   * Whether the browser is signed out, for a workflow with `browser: true`. The service calls it with a page of its own
   * before `browser` first resolves, and again when `run` throws, for runs whose browser context has a sign-in; it also
   * calls that of a workflow with `signsIn` to check by the clock. Load one page at most. If it throws or takes more than 30
   * seconds, the run goes on.
   */
  signedOut?(
    page: Page,
    run: Pick<RunContext<Static<Variables>, Waits, Secret, Settings>, 'variables' | 'secrets' | 'settings' | 'signal'>,
  ): Promise<boolean> | boolean
  /** The answers that runs wait for, by name. Callers answer with a value that fits the schema. */
  waits?: Waits
  /**
   * The names of the account's secrets that `run` gets, such as `SHOP_TOKEN`: capital letters, digits and underscores. Runs
   * wait while the account lacks one. At most 100.
   */
  secrets?: readonly Secret[]
  /** The account's settings that `run` gets, by name, each with its schema. Runs wait while one is missing or does not fit. */
  settings?: Settings
  /** Whether callers should use another workflow, which the description names. False by default. */
  deprecated?: boolean
  run(
    context: Browser extends true
      ? BrowserRunContext<Static<Variables>, Waits, Secret, Settings>
      : RunContext<Static<Variables>, Waits, Secret, Settings>,
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
  const Waits extends WaitDeclarations = Readonly<Record<never, WaitDeclaration>>,
  const Secret extends string = never,
  const Settings extends SettingDeclarations = Readonly<Record<never, TSchema>>,
>(
  definition: WorkflowDefinition<Variables, Output, Browser, Waits, Secret, Settings>,
): WorkflowDefinition<Variables, Output, Browser, Waits, Secret, Settings> {
  return definition
}
