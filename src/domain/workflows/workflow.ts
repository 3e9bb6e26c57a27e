/** A workflow as plain data, and the rules for its definition. */

import { toPointer } from '../../openapi/json-pointer.ts'
import { messageLengthMax, nameLengthMax } from '../runs/reported-values.ts'
import { backoffSecondsMax } from '../runs/run-state.ts'
import type { EvidencePolicy } from './define-workflow.ts'
import {
  type Concurrency,
  concurrencyScopes,
  parseThrottle,
  type Throttle,
  throttleMembers,
} from './workflow-limits.ts'

export interface Workflow {
  id: string
  version: string
  title: string
  description: string | null
  /** JSON Schema of an object. */
  variables: JsonSchema
  output: JsonSchema
  retry: { maxAttempts: number; backoffSeconds: number; backoffFactor: number }
  timeLimitSeconds: number
  concurrency?: Concurrency | undefined
  throttle?: Throttle | undefined
  usesBrowser: boolean
  evidence: EvidencePolicy
  /** Whether it signs browser contexts in. Absent if not. */
  signsIn?: true
  /** Whether its definition has `signedOut`. Absent if not. */
  checksSession?: true
  deprecated: boolean
  /** The answers that its runs may wait for, by name. Absent if there are none. */
  waits?: Readonly<Record<string, DeclaredWait>>
  /** The names of the account's secrets that its runs get. Absent if there are none. */
  secrets?: readonly string[]
  /** JSON Schemas of the account's settings that its runs get, by name. Absent if there are none. */
  settings?: Readonly<Record<string, JsonSchema>>
  /** Set when it is deployed. */
  examples?: WorkflowExamples
}

/** The secrets and settings that a run gets. */
export interface DeclaredValues {
  secrets: Readonly<Record<string, string>>
  settings: Readonly<Record<string, unknown>>
}

export const noValues: DeclaredValues = { secrets: {}, settings: {} }

/** Whether runs of the workflow get secrets or settings. */
export function declaresValues({ secrets, settings }: Pick<Workflow, 'secrets' | 'settings'>): boolean {
  return secrets !== undefined || settings !== undefined
}

