/** The options of runs in forms and on pages, within the limits of the Execution API. */

import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { isLimitedByKey } from '../../../domain/queue/limits.ts'
import { describeRefusedStart } from '../../../domain/queue/queue-problems.ts'
import type { RefusedStart } from '../../../domain/queue/reused-steps.ts'
import { defaultOptions, type GivenOptions, type OptionName, parameterOf } from '../../../domain/queue/run-options.ts'
import type { Runs } from '../../../domain/run-api/runs.ts'
import type { PersistContext, Run } from '../../../domain/runs/run.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { type Document, resolve, type Schema } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { readOperations } from '../../../openapi/served-operations.ts'
import { persistLabels } from '../browser-contexts/context-pages.ts'
import { formatDuration } from '../format.ts'
import { attribute, type Fact, type Html, html, labelledField, nothing, selectField } from '../html.ts'
import { toRunQuery } from '../runs/run-filter.ts'
import type { FormValue } from './form-values.ts'

export type TextOptionName = Exclude<OptionName, 'browserContextId' | 'persistContext'>

/** An option that is entered as one text; an empty text stands for its default. */
interface TextOption {
  label: string
  hint: string
  /** Attributes of its input. */
  limits: Html | ''
  /** Whether the queue form folds it. */
  isScheduling?: true
  findError(text: string): string | undefined
  parse(text: string): unknown
  toFact(text: string): Fact
}

const operation = readOperations(executionContract.document).find(({ id }) => id === 'queueRemoteRun')

function parameterSchema(name: OptionName): Schema {
  const schema = operation?.parameters.find((parameter) => parameter.name === parameterOf(name))?.schema
  if (schema === undefined) throw new Error(`queueRemoteRun has no parameter ${parameterOf(name)}`)
  return resolve(executionContract.document as Document, schema)
}

function wholeNumber(name: OptionName, texts: Pick<TextOption, 'label' | 'hint' | 'toFact'>): TextOption {
  const { minimum: min, maximum: max } = parameterSchema(name)
  return {
    ...texts,
    // With `type="number"`, browsers would empty a field whose text is not a number.
    limits: html`inputmode="numeric"`,
    isScheduling: true,
    findError(text) {
      const value = Number(text)
      if (Number.isInteger(value) && value >= Number(min) && value <= Number(max)) return undefined
      return `Enter a whole number from ${min} to ${max}.`
    },
    parse: Number,
  }
}

const tagsSchema = parameterSchema('tags')
const tagsMax = Number(tagsSchema.maxItems)
const tagSchema: Schema = resolve(executionContract.document as never, tagsSchema.items as Schema)
const keySchema = parameterSchema('concurrencyKey')

