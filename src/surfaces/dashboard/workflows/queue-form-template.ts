/** Templates of the form that queues a run, and of the variables in it and in the form of a schedule. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { mask } from '../../../domain/workflows/secrets.ts'
import { time } from '../format.ts'
import { attribute, type Html, html, labelledField, nothing, notice, textArea } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'
import { defaultFormValues, type FormValue, formatErrors } from './form-values.ts'
import { hiddenSecret } from './json-input.ts'
import type { QueueForm, VariablesForm } from './queue-form.ts'
import { renderContextChoice, renderOptions, renderStartChoice } from './queue-options.ts'
import { type FieldKind, inputName, type VariableField } from './variable-fields.ts'

/** @param contexts the browser contexts to choose from. */
export function renderQueueForm(form: QueueForm, error: string, contexts: readonly BrowserContext[]): Html {
  const { workflow, mode, from, key, errors, context } = form
  const path = `/workflows/${workflow.id}${mode === 'json' ? '?as=json' : ''}`
  return html`${error ? notice('bad', html`${error}${errors.map((each) => html`<br />${formatErrors([each])}`)}`) : nothing}
    <form method="post" action="${path}" class="card" id="queue">
      <div class="form-head"><h2>${from ? 'Run again' : 'Run'}</h2>${renderModeLink(form)}</div>
      ${from ? html`<p class="muted">Variables of ${runLink(from.id)}, queued ${time(from.createdAt)}.</p>` : nothing}
      <input type="hidden" name="key" value="${key}" />
      ${from ? html`<input type="hidden" name="from" value="${from.id}" />` : nothing}
      ${form.start ? renderStartChoice(form.start) : nothing}
      ${renderVariables(form)}
      ${workflow.usesBrowser ? renderContextChoice(context, contexts) : nothing}
      ${renderOptions(form.options)}
      <div class="buttons"><button>Queue run</button></div>
    </form>`
}

/** Switches between fields and JSON. What was entered is lost. */
function renderModeLink({ workflow, mode, jsonOnly, from, context: { contextId } }: QueueForm): Html | '' {
  if (jsonOnly) return nothing
  const query = new URLSearchParams({
    ...(from && { from: from.id }),
    ...(contextId !== '' && { browserContextId: contextId }),
    ...(mode === 'fields' && { as: 'json' }),
  })
  const path = `/workflows/${workflow.id}${query.size > 0 ? `?${query}` : ''}`
  return html`<a href="${path}">${mode === 'json' ? 'Edit as fields' : 'Edit as JSON'}</a>`
}

/** What the form calls what is entered. */
const variableWords = { none: 'This workflow takes no variables.', json: 'Variables', many: 'variables' }

export function renderVariables(form: VariablesForm, words = variableWords): Html {
  return form.mode === 'json' ? renderJson(form, words) : renderFields(form, words)
}

/** More fields than fit on a screen. */
const foldedMin = 7

/** Of many fields, those that must be filled in come first, and the others are folded unless one has a value to see. */
function renderFields({ fields, values, earlier }: VariablesForm, words: typeof variableWords): Html {
  if (fields.length === 0) return html`<p>${words.none}</p>`
  const entered = (field: VariableField) => values.get(field.name) ?? { text: '' }
  const render = (field: VariableField) => {
    const keepsSecret = field.isSecret && earlier !== undefined && Object.hasOwn(earlier.variables, field.name)
    return renderVariableField(field, entered(field), keepsSecret ? keptHints[earlier.owner] : undefined)
  }
  const [required = [], optional = []] = [true, false].map((is) => fields.filter((field) => field.required === is))
  if (fields.length < foldedMin || optional.length < 2) return html`${fields.map(render)}`
  const defaults = defaultFormValues(fields)
  const isOpen = optional.some((field) => {
    const { text, error, isHidden } = entered(field)
    return error !== undefined || isHidden === true || text !== defaults.get(field.name)?.text
  })
  return html`${required.map(render)}
    <details ${attribute('open', isOpen)}><summary>${optional.length} optional ${words.many}</summary>${optional.map(render)}</details>`
}

const keptHints = {
  run: 'Leave empty to use the value of the earlier run.',
  schedule: 'Leave empty to keep it. With other variables, enter it again.',
  signIn: 'Leave empty to keep it.',
}

const maskHints = {
  run: `${mask} stands for the secret of the earlier run.`,
  schedule: `${mask} stands for a secret of the schedule. If you change anything here, enter its secrets again.`,
  signIn: `${mask} stands for a secret that is stored, and keeps it.`,
}

