/** What may be said of a run beside its variables, within the bounds of the Execution API. */

import { executionContract } from '../../../openapi/served-documents.ts'
import { readOperations } from '../../../openapi/served-operations.ts'
import type { Entry } from './entries.ts'

export type OptionName = 'delaySeconds' | 'expiresInSeconds' | 'priority'
export type Options = Record<OptionName, Entry>

const names: OptionName[] = ['delaySeconds', 'expiresInSeconds', 'priority']

const queueing = readOperations(executionContract.document).find(({ id }) => id === 'queueRemoteRun')

/** As the document has them. */
export const optionBounds = Object.fromEntries(names.map((name) => [name, boundsOf(name)])) as Record<
  OptionName,
  { min: number; max: number }
>

function boundsOf(name: OptionName): { min: number; max: number } {
  const { minimum, maximum } = queueing?.parameters.find((parameter) => parameter.name === name)?.schema ?? {}
  if (typeof minimum === 'number' && typeof maximum === 'number') return { min: minimum, max: maximum }
  throw new Error(`queueRemoteRun is to have bounds for ${name}.`)
}

export const noOptions: Options = { delaySeconds: { text: '' }, expiresInSeconds: { text: '' }, priority: { text: '' } }

/** The options as they were sent, with what is wrong with them. */
export function optionsOf(form: URLSearchParams): Options {
  const entries = names.map((name) => [name, entryOf(name, (form.get(name) ?? '').trim())])
  const options: Options = Object.fromEntries(entries)
  const { delaySeconds, expiresInSeconds } = options
  const isWrong = delaySeconds.error ?? expiresInSeconds.error
  if (
    isWrong === undefined &&
    expiresInSeconds.text !== '' &&
    Number(expiresInSeconds.text) <= Number(delaySeconds.text)
  ) {
    options.expiresInSeconds = { ...expiresInSeconds, error: 'Choose a longer time than the one before it starts.' }
  }
  return options
}

function entryOf(name: OptionName, text: string): Entry {
  const { min, max } = optionBounds[name]
  const value = Number(text)
  if (text === '' || (Number.isInteger(value) && value >= min && value <= max)) return { text }
  return { text, error: `Put in a whole number from ${min} to ${max}.` }
}

/** `undefined` when one of them is wrong. */
export function readOptions({ delaySeconds, expiresInSeconds, priority }: Options) {
  if (delaySeconds.error ?? expiresInSeconds.error ?? priority.error) return undefined
  return {
    delaySeconds: Number(delaySeconds.text),
    expiresInSeconds: expiresInSeconds.text === '' ? undefined : Number(expiresInSeconds.text),
    priority: Number(priority.text),
  }
}
