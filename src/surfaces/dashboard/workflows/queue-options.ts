/** The scheduling options of a queued run, within the limits of the Execution API. */

import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { isLimitedByKey } from '../../../domain/queue/limits.ts'
import { describeRefusedStart } from '../../../domain/queue/queue-problems.ts'
import type { RefusedStart } from '../../../domain/queue/reused-steps.ts'
import type { Runs } from '../../../domain/run-api/runs.ts'
import type { PersistContext, Run } from '../../../domain/runs/run.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { type Document, resolve, type Schema } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { readOperations } from '../../../openapi/served-operations.ts'
import { persistLabels } from '../browser-contexts/context-pages.ts'
import { attribute, type Html, html, labelledField, nothing, selectField } from '../html.ts'
import type { ContextQuery } from './curl-commands.ts'
import type { FormValue } from './form-values.ts'

export type OptionName = 'delaySeconds' | 'expiresInSeconds' | 'priority'
export type FormOptions = Record<OptionName, FormValue>

const names: OptionName[] = ['delaySeconds', 'expiresInSeconds', 'priority']

const operation = readOperations(executionContract.document).find(({ id }) => id === 'queueRemoteRun')

function parameterSchema(name: string): Schema {
  const schema = operation?.parameters.find((parameter) => parameter.name === name)?.schema
  if (schema === undefined) throw new Error(`queueRemoteRun has no parameter ${name}`)
  return resolve(executionContract.document as Document, schema)
}

const bounds = names.map((name) => {
  const { minimum, maximum } = parameterSchema(name)
  return [name, { min: Number(minimum), max: Number(maximum) }] as const
})
export const optionBounds = Object.fromEntries(bounds) as Record<OptionName, { min: number; max: number }>

export const noOptions: FormOptions = {
  delaySeconds: { text: '' },
  expiresInSeconds: { text: '' },
  priority: { text: '' },
}

export function readOptions(form: URLSearchParams): FormOptions {
  const read = (name: OptionName) => readOption(name, (form.get(name) ?? '').trim())
  const delaySeconds = read('delaySeconds')
  const expiresInSeconds = read('expiresInSeconds')
  const areValid = delaySeconds.error === undefined && expiresInSeconds.error === undefined
  if (areValid && expiresInSeconds.text !== '' && Number(expiresInSeconds.text) <= Number(delaySeconds.text)) {
    expiresInSeconds.error = 'Enter a time longer than the start delay.'
  }
  return { delaySeconds, expiresInSeconds, priority: read('priority') }
}

export function readOption(name: OptionName, text: string): FormValue {
  const { min, max } = optionBounds[name]
  const value = Number(text)
  if (text === '' || (Number.isInteger(value) && value >= min && value <= max)) return { text }
  return { text, error: `Enter a whole number from ${min} to ${max}.` }
}

export function parseFormOptions({ delaySeconds, expiresInSeconds, priority }: FormOptions) {
  if (delaySeconds.error ?? expiresInSeconds.error ?? priority.error) return undefined
  return {
    delaySeconds: Number(delaySeconds.text),
    expiresInSeconds: expiresInSeconds.text === '' ? undefined : Number(expiresInSeconds.text),
    priority: Number(priority.text),
  }
}

// The names that the form of a run takes: its tags, and the concurrency key of a workflow with a limit or rate per key.

export interface RunNames {
  /** Separated by spaces or commas. */
  tags: FormValue
  /** `undefined` for a workflow that takes none. */
  concurrencyKey: FormValue | undefined
}

interface NameLimits {
  pattern: RegExp
  lengthMax: number
}

const tagsSchema = parameterSchema('tag')
const tagsMax = Number(tagsSchema.maxItems)
const tagLimits = toLimits(resolve(executionContract.document as never, tagsSchema.items as Schema))
const keyLimits = toLimits(parameterSchema('concurrencyKey'))

