/**
 * What a caller may choose for a run, in addition to its variables. Every request that queues runs reads its options by
 * this description: single runs, batches, reruns, bulk actions, schedules, the dashboard's forms and MCP.
 */
import type { InsertedRun } from '../../storage/runs/run-statements.ts'
import type { PersistContext } from '../runs/run.ts'

export interface RunOptions {
  /** Seconds until the run may start; 0 to start now. */
  delaySeconds: number
  /** Seconds after which the run expires unless it has started; `null` for never. */
  expiresInSeconds: number | null
  /** Higher ones start first. */
  priority: number
  /** Distinct. */
  tags: readonly string[]
  /** For a workflow with a limit or rate per key. */
  concurrencyKey: string | null
  browserContextId: string | null
  persistContext: PersistContext
}

export type OptionName = keyof RunOptions

interface Description<Value> {
  default: Value
  /** The query parameter of an operation whose body is the run's variables; elsewhere, options have their own names. */
  parameter?: string
  /** The scope that a caller needs to choose it. */
  scope?: string
  /** Whether it applies to the time of the request, so that runs that repeat this one do not have it. */
  isOnce?: true
}

export const runOptions: Readonly<{ [Name in OptionName]: Description<RunOptions[Name]> }> = {
  delaySeconds: { default: 0, isOnce: true },
  expiresInSeconds: { default: null, isOnce: true },
  priority: { default: 0 },
  tags: { default: [], parameter: 'tag' },
  concurrencyKey: { default: null },
  browserContextId: { default: null, scope: 'browser-contexts:use' },
  persistContext: { default: 'onSuccess' },
}

export const optionNames = Object.keys(runOptions) as OptionName[]

export const defaultOptions = Object.fromEntries(
  optionNames.map((name) => [name, runOptions[name].default]),
) as unknown as RunOptions

const { delaySeconds: _, ...scheduleDefaults } = defaultOptions

/** The options of a schedule, which has its own times. */
export type ScheduleOptions = typeof scheduleDefaults
export const defaultScheduleOptions: Readonly<ScheduleOptions> = scheduleDefaults

/** The name of the option as a query parameter. */
export function parameterOf(name: OptionName): string {
  return runOptions[name].parameter ?? name
}

export type GivenOptions = { [Name in OptionName]?: RunOptions[Name] | undefined }

const parameters = optionNames.map((name) => [name, parameterOf(name)] as const)

/** Of all options. */
export const parameterNames: ReadonlySet<string> = new Set(parameters.map(([, parameter]) => parameter))

/** The options among query parameters. */
export function fromParameters(query: Readonly<Record<string, unknown>>): GivenOptions {
  const given: Record<string, unknown> = {}
  for (const [name, parameter] of parameters) if (query[parameter] !== undefined) given[name] = query[parameter]
  return given
}

export function toParameters(given: GivenOptions): Record<string, unknown> {
  return Object.fromEntries(
    parameters.flatMap(([name, parameter]) => (given[name] == null ? [] : [[parameter, given[name]]])),
  )
}

/** The options among the members of a JSON object. */
export function fromMembers(members: object): GivenOptions {
  const given: Record<string, unknown> = {}
  for (const name of optionNames) {
    const value = (members as GivenOptions)[name]
    if (value !== undefined) given[name] = value
  }
  return given
}

export function withDefaults(given: GivenOptions): RunOptions {
  return { ...defaultOptions, ...(fromMembers(given) as Partial<RunOptions>) }
}

/** The options for a run that repeats this one. */
export function repeatedOptions(run: { readonly [Name in OptionName]?: RunOptions[Name] | null }): GivenOptions {
  const given = fromMembers({ ...run, persistContext: run.persistContext ?? undefined })
  for (const name of optionNames) if (runOptions[name].isOnce) delete given[name]
  return given
}

export function scopesOf(given: GivenOptions): string[] {
  return optionNames.flatMap((name) => (given[name] == null ? [] : (runOptions[name].scope ?? [])))
}

