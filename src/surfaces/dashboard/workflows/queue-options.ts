/** The scheduling options of a queued run, within the limits of the Execution API. */
import { type Document, resolve, type Schema } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { readOperations } from '../../../openapi/served-operations.ts'
import type { FormValue } from './form-values.ts'

export type OptionName = 'delaySeconds' | 'expiresInSeconds' | 'priority'
export type QueueOptions = Record<OptionName, FormValue>

const names: OptionName[] = ['delaySeconds', 'expiresInSeconds', 'priority']

const operation = readOperations(executionContract.document).find(({ id }) => id === 'queueRemoteRun')

export function parameterSchema(name: string): Schema {
  const schema = operation?.parameters.find((parameter) => parameter.name === name)?.schema
  if (schema === undefined) throw new Error(`queueRemoteRun has no parameter ${name}`)
  return resolve(executionContract.document as Document, schema)
}

const bounds = names.map((name) => {
  const { minimum, maximum } = parameterSchema(name)
  return [name, { min: Number(minimum), max: Number(maximum) }] as const
})
export const optionBounds = Object.fromEntries(bounds) as Record<OptionName, { min: number; max: number }>

export const noOptions: QueueOptions = {
  delaySeconds: { text: '' },
  expiresInSeconds: { text: '' },
  priority: { text: '' },
}

export function readOptions(form: URLSearchParams): QueueOptions {
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

export function toQueueOptions({ delaySeconds, expiresInSeconds, priority }: QueueOptions) {
  if (delaySeconds.error ?? expiresInSeconds.error ?? priority.error) return undefined
  return {
    delaySeconds: Number(delaySeconds.text),
    expiresInSeconds: expiresInSeconds.text === '' ? undefined : Number(expiresInSeconds.text),
    priority: Number(priority.text),
  }
}