function renderJson({ json, jsonOnly, earlier }: VariablesForm, words: typeof variableWords): Html {
  const hints = [
    jsonOnly === 'noFieldForValue' && 'Shown as JSON because the form has no fields for some of the variables.',
    earlier && json.text.includes(mask) && maskHints[earlier.owner],
    json.isHidden && `Secrets are never sent back to the browser: replace ${hiddenSecret} with their values.`,
  ]
  const rows = Math.min(24, Math.max(8, json.text.split('\n').length + 1))
  const hint = hints.filter(Boolean).join(' ') || undefined
  return labelledField({ name: 'variables', label: words.json, hint, error: json.error }, (common) =>
    textArea(common, json.text, rows),
  )
}

// Template of one variable's field in the queue form.

/** @param kept set if the empty field keeps an earlier secret. */
function renderVariableField(field: VariableField, value: FormValue, kept: string | undefined): Html {
  const { name, title, required, kind } = field
  const mark = required && kind.type !== 'checkbox' ? html` <span class="mark">required</span>` : nothing
  const label = html`${title}${title === name ? nothing : html` <code>${name}</code>`}${mark}`
  const { error, isHidden } = value
  const hiddenError = isHidden && 'Enter secrets again: they are never sent back to the browser.'
  return labelledField(
    {
      name: inputName(name),
      label,
      hint: fieldHints(field, value, kept).join(' ') || undefined,
      error: [error, hiddenError].filter(Boolean).join(' ') || undefined,
    },
    (common) => {
      const isRequired = attribute('required', mustBeEntered(field, value, kept !== undefined))
      return renderControl(field, value.text, html`${common} ${isRequired}`)
    },
  )
}

/** A hidden secret must be entered again: submitting the field empty would silently drop it. */
function mustBeEntered(field: VariableField, { isHidden }: FormValue, keepsSecret: boolean): boolean {
  if (isHidden && field.isSecret) return true
  return (
    field.required && !keepsSecret && field.default === undefined && !field.whenEmpty && field.kind.type !== 'checkbox'
  )
}

const kindHints: { [Type in FieldKind['type']]?: string } = {
  file: 'The ID of an uploaded file.',
  moment: 'In UTC.',
  lines: 'One per line.',
  json: 'As JSON.',
}

function fieldHints({ description, isSecret, kind }: VariableField, { isHidden }: FormValue, kept: string | undefined) {
  return [
    description,
    isSecret && 'Secret: encrypted and never shown.',
    !isHidden && kept,
    kindHints[kind.type],
  ].filter(Boolean)
}

function renderControl(field: VariableField, text: string, common: Html): Html {
  const { kind, isSecret } = field
  if (isSecret && (kind.type === 'json' || kind.type === 'lines')) return textArea(common, '', 3)
  if (isSecret && kind.type !== 'choice') {
    return html`<input type="password" ${common} value="" autocomplete="new-password" spellcheck="false" />`
  }
  switch (kind.type) {
    case 'text':
      if (kind.isLong || text.includes('\n')) return textArea(common, text, 5)
      return html`<input type="${kind.input}" ${common} value="${text}" ${placeholder(field)} autocomplete="off" />`
    case 'file':
      return html`<input type="text" ${common} value="${text}" data-upload="/files" spellcheck="false" autocomplete="off" />`
    case 'moment':
      return html`<input type="datetime-local" ${common} value="${text}" step="any" />`
    case 'number':
      return html`<input type="number" ${common} value="${text}" ${placeholder(field)} autocomplete="off" ${range(kind)} />`
    case 'checkbox':
      return html`<label class="check"><input type="checkbox" ${common} ${attribute('checked', text !== '')} /> Yes</label>`
    case 'choice':
      return renderChoice(field, kind.values, text, common)
    case 'lines':
      return textArea(common, text, 3)
    case 'json':
      return textArea(common, text, Math.min(14, text.split('\n').length + 1))
  }
}

/** The default, which the workflow uses for an empty field. */
function placeholder({ default: value }: VariableField): Html | '' {
  return typeof value === 'string' || typeof value === 'number' ? html`placeholder="${value}"` : nothing
}

function range({ min, max, step }: Extract<FieldKind, { type: 'number' }>): Html {
  return html`${min === undefined ? nothing : html`min="${min}"`} ${max === undefined ? nothing : html`max="${max}"`}
    step="${step ?? 'any'}"`
}

function renderChoice(field: VariableField, values: readonly unknown[], text: string, common: Html): Html {
  const { required, isSecret, default: defaultValue } = field
  const options = values.map((value) => {
    const json = JSON.stringify(value)
    const title = typeof value === 'string' && value !== '' ? value : json
    const isSelected = json === text || (required && values.length === 1)
    return html`<option value="${json}" ${attribute('selected', isSelected)}>${title}</option>`
  })
  const hasDefault = defaultValue !== undefined
  const none =
    required && !hasDefault
      ? 'Choose…'
      : hasDefault && !isSecret
        ? `Default: ${JSON.stringify(defaultValue)}`
        : 'Not set'
  return html`<select ${common}><option value="">${none}</option>${options}</select>`
}
