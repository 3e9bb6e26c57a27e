/** The names that the form of a run takes: its tags, and the concurrency key of a workflow with a limit or rate per key. */
import { isLimitedByKey } from '../../../domain/runs/concurrency-groups.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { resolve, type Schema } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { type Html, html, labelledField, nothing } from '../html.ts'
import type { FormValue } from './form-values.ts'
import { parameterSchema } from './queue-options.ts'

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
