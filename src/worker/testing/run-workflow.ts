/**
 * The test kit for authors of workflows, imported as `execution-service/testing`. It runs a workflow in the test's process
 * with the code that executors and workers run, and without a store.
 */
import { existsSync } from 'node:fs'
import type { BrowserContextOptions } from 'playwright-core'
import type { Static, TSchema } from 'typebox'
import { parseJson } from '../../contract/i-json.ts'
import { Problem } from '../../contract/problem.ts'
import { toRunError } from '../../domain/runs/reported-values.ts'
import { nextState } from '../../domain/runs/run-state.ts'
import type {
  ArtifactMediaType,
  BrowserRunContext,
  SettingDeclarations,
  WaitDeclarations,
  WorkflowDefinition,
} from '../../domain/workflows/define-workflow.ts'
import { createRedactor } from '../../domain/workflows/redactor.ts'
import { parseTotpSeed } from '../../domain/workflows/totp.ts'
import { type DeclaredValues, parseWorkflow, type Workflow } from '../../domain/workflows/workflow.ts'
import { Workflows } from '../../domain/workflows/workflows.ts'
import type { SessionStart } from '../executors/messages.ts'
import { createRealClock, Delayed, FakeClock, type RunClock } from './fake-clock.ts'
import { loadBundle } from './load-bundle.ts'
import { type AttemptResult, executeAttempt, type TestRun } from './test-attempt.ts'
import { TestWaits } from './test-waits.ts'

/** A context, or a function that makes one. It may have only those members that the workflow uses. */
export type FakeBrowser = object | ((options: BrowserContextOptions) => object | Promise<object>)

/** An answer, or what a called run returns, that comes this many seconds after the run waits for it. */
export function after<Value>(seconds: number, value: Value): Delayed<Value> {
  return new Delayed(seconds, value)
}

export type { Delayed }

/** `undefined`: no answer comes in time. */
type AnswerOrDelayed<Value> = Value | Delayed<Value> | undefined
type AnswerFake<Value> =
  | AnswerOrDelayed<Value>
  | ((wait: RunWait) => AnswerOrDelayed<Value> | Promise<AnswerOrDelayed<Value>>)

// biome-ignore lint/suspicious/noExplicitAny: the called workflow's variables have any type.
export type CallFake = (variables: any, call: RunWait) => unknown

export interface RunOptions<
  Variables,
  Waits extends WaitDeclarations = WaitDeclarations,
  Secret extends string = string,
  Settings extends SettingDeclarations = SettingDeclarations,
> {
  /** Checked against the schema as the service checks `variableData`, with defaults filled in. `{}` by default. */
  variables?: Variables
  /** The secrets that the definition declares, by name. They are masked in the result. One that is missing is an error. */
  secrets?: Readonly<Record<Secret, string>>
  /** The settings that the definition declares, by name, checked against their schemas. One that is missing is an error. */
  settings?: { readonly [Name in keyof Settings]: Static<Settings[Name]> }
  /**
   * Fakes of steps by name: the result, or a function that returns it or throws. The step's own function is not called.
   * A name that a successful run does not use is an error.
   */
  steps?: Record<string, unknown>
  /**
   * What callers answer to the waits that the definition declares, by name: a value, which is checked against the schema, or
   * a function that returns it. `undefined` if no answer comes in time. Reaching a wait without a member here is an error.
   * No wait takes real time; with a fake clock, `Date` moves by the time that it takes.
   */
  answers?: { [Name in keyof Waits & string]?: AnswerFake<Static<Waits[Name]['schema']>> | undefined }
  /**
   * The runs that `call` queues: a function for all, or functions by the ID of their workflow. It returns the output, or
   * throws the error with which the run fails. A function that a successful run does not use is an error.
   */
  calls?: CallFake | Record<string, CallFake>
  /** The number of the first attempt. 1 by default. */
  attempt?: number
  /** Results that earlier attempts have stored, by the name of their step. These steps do not run again. */
  finishedSteps?: Record<string, unknown>
  /** Whether failed attempts are repeated as the workflow's `retry` says, without waiting. False by default. */
  retry?: boolean
  /**
   * The browser for a workflow with `browser: true`: `'chromium'` for a real one, or a fake context with the members that
   * the workflow uses, or a function that makes one. The fake is not closed.
   */
  browser?: 'chromium' | FakeBrowser
  /** What a person does when the workflow calls `takeOver`. Without it, no person takes over: `takeOver` returns false. */
  takeOver?: () => unknown
  /**
   * Says that the run's browser context has a sign-in, so that the workflow's `signedOut` is asked and a `SignedOut` ends the
   * run as `signedOut`. For a workflow with `signsIn`, the run signs in anyway.
   */
  signIn?: SignInOptions
  /**
   * `'fake'`: time jumps to the next timer when the run waits for nothing else, so that a run which waits for an hour
   * ends at once. It replaces `Date`, timers, and `AbortSignal.timeout` of the process until the run has ended.
   */
  clock?: 'real' | 'fake'
  /** The time at which a fake clock starts. 2026-01-01T00:00:00Z by default. */
  now?: Date
  /** Cancels the run after this time. */
  cancelAfterSeconds?: number
  runId?: string
  /**
   * The file of the workflow's module, such as `import.meta.resolve('./order.ts')`. It is bundled as a deployment does, and
   * the run executes the bundle: a package that works in the source alone fails.
   */
  bundle?: string | URL
}

