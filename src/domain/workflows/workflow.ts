/** What a workflow says of itself, as plain data; and the rules that its definition must keep. */

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
  concurrencyLimit: number | null
  /** Whether its runs have a browser. */
  usesBrowser: boolean
}

export type JsonSchema = Record<string, unknown>

/** A workflow that breaks a rule, or cannot be loaded; the message is one sentence that says where and what to mend. */
export class WorkflowError extends Error {}

/** A week; a timer of Node can wait for 24 days at most. */
const timeLimitSecondsMax = 7 * 24 * 60 * 60

/** How long the modules of WORKFLOWS_DIR may take to load. */
export const loadSecondsMax = 20

export function loadTimeoutError(directory: string, seconds: number): WorkflowError {
  return new WorkflowError(
    `The modules of WORKFLOWS_DIR (${directory}) have not loaded within ${seconds} seconds: look for a top-level await or a loop that does not end.`,
  )
}

/** @param how for example `exit code 1`. */
export function loadExitError(directory: string, how: string): WorkflowError {
  return new WorkflowError(`A module of WORKFLOWS_DIR (${directory}) ended its process while it was loaded (${how}).`)
}

const idPattern = /^[A-Za-z0-9._-]{1,128}$/

/** Reads the default export of the module at `path`. */
export function parseWorkflow(path: string, definition: unknown): Workflow {
  const refuse = (rule: string): never => {
    throw new WorkflowError(`${path} is not a workflow: ${rule}.`)
  }
  if (!isRecord(definition)) return refuse('its default export is to be what defineWorkflow returns')
  const unknown = unknownMember(definition)
  if (unknown !== undefined) return refuse(`it has the member ${unknown}, which means nothing`)
  const { id, version, title, description = null, variables, output, timeLimitSeconds = 60, run } = definition
  const { retry = {}, concurrencyLimit = null, browser: usesBrowser = false } = definition
  if (typeof id !== 'string' || !idPattern.test(id)) {
    return refuse('its id is to be 1 to 128 letters, digits, dots, underscores and hyphens')
  }
  if (typeof version !== 'string' || version === '') return refuse('its version is to be a string')
  if (typeof title !== 'string' || title === '') return refuse('its title is to be a string')
  if (description !== null && typeof description !== 'string') return refuse('its description is to be a string')
  if (!isRecord(variables) || variables.type !== 'object') {
    return refuse('its variables are to be a JSON Schema with type "object"')
  }
  if (!isRecord(output)) return refuse('its output is to be a JSON Schema')
  if (typeof run !== 'function') return refuse('its run is to be a function')
  if (!isNumber(timeLimitSeconds) || timeLimitSeconds <= 0 || timeLimitSeconds > timeLimitSecondsMax) {
    return refuse(`its timeLimitSeconds is to be above 0 and at most ${timeLimitSecondsMax}`)
  }
  if (concurrencyLimit !== null && !isCount(concurrencyLimit)) {
    return refuse('its concurrencyLimit is to be a whole number from 1 on')
  }
  if (typeof usesBrowser !== 'boolean') return refuse('its browser is to be true or false')
  if (!isRecord(retry)) return refuse('its retry is to be an object')
  const { maxAttempts = 1, backoffSeconds = 1, backoffFactor = 2 } = retry
  if (!isCount(maxAttempts)) return refuse('its retry.maxAttempts is to be a whole number from 1 on')
  if (!isNumber(backoffSeconds) || backoffSeconds < 0) return refuse('its retry.backoffSeconds is to be 0 or more')
  if (!isNumber(backoffFactor) || backoffFactor < 1) return refuse('its retry.backoffFactor is to be 1 or more')
  const policy = { maxAttempts, backoffSeconds, backoffFactor }
  const limits = { timeLimitSeconds, concurrencyLimit }
  return { id, version, title, description, variables, output, retry: policy, ...limits, usesBrowser }
}

const members = ['id', 'version', 'title', 'description', 'variables', 'output', 'retry', 'run', 'browser']
const known = new Set([...members, 'timeLimitSeconds', 'concurrencyLimit'])
const knownOfRetry = new Set(['maxAttempts', 'backoffSeconds', 'backoffFactor'])

/** A slip such as `attemptsMax` would be found out when the retry does not come. */
function unknownMember({ retry, ...definition }: Record<string, unknown>): string | undefined {
  const ofRetry = Object.keys(isRecord(retry) ? retry : {}).find((name) => !knownOfRetry.has(name))
  return ofRetry === undefined ? Object.keys(definition).find((name) => !known.has(name)) : `retry.${ofRetry}`
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