function toLimits({ pattern, maxLength }: Schema): NameLimits {
  return { pattern: new RegExp(String(pattern)), lengthMax: Number(maxLength) }
}

/** @param from a run of the workflow whose names fill the form. */
export function initialNames(workflow: Workflow, from: Run | undefined): RunNames {
  return {
    tags: { text: from?.tags.join(' ') ?? '' },
    concurrencyKey: isLimitedByKey(workflow) ? { text: from?.concurrencyKey ?? '' } : undefined,
  }
}

export function readNames(workflow: Workflow, form: URLSearchParams): RunNames {
  const read = (name: string) => (form.get(name) ?? '').trim()
  return {
    tags: readTags(read('tags')),
    concurrencyKey: isLimitedByKey(workflow) ? readConcurrencyKey(read('concurrencyKey')) : undefined,
  }
}

export function readTags(text: string): FormValue {
  return withError(text, findTagsError(splitTags(text)))
}

export function readConcurrencyKey(text: string): FormValue {
  return withError(text, text === '' ? undefined : findNameError(text, keyLimits))
}

/** The names as a request has them; `undefined` if one is invalid. */
export function toNames({ tags, concurrencyKey }: RunNames) {
  if (tags.error ?? concurrencyKey?.error) return undefined
  const names = splitTags(tags.text)
  return {
    ...(names.length > 0 && { tags: names }),
    ...(concurrencyKey?.text && { concurrencyKey: concurrencyKey.text }),
  }
}

export function renderTags({ tags: { text, error } }: Pick<RunNames, 'tags'>): Html {
  const hint = `Up to ${tagsMax}, separated by spaces, such as customer:42. Runs are found by them.`
  return labelledField(
    { name: 'tags', label: 'Tags', hint, error },
    (common) => html`<input ${common} value="${text}" autocomplete="off" />`,
  )
}

export function renderConcurrencyKey({ concurrencyKey }: Pick<RunNames, 'concurrencyKey'>): Html | '' {
  if (!concurrencyKey) return nothing
  const { text, error } = concurrencyKey
  const hint = 'What the run works on, such as shop:42. Runs with the same key share the limits of this workflow.'
  return labelledField(
    { name: 'concurrencyKey', label: 'Concurrency key', hint, error },
    (common) => html`<input ${common} value="${text}" maxlength="${keyLimits.lengthMax}" autocomplete="off" />`,
  )
}

