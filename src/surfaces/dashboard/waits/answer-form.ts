/** The form of an answer to a wait, made from its declared schema, and the values that the workflow shows beside it. */
import { isObject, toMembers } from '../../../domain/workflows/example-values.ts'
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { toPointer } from '../../../openapi/json-pointer.ts'
import { type Fact, facts, type Html, html, nothing, notice } from '../html.ts'
import { formatErrors } from '../workflows/form-values.ts'
import {
  newVariablesForm,
  parseForm,
  readVariablesForm,
  type VariablesForm,
  withErrors,
  withoutSecrets,
} from '../workflows/queue-form.ts'
import { renderVariables } from '../workflows/queue-form-template.ts'

/** An answer that is no object is one field, of this name. */
export interface AnswerForm extends VariablesForm {
  only: string | undefined
}

export function newAnswerForm(schema: JsonSchema): AnswerForm {
  const { type, title, $defs, definitions } = schema
  if (type === 'object') return { ...newVariablesForm(schema, false), only: undefined }
  const only = typeof title === 'string' && title !== '' ? title : 'Answer'
  const wrapped = { type: 'object', required: [only], properties: { [only]: schema }, additionalProperties: false }
  return { ...newVariablesForm({ ...wrapped, $defs, definitions }, false), only }
}

export function readAnswerForm(schema: JsonSchema, fields: URLSearchParams): AnswerForm {
  const fresh = newAnswerForm(schema)
  return { ...fresh, ...readVariablesForm(fresh, fresh.mode, fields) }
}

export function parseAnswer(form: AnswerForm): { value: unknown } | { invalid: AnswerForm } {
  const parsed = parseForm(form)
  if ('invalid' in parsed) return { invalid: { ...form, ...parsed.invalid } }
  const { only } = form
  if (only === undefined || Object.hasOwn(parsed.value, only)) {
    return { value: only === undefined ? parsed.value : parsed.value[only] }
  }
  return { invalid: withErrors(form, [{ pointer: toPointer([only]), detail: 'is required' }]) }
}

/** The form with the errors of its answer, to be shown again without secrets. */
export function refuseAnswer(form: AnswerForm, errors: readonly VariableError[]): AnswerForm {
  const prefix = form.only === undefined ? '' : toPointer([form.only])
  return withErrors(
    form,
    errors.map(({ pointer, detail }) => ({ pointer: prefix + pointer, detail })),
  )
}

const words = { none: 'No further details are needed.', json: 'Answer', many: 'fields' }

/** The fields and the button, for a `form` element. */
export function renderAnswerFields(form: AnswerForm): Html {
  const { errors } = form
  return html`${errors.length > 0 ? notice('bad', html`${errors.map((each) => html`${formatErrors([each])} `)}`) : nothing}
    ${renderVariables(withoutSecrets(form), words)}
    <div class="buttons"><button>Send answer</button></div>`
}

/** The values that the workflow shows to the person who answers. */
export function renderShown(shown: Record<string, unknown> | null): Html | '' {
  const entries = Object.entries(toMembers(shown)).map(([name, value]): Fact => {
    const isNested = isObject(value) || Array.isArray(value)
    return [
      name,
      isNested ? html`<pre tabindex="0"><code>${JSON.stringify(value, null, 2)}</code></pre>` : toText(value),
    ]
  })
  return entries.length === 0 ? nothing : facts(entries)
}

function toText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  return value === null ? '–' : String(value)
}
