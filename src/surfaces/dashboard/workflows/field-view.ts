/** What each kind of field looks like in the form that queues a run. */
import { labelledField } from '../elements.ts'
import { attributes, type Html, html, nothing } from '../html.ts'
import type { Entry } from './entries.ts'
import { inputName, type Kind, type VariableField } from './fields.ts'

/** @param isKept whether the run that is run again has a secret here. */
export function variableField(field: VariableField, entry: Entry, isKept: boolean): Html {
  const { title, required, kind } = field
  const mark = required && kind.type !== 'checkbox' ? html` <span class="mark">required</span>` : nothing
  const label = html`${title}${title === field.name ? nothing : html` <code>${field.name}</code>`}${mark}`
  return labelledField(
    { name: inputName(field.name), label, hint: hintOf(field, entry, isKept), error: errorOf(entry) },
    (given) => control(field, kind, entry, html`${given} ${mustBeGiven(field, entry, isKept)}`),
  )
}

/** A secret that is to be put in again must not be forgotten: nothing would otherwise tell that it is not what it was. */
function mustBeGiven(
  { required, kind, default: value, isSecret, whenEmpty }: VariableField,
  entry: Entry,
  isKept: boolean,
) {
  if (entry.isHidden && isSecret) return html`required`
  const isNeeded = required && !isKept && value === undefined && !whenEmpty && kind.type !== 'checkbox'
  return attributes(isNeeded, 'required')
}

function errorOf({ error, isHidden }: Entry): string | undefined {
  if (!isHidden) return error
  return [error, 'Put secrets in again: they are not sent back to you.'].filter(Boolean).join(' ')
}

function hintOf(field: VariableField, { isHidden }: Entry, isKept: boolean): Html | undefined {
  const hints = [
    ...(field.description === undefined ? [] : [field.description]),
    ...(field.isSecret ? ['A secret: it is encrypted, and shown nowhere.'] : []),
    ...(isKept && !isHidden ? ['Left empty, it is the one of the run that you run again.'] : []),
    ...kindHints(field.kind),
  ]
  return hints.length === 0 ? undefined : html`${hints.join(' ')}`
}

function kindHints(kind: Kind): string[] {
  if (kind.type === 'moment') return ['In UTC.']
  if (kind.type === 'lines') return ['One in each line.']
  if (kind.type === 'json') return ['As JSON.']
  return []
}

function control(field: VariableField, kind: Kind, { text }: Entry, given: Html): Html {
  if (field.isSecret && (kind.type === 'json' || kind.type === 'lines')) return area(given, '', 3)
  if (field.isSecret && kind.type !== 'choice') {
    return html`<input type="password" ${given} value="" autocomplete="new-password" spellcheck="false" />`
  }
  switch (kind.type) {
    case 'text':
      if (kind.isLong || text.includes('\n')) return area(given, text, 5)
      return html`<input type="${kind.input}" ${given} value="${text}" ${placeholder(field)} autocomplete="off" />`
    case 'moment':
      return html`<input type="datetime-local" ${given} value="${text}" step="any" />`
    case 'number':
      return html`<input type="number" ${given} value="${text}" ${placeholder(field)} autocomplete="off" ${range(kind)} />`
    case 'checkbox':
      return html`<label class="check"><input type="checkbox" ${given} ${attributes(text !== '', 'checked')} /> Yes</label>`
    case 'choice':
      return choice(field, kind.values, text, given)
    case 'lines':
      return area(given, text, 3)
    case 'json':
      return area(given, text, Math.min(14, text.split('\n').length + 1))
  }
}

/** What a field that is left empty comes to. */
function placeholder({ default: value }: VariableField): Html | '' {
  return typeof value === 'string' || typeof value === 'number' ? html`placeholder="${value}"` : nothing
}

function range({ min, max, step }: Extract<Kind, { type: 'number' }>): Html {
  return html`${min === undefined ? nothing : html`min="${min}"`} ${max === undefined ? nothing : html`max="${max}"`}
    step="${step ?? 'any'}"`
}

/** The line break after the tag is HTML's own: without it, the first one of the text would be lost. */
function area(given: Html, text: string, rows: number): Html {
  return html`<textarea ${given} rows="${rows}" spellcheck="false" autocomplete="off">${'\n'}${text}</textarea>`
}

function choice(field: VariableField, values: readonly unknown[], text: string, given: Html): Html {
  const { required, isSecret } = field
  const options = values.map((each) => {
    const json = JSON.stringify(each)
    const title = typeof each === 'string' && each !== '' ? each : json
    // One that has to be chosen and is the only one is.
    const isChosen = json === text || (required && values.length === 1)
    return html`<option value="${json}" ${attributes(isChosen, 'selected')}>${title}</option>`
  })
  const none = required && field.default === undefined ? 'Choose…' : 'left out'
  const meant = field.default === undefined || isSecret ? '' : `: ${JSON.stringify(field.default)}`
  return html`<select ${given}><option value="">${none}${meant}</option>${options}</select>`
}