/** A sentence for callers in Markdown; `undefined` if its runs get neither secrets nor settings. */
export function describeDeclared({ secrets = [], settings = {} }: Pick<Workflow, 'secrets' | 'settings'>) {
  const describe = (kind: string, names: readonly string[]) =>
    names.length > 0
      ? [`the ${kind}${names.length > 1 ? 's' : ''} ${names.map((name) => `\`${name}\``).join(', ')}`]
      : []
  const values = [...describe('secret', secrets), ...describe('setting', Object.keys(settings))]
  return values.length === 0
    ? undefined
    : `Its runs get ${values.join(' and ')} of the account, and wait while one of them is missing.`
}

/** Names of secrets and settings. */
export const declaredNamePattern = /^[A-Z][A-Z0-9_]{0,63}$/

export interface DeclaredWait {
  /** JSON Schema of the answer. */
  schema: JsonSchema
  title: string | null
  description: string | null
}

/** The answer that the workflow declares by this name; not what every object has, such as `constructor`. */
export function declaredWait(workflow: Pick<Workflow, 'waits'> | undefined, name: string): DeclaredWait | undefined {
  const { waits = {} } = workflow ?? {}
  return Object.hasOwn(waits, name) ? waits[name] : undefined
}

export interface WorkflowExamples {
  /** Variables as a caller sends them, and as the run shows them: with defaults, and without secrets. */
  variables: { value: unknown; masked: unknown }[]
  /** At most one. */
  outputs: unknown[]
  /** By the name of the wait. Absent if the workflow declares no waits. */
  answers?: Record<string, unknown>
}

export type JsonSchema = Record<string, unknown>

/** A workflow is invalid or failed to load. The message is one sentence that names the file and the reason. */
export class WorkflowError extends Error {}

/** Names a schema of a workflow. */
export type SchemaMember = 'variables' | 'output' | `waits.${string}` | `settings.${string}`

export function schemaMembers({ waits = {}, settings = {} }: Workflow): SchemaMember[] {
  const named = [...Object.keys(waits).map((name) => `waits.${name}` as const)]
  return ['variables', 'output', ...named, ...Object.keys(settings).map((name) => `settings.${name}` as const)]
}

export function schemaOf({ variables, output, waits = {}, settings = {} }: Workflow, member: SchemaMember): JsonSchema {
  if (member === 'variables') return variables
  if (member === 'output') return output
  const name = nameIn(member)
  return (isOfWait(member) ? waits[name]?.schema : settings[name]) as JsonSchema
}

type NamedMember = Exclude<SchemaMember, 'variables' | 'output'>

function nameIn(member: NamedMember): string {
  return member.slice(member.indexOf('.') + 1)
}

function isOfWait(member: NamedMember): boolean {
  return member.startsWith('waits.')
}

/** A schema of a workflow is refused. */
export class WorkflowSchemaError extends WorkflowError {
  readonly workflowId: string
  /** JSON Pointer to the place in the definition. */
  readonly place: string

  /** @param pointer JSON Pointer to the place in the schema. */
  constructor({ id }: Pick<Workflow, 'id'>, member: SchemaMember, pointer: string, message: string) {
    super(message)
    this.workflowId = id
    this.place = toPointer(placeOf(member)) + pointer
  }
}

function placeOf(member: SchemaMember): string[] {
  if (member === 'variables' || member === 'output') return [member]
  return isOfWait(member) ? ['waits', nameIn(member), 'schema'] : ['settings', nameIn(member)]
}

/** How long modules may take to load. */
export const loadSecondsMax = 20

const idPattern = /^[A-Za-z0-9._-]{1,128}$/
// As the document limits them for workflows of remote workers.
const versionLengthMax = 100
const titleLengthMax = 200
const concurrencyMax = 1_000_000_000
const attemptsMax = 1_000_000
const backoffFactorMax = 1000

/** A week. Timers of Node.js can wait for at most 24 days. */
const timeLimitSecondsMax = 7 * 24 * 60 * 60

/**
 * Reads the default export of the module at `path`.
 *
 * @param findLine returns the line of an option in the source. Each rule about an option begins with its name.
 * @throws {WorkflowError}
 */
export function parseWorkflow(
  path: string,
  definition: unknown,
  findLine: (option: string) => number | undefined = () => undefined,
): Workflow {
  const check: Check = (isValid, rule) => {
    if (isValid) return
    const [option = ''] = rule.split(' ')
    const line = findLine(option)
    throw new WorkflowError(`${line === undefined ? path : `${path}:${line}`} is not a valid workflow: ${rule}.`)
  }
  const isDefinition = isRecord(definition) && required.some((name) => Object.hasOwn(definition, name))
  check(
    isDefinition,
    'its default export must be the result of defineWorkflow; a module that workflows import belongs in a subdirectory',
  )
  const unknown = findUnknownMember(definition)
  check(
    unknown === undefined,
    `${unknown} is not an option of defineWorkflow: the options are ${optionsFor(unknown ?? '')}`,
  )
  const { id, version, title, description = null, variables, output, timeLimitSeconds = 60, run } = definition
  const { retry = {}, concurrency, throttle, browser: usesBrowser = false, deprecated = false } = definition
  const { evidence = 'onFailure' } = definition
  check(
    typeof id === 'string' && idPattern.test(id) && !isDots(id),
    'id must be 1 to 128 letters, digits, dots, underscores and hyphens, and not only one or two dots',
  )
  checkText(check, 'version', version, { max: versionLengthMax })
  checkText(check, 'title', title, { max: titleLengthMax })
  if (description !== null) checkText(check, 'description', description, { min: 0, max: messageLengthMax })
  check(isRecord(variables) && variables.type === 'object', 'variables must be a JSON Schema with type "object"')
  check(isRecord(output), 'output must be a JSON Schema')
  check(typeof run === 'function', 'run must be a function')
  check(
    isNumber(timeLimitSeconds) && timeLimitSeconds > 0 && timeLimitSeconds <= timeLimitSecondsMax,
    `timeLimitSeconds must be greater than 0 and at most ${timeLimitSecondsMax}`,
  )
  check(typeof usesBrowser === 'boolean', 'browser must be true or false')
  check(isPolicy(evidence), "evidence must be 'onFailure', 'always' or 'off'")
  check(typeof deprecated === 'boolean', 'deprecated must be true or false')
  const policy = parseRetry(retry, check)
  const limits = {
    timeLimitSeconds,
    ...parseConcurrency(concurrency, check),
    ...parseThrottle(throttle, check),
  }
  return {
    id,
    version,
    title,
    description,
    variables,
    output,
    retry: policy,
    ...limits,
    usesBrowser,
    evidence,
    deprecated,
    ...parseSignIn(definition, check),
    ...parseWaits(definition.waits, check),
    ...parseDeclaredValues(definition, check),
  }
}

const required = ['id', 'version', 'title', 'variables', 'output', 'run']
const optional = [
  'description',
  'retry',
  'timeLimitSeconds',
  'concurrency',
  'throttle',
  'browser',
  'evidence',
  'signsIn',
  'signedOut',
  'waits',
  'secrets',
  'settings',
  'deprecated',
]
const members = new Set([...required, ...optional])
/** Options that are objects, with their members. */
const nestedMembers: Record<string, readonly string[]> = {
  retry: ['maxAttempts', 'backoffSeconds', 'backoffFactor'],
  concurrency: ['limit', 'per'],
  throttle: throttleMembers,
}

function parseSignIn(
  { browser, signsIn = false, signedOut }: Record<string, unknown>,
  check: Check,
): Pick<Workflow, 'signsIn' | 'checksSession'> {
  check(typeof signsIn === 'boolean', 'signsIn must be true or false')
  check(!signsIn || browser === true, 'signsIn requires browser: true')
  check(signedOut === undefined || typeof signedOut === 'function', 'signedOut must be a function of a page')
  check(signedOut === undefined || browser === true, 'signedOut requires browser: true')
  return { ...(signsIn && { signsIn }), ...(signedOut !== undefined && { checksSession: true }) }
}

/** Answers that a workflow may declare. */
const waitsMax = 100

/** As segments of paths, which clients remove. */
function isDots(name: string): boolean {
  return name === '.' || name === '..'
}

type Check = (isValid: boolean, rule: string) => asserts isValid

/** PostgreSQL stores no U+0000, and JSON has no lone surrogates. */
function checkText(
  check: Check,
  option: string,
  text: unknown,
  { min = 1, max }: { min?: number; max: number },
): asserts text is string {
  const isText = typeof text === 'string' && !text.includes('\0') && text.isWellFormed()
  const length = isText ? [...text].length : -1
  check(length >= min && length <= max, `${option} must be a string of ${min} to ${max} characters, without U+0000`)
}

function isWaitName(name: string): boolean {
  return name !== '' && !isDots(name) && name.length <= nameLengthMax && !name.includes('\0') && name.isWellFormed()
}

function parseWaits(waits: unknown, check: Check): { waits?: Record<string, DeclaredWait> } {
  if (waits === undefined) return {}
  check(isRecord(waits), 'waits must be an object of waits by their names')
  const entries = Object.entries(waits)
  check(entries.length <= waitsMax, `waits must have at most ${waitsMax} members`)
  const declared = entries.map(([name, wait]): [string, DeclaredWait] => {
    check(
      isWaitName(name),
      `waits must have names of 1 to ${nameLengthMax} characters, and not ${JSON.stringify(name)}`,
    )
    const place = `waits.${name}`
    check(isRecord(wait) && isRecord(wait.schema), `${place} must be an object with a JSON Schema as its schema`)
    const { schema, title = null, description = null, ...others } = wait
    const [unknown] = Object.keys(others)
    const options = ['schema', 'title', 'description'].map((option) => `${place}.${option}`).join(', ')
    check(unknown === undefined, `${place}.${unknown} is not an option of defineWorkflow: the options are ${options}`)
    if (title !== null) checkText(check, `${place}.title`, title, { max: messageLengthMax })
    if (description !== null) checkText(check, `${place}.description`, description, { min: 0, max: messageLengthMax })
    return [name, { schema, title, description }]
  })
  return declared.length === 0 ? {} : { waits: Object.fromEntries(declared) }
}

/** Secrets, and settings, that a workflow may declare. */
export const declaredMax = 100

const nameRule = 'of 1 to 64 capital letters, digits and underscores that begin with a letter'

function parseDeclaredValues(
  { secrets = [], settings = {} }: Record<string, unknown>,
  check: Check,
): Pick<Workflow, 'secrets' | 'settings'> {
  check(Array.isArray(secrets), 'secrets must be an array of names')
  check(secrets.length <= declaredMax, `secrets must have at most ${declaredMax} names`)
  for (const [index, name] of secrets.entries()) {
    check(isDeclaredName(name), `secrets must have names ${nameRule}, and not ${JSON.stringify(name)}`)
    check(secrets.indexOf(name) === index, `secrets must name ${name} once`)
  }
  check(isRecord(settings), 'settings must be an object of JSON Schemas by their names')
  const entries = Object.entries(settings)
  check(entries.length <= declaredMax, `settings must have at most ${declaredMax} members`)
  for (const [name, schema] of entries) {
    check(isDeclaredName(name), `settings must have names ${nameRule}, and not ${JSON.stringify(name)}`)
    check(isRecord(schema), `settings.${name} must be a JSON Schema`)
  }
  return {
    ...(secrets.length > 0 && { secrets: [...secrets] }),
    ...(entries.length > 0 && { settings: Object.fromEntries(entries) as Record<string, JsonSchema> }),
  }
}

function isDeclaredName(name: unknown): boolean {
  return typeof name === 'string' && declaredNamePattern.test(name)
}

function parseRetry(retry: unknown, check: (isValid: boolean, rule: string) => asserts isValid): Workflow['retry'] {
  check(isRecord(retry), 'retry must be an object')
  const { maxAttempts = 1, backoffSeconds = 1, backoffFactor = 2 } = retry
  check(
    isCount(maxAttempts) && maxAttempts <= attemptsMax,
    `retry.maxAttempts must be an integer of at least 1 and at most ${attemptsMax}`,
  )
  check(
    isNumber(backoffSeconds) && backoffSeconds >= 0 && backoffSeconds <= backoffSecondsMax,
    `retry.backoffSeconds must be at least 0 and at most ${backoffSecondsMax}, which is a year`,
  )
  check(
    isNumber(backoffFactor) && backoffFactor >= 1 && backoffFactor <= backoffFactorMax,
    `retry.backoffFactor must be at least 1 and at most ${backoffFactorMax}`,
  )
  return { maxAttempts, backoffSeconds, backoffFactor }
}

function parseConcurrency(concurrency: unknown, check: Check): { concurrency?: Concurrency } {
  if (concurrency === undefined) return {}
  check(isRecord(concurrency), 'concurrency must be an object with a limit')
  const { limit, per = 'account' } = concurrency
  check(
    isCount(limit) && limit <= concurrencyMax,
    `concurrency.limit must be an integer of at least 1 and at most ${concurrencyMax}`,
  )
  const scope = concurrencyScopes.find((each) => each === per)
  check(scope !== undefined, `concurrency.per must be one of ${concurrencyScopes.join(', ')}`)
  return { concurrency: { limit, per: scope } }
}

/** Finds typos such as `attemptsMax`, which would otherwise go unnoticed until a retry does not happen. */
function findUnknownMember(definition: Record<string, unknown>): string | undefined {
  for (const [option, known] of Object.entries(nestedMembers)) {
    const value = definition[option]
    const unknown = Object.keys(isRecord(value) ? value : {}).find((name) => !known.includes(name))
    if (unknown !== undefined) return `${option}.${unknown}`
  }
  return Object.keys(definition).find((name) => !members.has(name))
}

/** The options that could be meant. */
function optionsFor(unknown: string): string {
  const [option = ''] = unknown.split('.')
  const nested = unknown.includes('.') ? nestedMembers[option] : undefined
  return nested ? nested.map((name) => `${option}.${name}`).join(', ') : [...members].join(', ')
}

function isPolicy(value: unknown): value is EvidencePolicy {
  return value === 'onFailure' || value === 'always' || value === 'off'
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1
}