export interface SignInOptions {
  /** For `totp()`: in Base32, or an `otpauth:` URI. */
  totpSeed?: string
  /** Whether the run of a workflow with `signsIn` only checks, by `signedOut`, as the service does by the clock. */
  check?: boolean
  /** Signs in when the run is signed out. The run then goes on in the same attempt, by executing `run` again. */
  run?: () => unknown
}

export interface RunLog {
  level: 'info' | 'warn' | 'error'
  message: string
}

export interface RunStep {
  name: string
  attempt: number
  /** The last state that the step had in this attempt. `reused`: the result of an earlier attempt was returned. */
  state: 'started' | 'finished' | 'failed' | 'reused'
}

/** What a run has waited for. */
export interface RunWait {
  name: string
  kind: 'sleep' | 'answer' | 'run'
  /** `cancelled`: the run has ended before. */
  status: 'open' | 'completed' | 'timedOut' | 'cancelled'
  /** How long the run has waited. */
  seconds: number
  /** What the person who answers sees, with secrets masked. */
  title: string | null
  shown: Record<string, unknown> | null
  /** Of a call. */
  workflowId: string | null
  variables: Record<string, unknown> | null
  /** The answer, or the output of the called run; `null` if there is none. */
  value: unknown
}

export interface RunArtifact {
  name: string
  mediaType: ArtifactMediaType
  content: Uint8Array
}

/** What callers would see of the run, with secrets masked, and what `run` threw. */
export type RunResult<Output> = (
  | { status: 'succeeded'; output: Output }
  /** `signedOut`: the run waits for a sign-in, and the test has none; a check has found no session. */
  | { status: 'failed' | 'timedOut' | 'cancelled' | 'signedOut'; output: null }
) & {
  reason: 'workflowFailed' | 'nonRetryable' | 'outputInvalid' | 'timeLimit' | 'cancelRequested' | null
  error: { name: string; message: string } | null
  /** The value that the last attempt threw, with its stack and with secrets. */
  cause: unknown
  /** The number of the last attempt. */
  attempts: number
  logs: RunLog[]
  progress: { percent: number; message: string | null }[]
  steps: RunStep[]
  /** In the order in which the run has reached them. */
  waits: RunWait[]
  /** The results of finished steps and waits by name. Pass them to a further run to test what a later attempt does. */
  finishedSteps: Record<string, unknown>
  artifacts: RunArtifact[]
  /** Everything that the run reported, in order, as `streamRunEvents` sends it. */
  events: { type: string; data: Record<string, unknown> }[]
}

/** The service would not queue the run: `errors` are those of its 400 response. */
export class VariablesInvalid extends Error {
  override name = 'VariablesInvalid'
  readonly errors: readonly { pointer: string; detail: string }[]

