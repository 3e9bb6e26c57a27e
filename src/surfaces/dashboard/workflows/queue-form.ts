/** The form of the variables of a run or schedule, and the form that queues a run: initial values, and parsing. */
import { v4 as uuid, validate } from 'uuid'
import type { QueueRequest } from '../../../domain/queue/queue-request.ts'
import { repeatedOptions } from '../../../domain/queue/run-options.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { draftVariables, isObject, type Members } from '../../../domain/workflows/example-values.ts'
import type { JsonSchema, Workflow } from '../../../domain/workflows/workflow.ts'
import { maskedSecretDetail, type VariableError } from '../../../domain/workflows/workflows.ts'
import {
  assignErrors,
  defaultFormValues,
  type FormValue,
  type FormValues,
  formatErrors,
  hideSecretsInJson,
  hideSecretValues,
  readFormValues,
  toFormValues,
  toVariables,
} from './form-values.ts'
import { findSecretPlaces, parseVariables } from './json-input.ts'
import {
  type ContextChoice,
  contextOptions,
  type FormOptions,
  initialChoice,
  offeredOptions,
  parseOptions,
  readChoice,
  readOptions,
  type StartChoice,
  toTexts,
} from './queue-options.ts'
import { hasFieldForAll, type VariableField, variableFields } from './variable-fields.ts'

export type FormMode = 'fields' | 'json'

/** What the form begins with. A field that is left as it is keeps its value, and an empty one its secret. */
export interface Earlier {
  /** With every secret masked. */
  variables: Members
  owner: 'run' | 'schedule' | 'signIn'
}

export interface VariablesForm {
  schema: JsonSchema
  fields: VariableField[]
  /** Whether variables are entered in one field each or as one JSON text. */
  mode: FormMode
  /** Why there is only the JSON mode. */
  jsonOnly: 'noFields' | 'noFieldForValue' | undefined
  values: FormValues
  json: FormValue
  earlier: Earlier | undefined
  /** Errors that belong to no field. */
  errors: VariableError[]
}

export interface QueueForm extends VariablesForm {
  workflow: Workflow
  options: FormOptions
  context: ContextChoice
  from: Run | undefined
  /** Set if the run may start from another step than the first. */
  start?: StartChoice | undefined
  /** The idempotency key: submitting the form twice queues one run. */
  key: string
}

export function newVariablesForm(schema: JsonSchema, wantsJson: boolean, earlier?: Earlier): VariablesForm {
  const fields = variableFields(schema)
  const values = earlier ? toFormValues(fields, shownVariables(fields, earlier)) : defaultFormValues(fields)
  const jsonOnly = !hasFieldForAll(schema) ? 'noFields' : values ? undefined : 'noFieldForValue'
  return {
    schema,
    fields,
    mode: wantsJson || jsonOnly ? 'json' : 'fields',
    jsonOnly,
    values: values ?? new Map(),
    json: { text: JSON.stringify(earlier ? earlier.variables : draftVariables(schema), null, 2) },
    earlier,
    errors: [],
  }
}

/** A schedule leaves the defaults to the deployment of each run. */
function shownVariables(fields: readonly VariableField[], { variables, owner }: Earlier): Members {
  if (owner === 'run') return variables
  const defaults = fields.filter((field) => field.default !== undefined).map((field) => [field.name, field.default])
  return { ...Object.fromEntries(defaults), ...variables }
}

export function readVariablesForm(fresh: VariablesForm, mode: FormMode, form: URLSearchParams): VariablesForm {
  const text = form.get('variables') ?? ''
  const parsed = parseObject(text)
  return {
    ...fresh,
    mode,
    values: readFormValues(fresh.fields, form),
    json: { text, ...('error' in parsed && { error: parsed.error }) },
  }
}

/**
 * @param from a run of the workflow whose variables fill the form.
 * @param contextId of the browser context to preselect; may be empty.
 */