/** The options that a workflow may give for a run that it calls. */
export const callOptions: readonly OptionName[] = ['priority', 'tags', 'concurrencyKey', 'browserContextId']

const keyPattern = /^[A-Za-z0-9._:/@=-]+$/
const allowed = 'letters, digits and characters of . _ : / @ = -'

function isKey(value: unknown, lengthMax: number): boolean {
  return typeof value === 'string' && value.length <= lengthMax && keyPattern.test(value)
}

/**
 * The value of these options that the document does not allow, and what it must be. For processes of workflows and tests,
 * which do not load the document's checks.
 */
export function findCallOptionError(given: Record<string, unknown>): { rule: string; value: unknown } | undefined {
  const { priority = 0, tags = [], concurrencyKey = 'key', browserContextId = '' } = given
  if (!Number.isInteger(priority) || Math.abs(priority as number) > 10)
    return { rule: 'priority must be a whole number from -10 to 10', value: priority }
  if (!Array.isArray(tags) || tags.length > 10 || new Set(tags).size < tags.length)
    return { rule: 'tags must be a list of at most 10 different texts', value: tags }
  const wrong = tags.find((tag) => !isKey(tag, 64))
  if (wrong !== undefined) return { rule: `each of tags must be a text of 1 to 64 ${allowed}`, value: wrong }
  if (!isKey(concurrencyKey, 128))
    return { rule: `concurrencyKey must be a text of 1 to 128 ${allowed}`, value: concurrencyKey }
  if (typeof browserContextId !== 'string')
    return { rule: 'browserContextId must be the id of a browser context', value: browserContextId }
  return undefined
}

/** The columns of a run with these options. Its concurrency group depends on its workflow, too. */
export function toColumns(
  { delaySeconds, expiresInSeconds, priority, tags, browserContextId, persistContext }: RunOptions,
  createdAt: number,
) {
  return {
    delayed: delaySeconds === 0 ? 0 : 1,
    available_at: delaySeconds === 0 ? null : createdAt + delaySeconds * 1000,
    expires_at: expiresInSeconds === null ? null : createdAt + expiresInSeconds * 1000,
    priority,
    tags: tags.length === 0 ? null : JSON.stringify(tags),
    browser_context_id: browserContextId?.toLowerCase() ?? null,
    persist_context: browserContextId === null ? null : persistContext,
  } satisfies Partial<InsertedRun>
}

/** What identifies the options in a repeated request: those that differ from the defaults. */
export function identify(options: RunOptions): GivenOptions {
  const { tags, browserContextId, persistContext } = options
  const named: GivenOptions = {
    ...options,
    tags: tags.toSorted(),
    // UUIDs are case-insensitive (RFC 9562, section 4).
    browserContextId: browserContextId?.toLowerCase() ?? null,
    persistContext: browserContextId === null ? defaultOptions.persistContext : persistContext,
  }
  for (const name of optionNames)
    if (JSON.stringify(named[name]) === JSON.stringify(defaultOptions[name])) delete named[name]
  return named
}

// Waits, as an executor and its worker name them.

/** A wait that a run has reached. `isTime`: the author has given the deadline of a sleep, and no period. */
export type ReachedWait = { name: string } & (
  | { kind: 'sleep'; deadline: number; isTime?: boolean }
  | { kind: 'answer'; deadline: number; title: string | null; shown: Record<string, unknown> | null }
  | { kind: 'run'; workflowId: string; variables: Record<string, unknown>; options: GivenOptions; isDetached: boolean }
)

/** What a run learns of its waits. */
export interface WaitResults {
  /** In the order in which the run gets them. Outcomes are JSON. */
  ended: { name: string; outcome: string }[]
  /** Waits that are not stored, with the error that the workflow gets. */
  refused: { name: string; errorName: string; message: string }[]
  /** When each stored sleep of the request ends: the run may have reached it before. */
  deadlines: Record<string, number>
  /** Whether the run has left its worker. */
  isSuspended: boolean
}
