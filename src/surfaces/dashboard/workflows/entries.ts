/** From what a form has to the variables of a run, and back. */

import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { parsePointer } from '../../../openapi/json-pointer.ts'
import { inputName, type VariableField } from './fields.ts'
import { putInAgain, readJson, type SecretPlaces, withoutSecrets } from './json-text.ts'
import { type Members, ownMember } from './schema.ts'

/** What stands in the field, and what is wrong with it. Of a checkbox that is ticked, the text is `on`. */
export interface Entry {
  text: string
  error?: string
  /** Where something was put in that is not shown again. */
  isHidden?: boolean
}

/** By the member's name. */
export type Entries = Map<string, Entry>

/** What the fields hold for these variables; `undefined` when they have no place for all of them, or cannot say it. */
export function entriesOf(fields: readonly VariableField[], variables: Members): Entries | undefined {
  const entries: Entries = new Map()
  for (const field of fields) {
    const isGiven = Object.hasOwn(variables, field.name)
    const text = isGiven ? textOf(field, variables[field.name]) : ''
    if (text === undefined) return undefined
    entries.set(field.name, { text })
  }
  return Object.keys(variables).every((name) => entries.has(name)) ? entries : undefined
}

/** What the fields hold at first. */
export function defaultEntries(fields: readonly VariableField[]): Entries {
  const text = (field: VariableField) => (field.default === undefined ? undefined : textOf(field, field.default))
  return new Map(fields.map((field) => [field.name, { text: text(field) ?? '' }]))
}

/** The text that stands for a value in its field; `undefined` when none would be read as it again. */
function textOf(field: VariableField, value: unknown): string | undefined {
  if (field.isSecret) return ''
  const text = spelled(field, value)
  if (text !== undefined && isReadAs(field, text, value)) return text
  return isSame(value, field.whenEmpty ? field.whenEmpty.value : field.default) ? '' : undefined
}

function isReadAs(field: VariableField, text: string, value: unknown): boolean {
  const read = readText(field, text)
  if (!('value' in read)) return false
  const isMoment = field.kind.type === 'moment'
  return isMoment ? Date.parse(String(read.value)) === Date.parse(String(value)) : isSame(read.value, value)
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function spelled({ kind }: VariableField, value: unknown): string | undefined {
  switch (kind.type) {
    case 'text':
      // Browsers make CR LF of every line break.
      return typeof value === 'string' && !value.includes('\r') ? value : undefined
    case 'moment':
      return typeof value === 'string' ? spelledMoment(value) : undefined
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

/** As the input for a moment has it, which knows neither zones nor less than a millisecond. */
function spelledMoment(value: string): string | undefined {
  const at = /\.\d{4}/.test(value) ? Number.NaN : Date.parse(value)
  return Number.isNaN(at) ? undefined : new Date(at).toISOString().replace(/(\.000)?Z$/, '')
}

/** What a form says, with an error where that cannot be understood. Whether it fits is for the workflow to say. */
export function readEntries(fields: readonly VariableField[], form: URLSearchParams): Entries {
  return new Map(
    fields.map((field) => {
      // Browsers send a text's line breaks as CR LF, whatever they were.
      const text = (form.get(inputName(field.name)) ?? '').replaceAll('\r\n', '\n')
      const read = readText(field, text)
      return [field.name, { text, ...('error' in read && { error: read.error }) }]
    }),
  )
}

/** @param kept values for the fields in which nothing is put in, such as an earlier run's secrets. */
export function variablesOf(fields: readonly VariableField[], entries: Entries, kept: Members): Members {
  const members = fields.flatMap((field): [string, unknown][] => {
    const read = readText(field, entries.get(field.name)?.text ?? '')
    if ('value' in read) return [[field.name, read.value]]
    if (Object.hasOwn(kept, field.name)) return [[field.name, kept[field.name]]]
    return field.whenEmpty ? [[field.name, field.whenEmpty.value]] : []
  })
  // Not by assignment, which a member named `__proto__` would mislead.
  return Object.fromEntries(members)
}

type Read = { value: unknown } | { error: string } | { isEmpty: true }

function readText({ kind }: VariableField, text: string): Read {
  if (kind.type === 'checkbox') return { value: text !== '' }
  if (kind.type === 'lines') {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    return lines.length === 0 ? { isEmpty: true } : { value: lines }
  }
  if (text === '') return { isEmpty: true }
  switch (kind.type) {
    case 'text':
      return { value: text }
    case 'moment':
      return { value: /(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${withSeconds(text)}Z` }
    case 'number':
      return readNumber(text, kind.isWhole)
    case 'choice': {
      const value = kind.values.find((each) => JSON.stringify(each) === text)
      return value === undefined ? { error: 'Choose one of the values.' } : { value }
    }
    case 'json':
      return text.trim() === '' ? { isEmpty: true } : readMember(text)
  }
}

/** Browsers leave out seconds that are zero. */
function withSeconds(text: string): string {
  return /T\d\d:\d\d$/.test(text) ? `${text}:00` : text
}

function readNumber(text: string, isWhole: boolean): Read {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value)) return { error: 'Put in a number.' }
  return isWhole && !Number.isInteger(value) ? { error: 'Put in a whole number.' } : { value }
}

function readMember(text: string): Read {
  const read = readJson(text)
  return 'value' in read ? read : { error: read.misfits.map(misfitSentence).join(' ') }
}

/** @param misfit with an empty pointer when it is about the whole text. */
export function misfitSentence({ pointer, detail }: VariableError): string {
  return `${pointer || 'This'} ${detail}.`
}

/** Puts each misfit beside the field that it is about; returns those that are about none. */
export function tellMisfits(entries: Entries, misfits: readonly VariableError[]): VariableError[] {
  return misfits.filter(({ pointer, detail }) => {
    const [first = '', ...deeper] = parsePointer(pointer)
    const entry = entries.get(first)
    if (!entry || pointer === '') return true
    const words = deeper.length === 0 ? capitalized(`${detail}.`) : misfitSentence({ pointer, detail })
    entry.error = entry.error === undefined ? words : `${entry.error} ${words}`
    return false
  })
}

function capitalized(words: string): string {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

/** Values that an earlier run had and that are not shown: its secrets, masked. */
export function keptValues(fields: readonly VariableField[], variables: Members): Members {
  const secrets = fields.filter(({ isSecret, name }) => isSecret && Object.hasOwn(variables, name))
  return Object.fromEntries(secrets.map(({ name }) => [name, ownMember(variables, name)]))
}

/** What is shown of the entries when they are shown again: no secret that was put in. */
export function withoutSecretEntries(
  fields: readonly VariableField[],
  entries: Entries,
  places: SecretPlaces,
): Entries {
  return new Map(
    fields.map((field) => {
      const entry = entries.get(field.name) ?? { text: '' }
      return [
        field.name,
        field.isSecret ? hiddenEntry(entry) : field.kind.type === 'json' ? shownEntry(entry, places) : entry,
      ]
    }),
  )
}

/** A text of JSON as it is shown again. */
export function shownEntry(entry: Entry, places: SecretPlaces): Entry {
  const text = withoutSecrets(entry.text, places)
  if (text === undefined) return hiddenEntry(entry)
  return { ...entry, text, ...(text.includes(putInAgain) && { isHidden: true }) }
}

function hiddenEntry(entry: Entry): Entry {
  return entry.text === '' ? entry : { ...entry, text: '', isHidden: true }
}