export function splitTags(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

function findTagsError(tags: readonly string[]): string | undefined {
  if (tags.length > tagsMax) return `Enter at most ${tagsMax} tags.`
  return tags.map((tag) => findNameError(tag, tagLimits)).find(Boolean)
}

function findNameError(name: string, { pattern, lengthMax }: NameLimits): string | undefined {
  if (name.length > lengthMax) return `Enter at most ${lengthMax} characters.`
  return pattern.test(name) ? undefined : `“${name}” has other characters than letters, digits and . _ : / @ = -`
}

function withError(text: string, error: string | undefined): FormValue {
  return error === undefined ? { text } : { text, error }
}

// The choice in the form of a run that is run again: from its first step, or from the step in which it failed.

export interface StartChoice {
  /** The step in which the earlier run failed. */
  step: string
  /** How many steps the new run would not execute. */
  reusedSteps: number
  isChosen: boolean
  error?: string
}

/** `undefined` unless the earlier run failed in a step and kept the results of those before it. */
export async function initialStart(runs: Runs, from: Run | undefined): Promise<StartChoice | undefined> {
  const step = from?.attemptHistory?.at(-1)?.error?.step
  if (!from || step == null) return undefined
  const reusedSteps = await runs.countReusable(from, step)
  return reusedSteps === 0 ? undefined : { step, reusedSteps, isChosen: false }
}

/** A submitted step that was not offered is kept, so that it is refused instead of ignored. */
export async function readStart(runs: Runs, from: Run | undefined, form: URLSearchParams) {
  const initial = await initialStart(runs, from)
  const step = form.get('fromStep') ?? ''
  if (!from || step === '') return initial
  const reusedSteps = step === initial?.step ? initial.reusedSteps : 0
  return { step, reusedSteps, isChosen: true } satisfies StartChoice
}

export function withRefusal(start: StartChoice, refusal: RefusedStart): StartChoice {
  return { ...start, error: `This step ${describeRefusedStart(refusal)}.` }
}

export function renderStartChoice({ step, reusedSteps, isChosen, error }: StartChoice): Html {
  const earlier = reusedSteps === 1 ? 'The step' : `The ${reusedSteps} steps`
  const hint = `${earlier} before it will not be executed again, but return the results of the earlier run.`
  return html`<fieldset aria-describedby="${error ? 'fromStep-error' : 'fromStep-hint'}">
    <legend>Start</legend>
    <label><input type="radio" name="fromStep" value="" ${attribute('checked', !isChosen)} />From the first step</label>
    <label><input type="radio" name="fromStep" value="${step}" ${attribute('checked', isChosen)} /><span>From the failed step <strong>${step}</strong></span></label>
    ${reusedSteps > 0 ? html`<small id="fromStep-hint">${hint}</small>` : nothing}
    ${error ? html`<small id="fromStep-error" class="error">${error}</small>` : nothing}
  </fieldset>`
}

// The choice of a browser context in the queue form, and of when the run saves into it.

export interface ContextChoice {
  /** Empty for none. */
  contextId: string
  persist: PersistContext
  error?: string
}

export const persistDefault = parameterSchema('persistContext').default as PersistContext

export function isPersistContext(value: unknown): value is PersistContext {
  return typeof value === 'string' && Object.hasOwn(persistLabels, value)
}

/** @param contextId preselected; when empty, the context of the run that is run again. */
export function initialChoice(from: Run | undefined, contextId: string): ContextChoice {
  const persist = from?.persistContext ?? persistDefault
  return { contextId: contextId.toLowerCase() || (from?.browserContextId ?? ''), persist }
}

export function readChoice(form: URLSearchParams): ContextChoice {
  const persist = form.get('persistContext') ?? persistDefault
  const contextId = (form.get('browserContextId') ?? '').toLowerCase()
  if (isPersistContext(persist)) return { contextId, persist }
  return { contextId, persist: persistDefault, error: 'Choose when to save the browser state.' }
}

/** `undefined` for none, or when the chosen context is not among `contexts`. */
export function toContextQuery({ contextId, persist }: ContextChoice, contexts: readonly BrowserContext[]) {
  if (!contexts.some(({ id }) => id === contextId)) return undefined
  return { browserContextId: contextId, persistContext: persist } satisfies ContextQuery
}

const statusNotes = { empty: ' (empty)', ready: '', inUse: ' (in use)' }

/** @param contexts to choose from. When the chosen one was deleted, an error says so and none is selected. */
export function renderContextChoice(choice: ContextChoice, contexts: readonly BrowserContext[]): Html {
  const { contextId, persist, error } = choice
  const none = { value: '', title: 'None: start with an empty browser, save nothing' }
  const options = contexts.map(({ id, name, status }) => ({ value: id, title: `${name}${statusNotes[status]}` }))
  const isGone = contextId !== '' && !contexts.some(({ id }) => id === contextId)
  const goneError = isGone ? 'The selected browser context was deleted. Choose another one, or none.' : undefined
  return html`${selectField({
    name: 'browserContextId',
    label: 'Browser context',
    value: contextId,
    error: error ?? goneError,
    options: [none, ...options],
    hint: html`The state that the browser starts with. <a href="/browser-contexts">View browser contexts</a>`,
  })}
  ${selectField({
    name: 'persistContext',
    label: 'Save browser state',
    value: persist,
    options: Object.entries(persistLabels).map(([value, title]) => ({ value, title })),
  })}`
}
