/** The form of a schedule, within the limits of the Execution API. */

import { defaultScheduleOptions, type ScheduleOptions, withDefaults } from '../../../domain/queue/run-options.ts'
import type { OverlapPolicy, Schedule, ScheduleError } from '../../../domain/schedules/schedule.ts'
import type { ScheduleChange } from '../../../domain/schedules/schedule-request.ts'
import type { MissedPolicy } from '../../../domain/schedules/schedule-times.ts'
import type { GivenTiming } from '../../../domain/schedules/schedules.ts'
import { type Document, resolve } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import {
  isPersistContext,
  parseOptions as parseTexts,
  persistDefault,
  readOptions,
  textOptionNames,
  toTexts,
} from '../workflows/queue-options.ts'

export const textOptions = textOptionNames.filter(
  (name): name is keyof ScheduleOptions & typeof name => name in defaultScheduleOptions,
)

/** What the user entered, as text. */
export interface ScheduleForm extends Record<(typeof textOptions)[number], string> {
  name: string
  workflowId: string
  cron: string
  timeZone: string
  intervalSeconds: string
  missed: string
  overlap: string
  browserContextId: string
  persistContext: string
}

/** By field; `form` for errors of members that the form does not have. */
export type FormErrors = Partial<Record<keyof ScheduleForm | 'form', string>>

interface TextSchema {
  pattern: string
  maxLength: number
}

interface PolicySchema<Policy> {
  enum: Policy[]
}

const document = executionContract.document as Document
const schema = <T>(name: string): T => resolve(document, { $ref: `#/components/schemas/${name}` })
const cronSchema = schema<TextSchema>('CronExpression')
const zoneSchema = schema<TextSchema>('TimeZone')
const nameSchema = schema<TextSchema>('ScheduleName')
const interval = schema<{ minimum: number; maximum: number }>('IntervalSeconds')
export const missedPolicies = schema<PolicySchema<MissedPolicy>>('MissedPolicy').enum
export const overlapPolicies = schema<PolicySchema<OverlapPolicy>>('OverlapPolicy').enum

export const emptyForm: ScheduleForm = {
  name: '',
  workflowId: '',
  cron: '',
  timeZone: 'UTC',
  intervalSeconds: '',
  missed: 'skip',
  overlap: 'allow',
  ...toTexts(textOptions, {}),
  browserContextId: '',
  persistContext: persistDefault,
}

export function toForm(schedule: Schedule): ScheduleForm {
  return {
    name: schedule.name ?? '',
    workflowId: schedule.workflowId,
    cron: schedule.cron ?? '',
    timeZone: schedule.timeZone ?? 'UTC',
    intervalSeconds: schedule.intervalSeconds === null ? '' : String(schedule.intervalSeconds),
    missed: schedule.missed,
    overlap: schedule.overlap,
    ...toTexts(textOptions, schedule),
    browserContextId: schedule.browserContextId ?? '',
    persistContext: schedule.persistContext,
  }
}

/** Whether the form has options of runs that are not the defaults. */
export function hasOptions(form: ScheduleForm): boolean {
  return [...textOptions, 'browserContextId' as const].some((name) => form[name] !== '')
}

/** The options of the runs; adds what is wrong to `errors`. */
function parseOptions(form: ScheduleForm, errors: FormErrors): ScheduleOptions {
  const read = readOptions(textOptions, (name) => form[name])
  for (const name of textOptions) if (read[name]?.error) errors[name] = read[name].error
  const { persistContext } = form
  if (!isPersistContext(persistContext)) errors.browserContextId = 'Choose when to save the browser state.'
  const { delaySeconds: _, ...options } = withDefaults(parseTexts(read) ?? {})
  return {
    ...options,
    browserContextId: form.browserContextId.toLowerCase() || null,
    persistContext: isPersistContext(persistContext) ? persistContext : persistDefault,
  }
}

export function submittedForm(fields: URLSearchParams): ScheduleForm {
  const names = Object.keys(emptyForm) as (keyof ScheduleForm)[]
  return Object.fromEntries(
    names.map((name) => [name, (fields.get(name) ?? emptyForm[name]).trim()]),
  ) as unknown as ScheduleForm
}

function isText(text: string, { pattern, maxLength }: TextSchema): boolean {
  return text.length <= maxLength && new RegExp(pattern, 'u').test(text)
}

export type TimingForm = Pick<ScheduleForm, 'cron' | 'timeZone' | 'intervalSeconds'>

export function parseTiming(form: TimingForm): { given: GivenTiming } | { errors: FormErrors } {
  const { cron, timeZone, intervalSeconds } = form
  if (cron !== '') {
    if (intervalSeconds !== '') return { errors: { intervalSeconds: 'Enter either this or a cron expression.' } }
    const fields = 'Enter five fields, separated by spaces. Seconds and words such as @daily are not supported.'
    if (!isText(cron, cronSchema)) return { errors: { cron: fields } }
    if (!isText(timeZone, zoneSchema)) return { errors: { timeZone: 'Enter a time zone of the IANA database.' } }
    return { given: { cron, timeZone } }
  }
  if (intervalSeconds === '') return { errors: { cron: 'Enter a cron expression, or an interval.' } }
  const { minimum, maximum } = interval
  const seconds = Number(intervalSeconds)
  if (Number.isInteger(seconds) && seconds >= minimum && seconds <= maximum) {
    return { given: { intervalSeconds: seconds } }
  }
  return { errors: { intervalSeconds: `Enter a whole number from ${minimum} to ${maximum}.` } }
}

export function parseForm(form: ScheduleForm): { given: ScheduleChange } | { errors: FormErrors } {
  const errors: FormErrors = {}
  if (form.name !== '' && !isText(form.name, nameSchema))
    errors.name = `Enter at most ${nameSchema.maxLength} characters.`
  const timing = parseTiming(form)
  if ('errors' in timing) Object.assign(errors, timing.errors)
  const missed = missedPolicies.find((policy) => policy === form.missed)
  const overlap = overlapPolicies.find((policy) => policy === form.overlap)
  if (!missed) errors.missed = 'Choose one of the listed values.'
  if (!overlap) errors.overlap = 'Choose one of the listed values.'
  const options = parseOptions(form, errors)
  if (Object.keys(errors).length > 0 || 'errors' in timing) return { errors }
  return { given: { ...timing.given, name: form.name || null, missed, overlap, ...options } }
}

/** Shows each error of the domain at its field. */
export function toFormErrors(errors: readonly ScheduleError[]): FormErrors {
  const result: FormErrors = {}
  for (const [member, ofMember] of Map.groupBy(errors, ({ pointer }) => pointer.split('/')[1] ?? '')) {
    const isField = Object.hasOwn(emptyForm, member)
    const shown = isField
      ? ofMember.map(({ pointer, detail }) => ({ pointer: pointer.slice(member.length + 1), detail }))
      : ofMember
    result[isField ? (member as keyof ScheduleForm) : 'form'] = describe(shown)
  }
  return result
}

function describe(errors: readonly ScheduleError[]): string {
  return errors.map(({ pointer, detail }) => `${pointer || 'This'} ${detail}.`).join(' ')
}
