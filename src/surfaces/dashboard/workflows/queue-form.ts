/** The form that queues a run: its initial values, and parsing its submission. */
import { v4 as uuid, validate } from 'uuid'
import type { QueueRequest } from '../../../domain/queue/queue-request.ts'
import { repeatedOptions } from '../../../domain/queue/run-options.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { draftVariables, isObject, type Members } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import {
  assignErrors,
  defaultFormValues,
  type FormValue,
  type FormValues,
  formatErrors,
  hideSecretsInJson,
  hideSecretValues,
  maskedSecrets,
  readFormValues,
  toFormValues,
  toVariables,
} from './form-values.ts'
import { findSecretPlaces, parseVariables } from './json-input.ts'
import {
  type ContextChoice,
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

export interface QueueForm {
  workflow: Workflow
  fields: VariableField[]
  /** Whether variables are entered in one field each or as one JSON text. */
  mode: FormMode
  /** Why there is only the JSON mode. */
  jsonOnly: 'noFields' | 'noFieldForRun' | undefined
  values: FormValues
  json: FormValue
  options: FormOptions
  context: ContextChoice
  from: Run | undefined
  /** Set if the run may start from another step than the first. */
  start?: StartChoice | undefined
  /** The idempotency key: submitting the form twice queues one run. */
  key: string
  /** Errors that belong to no field. */
  errors: VariableError[]
}

/**
 * @param from a run of the workflow whose variables fill the form.
 * @param contextId of the browser context to preselect; may be empty.
 */
export function newQueueForm(workflow: Workflow, from: Run | undefined, wantsJson: boolean, contextId = ''): QueueForm {
  const offered = offeredOptions(workflow)
  const initial = toTexts(offered, from ? repeatedOptions(from) : {})
  const fields = variableFields(workflow.variables)
  const values = from ? toFormValues(fields, from.variables) : defaultFormValues(fields)
  const jsonOnly = !hasFieldForAll(workflow.variables) ? 'noFields' : values ? undefined : 'noFieldForRun'
  return {
    workflow,
    fields,
    mode: wantsJson || jsonOnly ? 'json' : 'fields',
    jsonOnly,
    values: values ?? new Map(),
    json: { text: JSON.stringify(from ? from.variables : draftVariables(workflow.variables), null, 2) },
    options: readOptions(offered, (name) => initial[name]),
    context: initialChoice(from, contextId),
    from,
    key: uuid(),
    errors: [],
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
  const text = form.get('variables') ?? ''
  const parsed = parseObject(text)
  return {
    ...fresh,
    mode,
    values: readFormValues(fresh.fields, form),
    json: { text, ...('error' in parsed && { error: parsed.error }) },
    options: readOptions(offeredOptions(workflow), (name) => form.get(name)),
    context: readChoice(form),
    key: validate(key) ? key : fresh.key,
  }
}

export function toQueueRequest(form: QueueForm): { request: QueueRequest } | { invalid: QueueForm } {
  const { workflow, from, key, context } = form
  const options = parseOptions(form.options)
  const parsed = form.mode === 'json' ? parseObject(form.json.text) : readFieldVariables(form)
  if ('invalid' in parsed) return parsed
  if ('error' in parsed || !options || context.error !== undefined) return { invalid: form }
  const { contextId: id, persist } = context
  const browserContext = id === '' ? {} : { browserContextId: id, persistContext: persist }
  const chosen = { ...options, ...browserContext }
  const request = { workflowId: workflow.id, variables: parsed.value, idempotencyKey: key, ...chosen }
  return { request: from ? { ...request, secretsFrom: from.id, rerunOf: from.id } : request }
}

function readFieldVariables(form: QueueForm): { value: Members } | { invalid: QueueForm } {
  const { fields, values, from } = form
  if ([...values.values()].some(({ error }) => error !== undefined)) return { invalid: form }
  const value = toVariables(fields, values, from ? maskedSecrets(fields, from.variables) : {})
  // The same limits as for a request to the Execution API.
  const parsed = parseVariables(JSON.stringify(value))
  return 'value' in parsed ? { value } : { invalid: withErrors(form, parsed.errors) }
}

function parseObject(text: string): { value: Members } | { error: string } {
  const parsed = parseVariables(text)
  if ('errors' in parsed) return { error: formatErrors(parsed.errors) }
  return isObject(parsed.value) ? { value: parsed.value } : { error: 'Enter a JSON object, such as {"name": "value"}.' }
}

export function withErrors(form: QueueForm, errors: readonly VariableError[]): QueueForm {
  if (form.mode === 'json') return { ...form, json: { ...form.json, error: formatErrors(errors) } }
  const values = new Map([...form.values].map(([name, value]) => [name, { ...value }]))
  return { ...form, values, errors: assignErrors(values, errors) }
}

/** The form without its secrets, to be shown again. */
export function withoutSecrets(form: QueueForm): QueueForm {
  const places = findSecretPlaces(form.workflow.variables)
  return {
    ...form,
    values: hideSecretValues(form.fields, form.values, places),
    json: hideSecretsInJson(form.json, places),
  }
}
