/** Template of one variable's field in the queue form. */
import { attribute, type Html, html, labelledField, nothing, textArea } from '../html.ts'
import type { FormValue } from './form-values.ts'
import { type FieldKind, inputName, type VariableField } from './variable-fields.ts'

/** @param keepsSecret whether an empty field keeps the secret of the run that is run again. */
export function renderVariableField(field: VariableField, value: FormValue, keepsSecret: boolean): Html {
  const { name, title, required, kind } = field
  const mark = required && kind.type !== 'checkbox' ? html` <span class="mark">required</span>` : nothing
  const label = html`${title}${title === name ? nothing : html` <code>${name}</code>`}${mark}`
  const { error, isHidden } = value
  const hiddenError = isHidden && 'Enter secrets again: they are never sent back to the browser.'
  return labelledField(
    {
      name: inputName(name),
      label,
      hint: fieldHints(field, value, keepsSecret).join(' ') || undefined,
      error: [error, hiddenError].filter(Boolean).join(' ') || undefined,
    },
    (common) => {
      const isRequired = attribute('required', mustBeEntered(field, value, keepsSecret))
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
  moment: 'In UTC.',
  lines: 'One per line.',
  json: 'As JSON.',
}

function fieldHints({ description, isSecret, kind }: VariableField, { isHidden }: FormValue, keepsSecret: boolean) {
  return [
    description,
    isSecret && 'Secret: encrypted and never shown.',
    keepsSecret && !isHidden && 'Leave empty to use the value of the earlier run.',
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
