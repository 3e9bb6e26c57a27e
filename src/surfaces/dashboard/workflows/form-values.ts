/** Converts between the texts in a form's fields and the variables of a run. */
import { isInexactInteger } from '../../../contract/i-json.ts'
import type { Members } from '../../../domain/workflows/example-values.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { parsePointer } from '../../../openapi/json-pointer.ts'
import { hiddenSecret, hideSecrets, parseVariables, type SecretPlaces } from './json-input.ts'
import { inputName, type VariableField } from './variable-fields.ts'

/** A field's text, with its validation error. A ticked checkbox has the text `on`. */
export interface FormValue {
  text: string
  error?: string
  /** Whether a secret was entered that is not shown again. */
  isHidden?: boolean
}

/** By variable name. */
export type FormValues = Map<string, FormValue>

/** Fills the fields with the variables; `undefined` when the fields cannot represent all of them exactly. */
export function toFormValues(fields: readonly VariableField[], variables: Members): FormValues | undefined {
  const values: FormValues = new Map()
  for (const field of fields) {
    const text = Object.hasOwn(variables, field.name) ? fieldText(field, variables[field.name]) : ''
    if (text === undefined) return undefined
    values.set(field.name, { text })
  }
  return Object.keys(variables).every((name) => values.has(name)) ? values : undefined
}

export function defaultFormValues(fields: readonly VariableField[]): FormValues {
  const text = (field: VariableField) => (field.default === undefined ? undefined : fieldText(field, field.default))
  return new Map(fields.map((field) => [field.name, { text: text(field) ?? '' }]))
}

/** The text that parses to the value; `undefined` when there is none. */
function fieldText(field: VariableField, value: unknown): string | undefined {
  if (field.isSecret) return ''
  const text = formatValue(field, value)
  if (text !== undefined && parsesTo(field, text, value)) return text
  return isSame(value, field.whenEmpty ? field.whenEmpty.value : field.default) ? '' : undefined
}