  constructor(errors: readonly { pointer: string; detail: string }[]) {
    super(errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; '))
    this.errors = errors
  }
}

/** A secret or a setting that the definition declares is missing in the test, or does not fit: the run would wait for it. */
export class DeclaredValuesInvalid extends Error {
  override name = 'DeclaredValuesInvalid'
}

/**
 * Runs the workflow once, and resolves with its result, also when it fails.
 *
 * @throws {VariablesInvalid} for variables that the service would refuse.
 * @throws {DeclaredValuesInvalid} for secrets and settings with which the run would wait.
 * @throws {Error} for an invalid definition, or a fake step that the workflow does not have.
 */
export async function runWorkflow<
  const Variables extends TSchema,
  const Output extends TSchema,
  const Browser extends boolean,
  const Waits extends WaitDeclarations,
  const Secret extends string,
  const Settings extends SettingDeclarations,
>(
  workflow: WorkflowDefinition<Variables, Output, Browser, Waits, Secret, Settings>,
  options: RunOptions<Static<Variables>, Waits, Secret, Settings> = {},
): Promise<RunResult<Static<Output>>> {
  const { attempt: firstAttempt = 1, retry = false, clock = 'real', now = new Date('2026-01-01') } = options
  const source = workflow as unknown as WorkflowDefinition<object, object, true>
  const definition = options.bundle === undefined ? source : await findInBundle(options.bundle, source)
  const runClock = clock === 'fake' ? new FakeClock(now) : createRealClock()
  const test = prepare(definition, options as RunOptions<unknown>, runClock)
  test.session = await toSession(test.workflow, options.signIn)
  const { cancelAfterSeconds } = options
  const result = await runClock.run(async () => {
    if (cancelAfterSeconds !== undefined) test.cancelAt = runClock.now() + cancelAfterSeconds * 1000
    for (let attempt = firstAttempt; ; attempt += 1) {
      const ended = await executeAttempt(test, attempt)
      const history = { cancelRequested: false, failures: attempt - 1, losses: 0, retry: test.workflow.retry }
      const next = nextState(ended.outcome, history)
      if (!retry || next.status !== 'queued') {
        test.waits.cancel()
        return toResult(test, ended, attempt)
      }
      await runClock.skip(next.delaySeconds)
    }
  })
  if (result.status === 'succeeded') requireUsed(test)
  return result as RunResult<Static<Output>>
}

/** @throws {Error} if the module has another workflow: its variables and output would have other types. */
async function findInBundle(module: string | URL, { id }: WorkflowDefinition<object, object, true>) {
  const definition = await loadBundle(module)
  if (definition?.id === id) return definition
  throw new Error(`The option \`bundle\` names ${module}, whose default export is not the workflow "${id}".`)
}

async function toSession({ signsIn }: Workflow, options: SignInOptions | undefined): Promise<SessionStart | undefined> {
  if (!signsIn && !options) return undefined
  const { totpSeed, check = false } = options ?? {}
  const totp = totpSeed === undefined ? null : await parseTotpSeed(totpSeed)
  if (totp === undefined)
    throw new TypeError(
      'signIn.totpSeed is neither a seed in Base32 nor an otpauth: URI for TOTP with usual digits and period.',
    )
  return { kind: signsIn ? (check ? 'check' : 'signIn') : null, totp }
}

/** A test gives the paths of files that exist, and the workflow gets them as they are. */
const localFiles = { isFile: existsSync, detail: 'must be the path of a file that exists' }

/** Validators by definition: compiling the schemas takes some milliseconds. */
const compiled = new WeakMap<object, Workflows>()

function prepare(
  definition: WorkflowDefinition<object, object, true>,
  options: RunOptions<unknown>,
  clock: RunClock,
): TestRun {
  const { variables = {}, steps = {}, finishedSteps = {}, runId = '01900000-0000-7000-8000-000000000000' } = options
  const workflow = parseWorkflow('The definition', definition)
  const workflows = compiled.get(definition) ?? new Workflows([workflow], null, localFiles)
  compiled.set(definition, workflows)
  const checked = workflows.checkVariables(workflow.id, toVariableData(variables))
  if ('errors' in checked) {
    throw new VariablesInvalid(checked.errors.map((each) => ({ ...each, pointer: `/variableData${each.pointer}` })))
  }
  const { answers = {}, calls = {} } = options
  const declared = toDeclared(workflow, workflows, options)
  const redact = createRedactor({ ...checked.secrets, declared: Object.values(declared.secrets) })
  return {
    workflow,
    workflows,
    run: definition.run as (context: BrowserRunContext<object>) => unknown,
    runId,
    variables: checked.masked,
    secrets: checked.secrets,
    declared,
    fakeSteps: steps,
    browser: options.browser,
    takeOver: options.takeOver,
    signedOut: definition.signedOut && ((page, run) => definition.signedOut?.(page, run as never) ?? false),
    session: undefined,
    signIn: options.signIn?.run,
    finishedSteps: new Map(Object.entries(finishedSteps).map(([name, value]) => [name, JSON.stringify(value ?? null)])),
    artifacts: new Map(),
    events: [],
    reachedSteps: new Set(),
    waits: new TestWaits({ workflow, workflows, answers, calls, redact, now: () => clock.now() }),
    clock,
    cancelAt: undefined,
  }
}

/** @throws {DeclaredValuesInvalid} */
function toDeclared(workflow: Workflow, workflows: Workflows, options: RunOptions<unknown>): DeclaredValues {
  const given = {
    secret: new Map<string, unknown>(Object.entries(options.secrets ?? {})),
    setting: new Map<string, unknown>(Object.entries(structuredClone(options.settings ?? {}))),
  }
  const names = { secret: workflow.secrets ?? [], setting: Object.keys(workflow.settings ?? {}) }
  const refuse = (message: string) => {
    throw new DeclaredValuesInvalid(`${message} Its runs would wait.`)
  }
  for (const kind of ['secret', 'setting'] as const) {
    const missing = names[kind].find((name) => !given[kind].has(name))
    if (missing !== undefined)
      refuse(`The workflow declares the ${kind} ${missing}: give it in the option \`${kind}s\` of the test.`)
    const other = [...given[kind].keys()].find((name) => !names[kind].includes(name))
    if (other !== undefined)
      throw new DeclaredValuesInvalid(`The workflow does not declare the ${kind} ${other}, which the test gives.`)
  }
  for (const [name, value] of given.setting) {
    const [error] = workflows.checkSetting(workflow.id, name, value)
    if (error) refuse(`The setting ${name} does not fit its schema: ${error.pointer} ${error.detail}.`)
  }
  const secrets = Object.fromEntries(given.secret) as Record<string, string>
  return { secrets, settings: Object.fromEntries(given.setting) }
}

/** The variables as they arrive in a request. @throws {VariablesInvalid} */
function toVariableData(variableData: unknown): Record<string, unknown> {
  const body = Buffer.from(JSON.stringify({ variableData }))
  try {
    return (parseJson(body) as { variableData: Record<string, unknown> }).variableData
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new VariablesInvalid((error.problem.errors ?? []) as { pointer: string; detail: string }[])
  }
}

function toResult(test: TestRun, { outcome, cause }: AttemptResult, attempts: number): RunResult<unknown> {
  const dataOf = <Data>(type: string) =>
    test.events.filter((each) => each.type === type).map(({ data }) => data as Data)
  const steps = new Map<string, RunStep>()
  for (const step of dataOf<RunStep & { wait?: string }>('step'))
    if (!step.wait) steps.set(JSON.stringify([step.attempt, step.name]), { ...step })
  return {
    ...toStatus(outcome),
    cause,
    attempts,
    logs: dataOf<RunLog>('log').map(({ level, message }) => ({ level, message })),
    progress: dataOf<{ percent: number; message: string | null }>('progress').map(({ percent, message }) => {
      return { percent, message }
    }),
    waits: test.waits.list(),
    steps: [...steps.values()].map(({ name, attempt, state }) => ({ name, attempt, state })),
    finishedSteps: Object.fromEntries([...test.finishedSteps].map(([name, json]) => [name, JSON.parse(json)])),
    artifacts: [...test.artifacts.values()],
    events: test.events,
  }
}

function toStatus(outcome: AttemptResult['outcome']) {
  switch (outcome.kind) {
    case 'succeeded':
      return { status: 'succeeded', output: outcome.output, reason: null, error: null } as const
    case 'failed': {
      const reason = outcome.reason as 'workflowFailed' | 'nonRetryable' | 'outputInvalid'
      return { status: 'failed', output: null, reason, error: toRunError(outcome.error) } as const
    }
    case 'timedOut':
      return { status: 'timedOut', output: null, reason: 'timeLimit', error: null } as const
    case 'signedOut':
      return { status: 'signedOut', output: null, reason: null, error: toRunError(outcome.error) } as const
    default:
      return { status: 'cancelled', output: null, reason: 'cancelRequested', error: null } as const
  }
}

/** Finds typing mistakes in the names of fakes, with which a step would run its own function. */
function requireUsed({ fakeSteps, reachedSteps, waits }: TestRun): void {
  const uncalled = waits.unusedCall()
  if (uncalled !== undefined)
    throw new Error(`The run does not call the workflow "${uncalled}", for which the test gives a fake.`)
  const unused = Object.keys(fakeSteps).find((name) => !reachedSteps.has(name))
  if (unused === undefined) return
  const names = [...reachedSteps].map((name) => `"${name}"`).join(', ') || 'none'
  throw new Error(`The run has no step "${unused}", for which the test gives a fake. Its steps: ${names}.`)
}
