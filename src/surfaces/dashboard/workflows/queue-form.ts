/** The form that queues a run by hand: what stands in it at first, and what becomes of it when it is sent. */
import { v4 as uuid, validate } from 'uuid'
import type { Run } from '../../../domain/runs/run.ts'
import type { QueueRequest } from '../../../domain/runs/runs.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { type BrowserChoice, choiceOf, newChoice } from './browser-choice.ts'
import {
  defaultEntries,
  type Entries,
  type Entry,
  entriesOf,
  keptValues,
  misfitSentence,
  readEntries,
  shownEntry,
  tellMisfits,
  variablesOf,
  withoutSecretEntries,
} from './entries.ts'
import { draftOf } from './example.ts'
import { fieldsOf, hasFieldForAll, type VariableField } from './fields.ts'
import { readJson, secretPlaces } from './json-text.ts'
import { noOptions, type Options, optionsOf, readOptions } from './options.ts'
import { isMembers, type Members } from './schema.ts'

export interface QueueForm {
  workflow: Workflow
  fields: VariableField[]
  /** How the variables are put in: each in its field, or all as one JSON text. */
  as: 'fields' | 'json'
  /** Why it is JSON, though nobody has asked for it. */
  onlyJson: 'noFields' | 'noFieldForRun' | undefined
  entries: Entries
  json: Entry
  options: Options
  browser: BrowserChoice
  /** The run that is run again. */
  from: Run | undefined
  /** The same for a form that is sent twice, so that it queues one run. */
  key: string
  /** What is wrong and concerns no field. */
  misfits: VariableError[]
}

/**
 * @param from a run of the workflow, whose variables stand in the form.
 * @param contextId of the browser context that is chosen in it, unless it is empty.
 */
export function newForm(workflow: Workflow, from: Run | undefined, wantsJson: boolean, contextId = ''): QueueForm {
  const fields = fieldsOf(workflow.variables)
  const entries = from ? entriesOf(fields, from.variables) : defaultEntries(fields)
  const onlyJson = !hasFieldForAll(workflow.variables) ? 'noFields' : entries ? undefined : 'noFieldForRun'
  return {
    workflow,
    fields,
    as: wantsJson || onlyJson ? 'json' : 'fields',
    onlyJson,
    entries: entries ?? new Map(),
    json: { text: JSON.stringify(from ? from.variables : draftOf(workflow.variables), null, 2) },
    options: noOptions,
    browser: newChoice(from, contextId),
    from,
    key: uuid(),
    misfits: [],
  }
}

/** The form as it was sent, with an error beside what cannot be understood. */
export function sentForm(
  workflow: Workflow,
  from: Run | undefined,
  as: 'fields' | 'json',
  form: URLSearchParams,
): QueueForm {
  const fresh = newForm(workflow, from, as === 'json')
  const key = form.get('key') ?? ''
  const text = form.get('variables') ?? ''
  return {
    ...fresh,
    as,
    entries: readEntries(fresh.fields, form),
    json: { text, ...errorOf(readMembers(text)) },
    options: optionsOf(form),
    browser: choiceOf(form),
    key: validate(key) ? key : fresh.key,
  }
}

/** What to queue; or the form with what is wrong in it. */
export function readForm(form: QueueForm): { request: QueueRequest } | { wrong: QueueForm } {
  const { workflow, from, key, browser } = form
  const options = readOptions(form.options)
  const read = form.as === 'json' ? readMembers(form.json.text) : readFields(form)
  if ('wrong' in read) return read
  if ('error' in read || !options || browser.error !== undefined) return { wrong: form }
  const { contextId: id, persist } = browser
  const browserContext = id === '' ? undefined : { id, persist }
  const request = { workflowId: workflow.id, variables: read.value, idempotencyKey: key, ...options, browserContext }
  return { request: from ? { ...request, secretsFrom: from.id } : request }
}

function readFields(form: QueueForm): { value: Members } | { wrong: QueueForm } {
  const { fields, entries, from } = form
  if ([...entries.values()].some(({ error }) => error !== undefined)) return { wrong: form }
  const value = variablesOf(fields, entries, from ? keptValues(fields, from.variables) : {})
  // By the same rules as a request to the Execution API.
  const read = readJson(JSON.stringify(value))
  return 'value' in read ? { value } : { wrong: misfitForm(form, read.misfits) }
}

type ReadMembers = { value: Members } | { error: string }

function readMembers(text: string): ReadMembers {
  const read = readJson(text)
  if ('misfits' in read) return { error: sentencesOf(read.misfits) }
  return isMembers(read.value)
    ? { value: read.value }
    : { error: 'This is to be a JSON object, as in {"name": "value"}.' }
}

function errorOf(read: ReadMembers): { error?: string } {
  return 'error' in read ? { error: read.error } : {}
}

/** The form with what the workflow has said of the variables. */
export function misfitForm(form: QueueForm, misfits: readonly VariableError[]): QueueForm {
  if (form.as === 'json') return { ...form, json: { ...form.json, error: sentencesOf(misfits) } }
  const entries = new Map([...form.entries].map(([name, entry]) => [name, { ...entry }]))
  return { ...form, entries, misfits: tellMisfits(entries, misfits) }
}

function sentencesOf(misfits: readonly VariableError[]): string {
  return misfits.map(misfitSentence).join(' ')
}

/** The form to be shown again: a secret that was put in is not sent back. */
export function formAgain(form: QueueForm): QueueForm {
  const places = secretPlaces(form.workflow.variables)
  return {
    ...form,
    entries: withoutSecretEntries(form.fields, form.entries, places),
    json: shownEntry(form.json, places),
  }
}