function parsesTo(field: VariableField, text: string, value: unknown): boolean {
  const parsed = parseText(field, text)
  if (!('value' in parsed)) return false
  const isMoment = field.kind.type === 'moment'
  return isMoment ? Date.parse(String(parsed.value)) === Date.parse(String(value)) : isSame(parsed.value, value)
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function formatValue({ kind }: VariableField, value: unknown): string | undefined {
  switch (kind.type) {
    case 'text':
    case 'file':
      // Browsers normalize line breaks to CR LF, so a CR cannot be represented.
      return typeof value === 'string' && !value.includes('\r') ? value : undefined
    case 'moment':
      return typeof value === 'string' ? formatMoment(value) : undefined
    case 'number':
      return typeof value === 'number' ? String(value) : undefined
    case 'checkbox':
      return value === true ? 'on' : value === false ? '' : undefined
    case 'choice':
      return kind.values.some((each) => isSame(each, value)) ? JSON.stringify(value) : undefined
    case 'lines':
      return Array.isArray(value) && !value.join('').includes('\r') ? value.join('\n') : undefined
    case 'json':
      return JSON.stringify(value, null, 2)
  }
}

/** For a `datetime-local` input, which has no time zone and at most millisecond precision. */
function formatMoment(value: string): string | undefined {
  const at = /\.\d{4}/.test(value) ? Number.NaN : Date.parse(value)
  return Number.isNaN(at) ? undefined : new Date(at).toISOString().replace(/(\.000)?Z$/, '')
}

/** Reads the submitted texts and reports those that cannot be parsed. The workflow's schema is not checked here. */
export function readFormValues(fields: readonly VariableField[], form: URLSearchParams): FormValues {
  return new Map(
    fields.map((field) => {
      // Browsers submit line breaks as CR LF.
      const text = (form.get(inputName(field.name)) ?? '').replaceAll('\r\n', '\n')
      const parsed = parseText(field, text)
      return [field.name, { text, ...('error' in parsed && { error: parsed.error }) }]
    }),
  )
}

/** @param earlier the variables that filled the fields. A field that was left as it is keeps its exact value. */
export function toVariables(fields: readonly VariableField[], values: FormValues, earlier: Members): Members {
  const members = fields.flatMap((field): [string, unknown][] => {
    const text = values.get(field.name)?.text ?? ''
    if (Object.hasOwn(earlier, field.name)) {
      const value = earlier[field.name]
      if (parsesTo(field, text, value) || fieldText(field, value) === text) return [[field.name, value]]
    }
    const parsed = parseText(field, text)
    if ('value' in parsed) return [[field.name, parsed.value]]
    return field.whenEmpty ? [[field.name, field.whenEmpty.value]] : []
  })
  // Not by assignment, which would set the prototype for a member named `__proto__`.
  return Object.fromEntries(members)
}

type ParsedText = { value: unknown } | { error: string } | { isEmpty: true }

function parseText({ kind }: VariableField, text: string): ParsedText {
  if (kind.type === 'checkbox') return { value: text !== '' }
  if (kind.type === 'lines') {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    return lines.length === 0 ? { isEmpty: true } : { value: lines }
  }
  if (text === '') return { isEmpty: true }
  switch (kind.type) {
    case 'text':
      return { value: text }
    case 'file':
      return { value: text.trim() }
    case 'moment': {
      // Browsers omit seconds that are zero.
      const withSeconds = /T\d\d:\d\d$/.test(text) ? `${text}:00` : text
      return { value: /(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${withSeconds}Z` }
    }
    case 'number': {
      const value = text.trim() === '' ? Number.NaN : Number(text)
      if (!Number.isFinite(value)) return { error: 'Enter a number.' }
      if (isInexactInteger(text.trim())) return { error: 'This number is too large to keep all its digits.' }
      return kind.isWhole && !Number.isInteger(value) ? { error: 'Enter a whole number.' } : { value }
    }
    case 'choice': {
      const value = kind.values.find((each) => JSON.stringify(each) === text)
      return value === undefined ? { error: 'Choose one of the listed values.' } : { value }
    }
    case 'json': {
      if (text.trim() === '') return { isEmpty: true }
      const parsed = parseVariables(text)
      return 'value' in parsed ? parsed : { error: formatErrors(parsed.errors) }
    }
  }
}

export function formatErrors(errors: readonly VariableError[]): string {
  // Without a pointer, the error is about the whole text.
  return errors.map(({ pointer, detail }) => `${pointer || 'This'} ${detail}.`).join(' ')
}

/** Adds each error to its field; returns those that belong to no field. */
export function assignErrors(values: FormValues, errors: readonly VariableError[]): VariableError[] {
  return errors.filter(({ pointer, detail }) => {
    const [first = '', ...deeper] = parsePointer(pointer)
    const value = values.get(first)
    if (!value || pointer === '') return true
    const message =
      deeper.length === 0
        ? `${detail.slice(0, 1).toUpperCase()}${detail.slice(1)}.`
        : formatErrors([{ pointer, detail }])
    value.error = value.error === undefined ? message : `${value.error} ${message}`
    return false
  })
}

/** Removes submitted secrets before the form is shown again. */
export function hideSecretValues(
  fields: readonly VariableField[],
  values: FormValues,
  places: SecretPlaces,
): FormValues {
  return new Map(
    fields.map((field) => {
      const value = values.get(field.name) ?? { text: '' }
      if (field.isSecret) return [field.name, hideValue(value)]
      return [field.name, field.kind.type === 'json' ? hideSecretsInJson(value, places) : value]
    }),
  )
}

export function hideSecretsInJson(value: FormValue, places: SecretPlaces): FormValue {
  const text = hideSecrets(value.text, places)
  if (text === undefined) return hideValue(value)
  return { ...value, text, ...(text.includes(hiddenSecret) && { isHidden: true }) }
}

function hideValue(value: FormValue): FormValue {
  return value.text === '' ? value : { ...value, text: '', isHidden: true }
}