export function newQueueForm(workflow: Workflow, from: Run | undefined, wantsJson: boolean, contextId = ''): QueueForm {
  const offered = offeredOptions(workflow)
  const initial = toTexts(offered, from ? repeatedOptions(from) : {})
  const earlier: Earlier | undefined = from && { variables: from.variables, owner: 'run' }
  return {
    ...newVariablesForm(workflow.variables, wantsJson, earlier),
    workflow,
    options: readOptions(offered, (name) => initial[name]),
    context: initialChoice(from, contextId),
    from,
    key: uuid(),
  }
}

export function readQueueForm(
  workflow: Workflow,
  from: Run | undefined,
  mode: FormMode,
  form: URLSearchParams,
): QueueForm {
  const fresh = newQueueForm(workflow, from, mode === 'json')
  const key = form.get('key') ?? ''
  return {
    ...fresh,
    ...readVariablesForm(fresh, mode, form),
    options: readOptions(offeredOptions(workflow), (name) => form.get(name)),
    context: readChoice(form),
    key: validate(key) ? key : fresh.key,
  }
}

export function toQueueRequest(form: QueueForm): { request: QueueRequest } | { invalid: QueueForm } {
  const { workflow, from, key, context } = form
  const options = parseOptions(form.options)
  const parsed = parseForm(form)
  if ('invalid' in parsed) return { invalid: { ...form, ...parsed.invalid } }
  if (!options || context.error !== undefined) return { invalid: form }
  const chosen = { ...options, ...contextOptions(context) }
  const request = { workflowId: workflow.id, variables: parsed.value, idempotencyKey: key, ...chosen }
  return { request: from ? { ...request, secretsFrom: from.id, rerunOf: from.id } : request }
}

/** The entered variables, within the limits of a request. */
export function parseForm(form: VariablesForm): { value: Members } | { invalid: VariablesForm } {
  if (form.mode === 'json') {
    const parsed = parseObject(form.json.text)
    return 'error' in parsed ? { invalid: form } : parsed
  }
  const { fields, values, earlier } = form
  if ([...values.values()].some(({ error }) => error !== undefined)) return { invalid: form }
  const value = toVariables(fields, values, earlier?.variables ?? {})
  const parsed = parseVariables(JSON.stringify(value))
  return 'value' in parsed ? { value } : { invalid: withErrors(form, parsed.errors) }
}

function parseObject(text: string): { value: Members } | { error: string } {
  const parsed = parseVariables(text)
  if ('errors' in parsed) return { error: formatErrors(parsed.errors) }
  return isObject(parsed.value) ? { value: parsed.value } : { error: 'Enter a JSON object, such as {"name": "value"}.' }
}

/** Masks are replaced only in unchanged variables, or for the user who queued the earlier run. */
const lostSecret = {
  run: 'is a secret that must be entered again, because only its own user can reuse it with other variables',
  schedule: 'is a secret that must be entered again, because other variables have changed',
  signIn: 'is a secret that must be entered again',
}

export function withErrors<Form extends VariablesForm>(form: Form, refused: readonly VariableError[]): Form {
  const { earlier } = form
  const explain = (detail: string) => (earlier && detail === maskedSecretDetail ? lostSecret[earlier.owner] : detail)
  const errors = refused.map(({ pointer, detail }) => ({ pointer, detail: explain(detail) }))
  if (form.mode === 'json') return { ...form, json: { ...form.json, error: formatErrors(errors) } }
  const values = new Map([...form.values].map(([name, value]) => [name, { ...value }]))
  return { ...form, values, errors: assignErrors(values, errors) }
}

/** The form without its secrets, to be shown again. */
export function withoutSecrets<Form extends VariablesForm>(form: Form): Form {
  const places = findSecretPlaces(form.schema)
  return {
    ...form,
    values: hideSecretValues(form.fields, form.values, places),
    json: hideSecretsInJson(form.json, places),
  }
}
