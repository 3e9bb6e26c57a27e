/** What may be said of a run beside its variables, within the bounds of the Execution API. */
import type { Entry } from './entries.ts'

export type OptionName = 'delaySeconds' | 'expiresInSeconds' | 'priority'
export type Options = Record<OptionName, Entry>

const yearSeconds = 31_536_000

export const optionBounds: Record<OptionName, { min: number; max: number }> = {
  delaySeconds: { min: 0, max: yearSeconds },
  expiresInSeconds: { min: 1, max: yearSeconds },
  priority: { min: -10, max: 10 },
}

const names = Object.keys(optionBounds) as OptionName[]

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