function splitTags(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

function findNameError(name: string, { pattern, maxLength }: Schema): string | undefined {
  if (name.length > Number(maxLength)) return `Enter at most ${maxLength} characters.`
  if (new RegExp(String(pattern)).test(name)) return undefined
  return `“${name}” has other characters than letters, digits and . _ : / @ = -`
}

const tagLink = (tag: string) => html`<a href="/runs?${toRunQuery({ search: tag })}"><code>${tag}</code></a> `

const textOptions: Readonly<Record<TextOptionName, TextOption>> = {
  concurrencyKey: {
    label: 'Concurrency key',
    hint: 'What the run works on, such as shop:42. Runs with the same key share the limits of this workflow.',
    limits: html`maxlength="${Number(keySchema.maxLength)}"`,
    findError: (text) => findNameError(text, keySchema),
    parse: (text) => text,
    toFact: (text) => ['Concurrency key', html`<code>${text}</code>`],
  },
  tags: {
    label: 'Tags',
    hint: `Up to ${tagsMax}, separated by spaces, such as customer:42. Runs are found by them.`,
    limits: nothing,
    findError(text) {
      const tags = splitTags(text)
      if (tags.length > tagsMax) return `Enter at most ${tagsMax} tags.`
      return tags.map((tag) => findNameError(tag, tagSchema)).find(Boolean)
    },
    parse: splitTags,
    toFact: (text) => ['Tags', html`${splitTags(text).map(tagLink)}`],
  },
  delaySeconds: wholeNumber('delaySeconds', {
    label: 'Start delay (seconds)',
    hint: 'Leave empty to start as soon as a worker is free.',
    toFact: (text) => ['Start delay', formatDuration(Number(text) * 1000)],
  }),
  expiresInSeconds: wholeNumber('expiresInSeconds', {
    label: 'Expires after (seconds)',
    hint: 'A run that has not started by then never starts.',
    toFact: (text) => ['Expires if not started', `after ${formatDuration(Number(text) * 1000)}`],
  }),
  priority: wholeNumber('priority', {
    label: 'Priority',
    hint: 'From -10 to 10. Runs with a higher priority start first; the default is 0.',
    toFact: (text) => ['Priority', text],
  }),
}

export const textOptionNames = Object.keys(textOptions) as TextOptionName[]

export type FormOptions = { [Name in TextOptionName]?: FormValue }

/** The options of the form of a workflow: a concurrency key needs a limit or rate per key. */
export function offeredOptions(workflow: Workflow): TextOptionName[] {
  return textOptionNames.filter((name) => name !== 'concurrencyKey' || isLimitedByKey(workflow))
}

/** The options as texts, empty for defaults. */
export function toTexts<Name extends TextOptionName>(
  names: readonly Name[],
  options: { readonly [Each in Name]?: unknown },
): Record<Name, string> {
  const toText = (name: Name) => {
    const value = options[name]
    if (value == null || value === defaultOptions[name]) return ''
    return Array.isArray(value) ? value.join(' ') : String(value)
  }
  return Object.fromEntries(names.map((name) => [name, toText(name)])) as Record<Name, string>
}

/** @param read returns the submitted text of an option. */
export function readOptions<Name extends TextOptionName>(
  names: readonly Name[],
  read: (name: Name) => string | null,
): FormOptions {
  const readOne = (name: Name): FormValue => {
    const text = (read(name) ?? '').trim()
    const error = text === '' ? undefined : textOptions[name].findError(text)
    return error === undefined ? { text } : { text, error }
  }
  const form: FormOptions = Object.fromEntries(names.map((name) => [name, readOne(name)]))
  const { delaySeconds, expiresInSeconds } = form
  const areValid = delaySeconds?.error === undefined && expiresInSeconds?.error === undefined
  if (areValid && expiresInSeconds?.text && Number(expiresInSeconds.text) <= Number(delaySeconds?.text)) {
    expiresInSeconds.error = 'Enter a time longer than the start delay.'
  }
  return form
}

/** The options as a request has them; `undefined` if one is invalid. */
export function parseOptions(form: FormOptions): GivenOptions | undefined {
  const entries = Object.entries(form) as [TextOptionName, FormValue][]
  if (entries.some(([, { error }]) => error !== undefined)) return undefined
  const given = entries.filter(([, { text }]) => text !== '')
  return Object.fromEntries(given.map(([name, { text }]) => [name, textOptions[name].parse(text)]))
}

export function renderOption(name: TextOptionName, { text, error }: FormValue): Html {
  const { label, hint, limits } = textOptions[name]
  const input = (common: Html) => html`<input ${common} ${limits} value="${text}" autocomplete="off" />`
  return labelledField({ name, label, hint, error }, input)
}

export function renderOptions(form: FormOptions): Html {
  const entries = Object.entries(form) as [TextOptionName, FormValue][]
  const { folded = [], shown = [] } = Object.groupBy(entries, ([name]) =>
    textOptions[name].isScheduling ? 'folded' : 'shown',
  )
  const render = (each: typeof entries) => each.map(([name, value]) => renderOption(name, value))
  const isOpen = folded.some(([, { text }]) => text !== '')
  return html`${render(shown)}
    <details ${attribute('open', isOpen)}><summary>Scheduling</summary>${render(folded)}</details>`
}

/** The options that are not the defaults. */
export function optionFacts(options: { readonly [Name in TextOptionName]?: unknown }): Fact[] {
  const texts = toTexts(textOptionNames, options)
  return textOptionNames.flatMap((name) => (texts[name] === '' ? [] : [textOptions[name].toFact(texts[name])]))
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

export const persistDefault = defaultOptions.persistContext

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

/** The options of a run with this choice. */
export function contextOptions({ contextId, persist }: Omit<ContextChoice, 'error'>): GivenOptions {
  return contextId === '' ? {} : { browserContextId: contextId, persistContext: persist }
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
