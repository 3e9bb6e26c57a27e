/**
 * Checks what authors pass to the functions of a run's context, when they call them: in executors and in the test kit. Each
 * error names the call, the argument, and what to write.
 */
import { callOptions, findCallOptionError } from '../queue/run-options.ts'
import { messageLengthMax, nameLengthMax } from '../runs/reported-values.ts'
import type { CallOptions, SleepTime, WaitForOptions } from './define-workflow.ts'

const daySeconds = 86_400

/** The longest wait, which includes a leap year. */
export const waitSecondsMax = 366 * daySeconds

type NamedCall = 'step' | 'sleep' | 'waitFor' | 'call'

/** Whether it can be the name of a step or wait. Neither store returns U+0000 or half of a surrogate pair unchanged. */
export function isName(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || value.length > nameLengthMax) return false
  return !value.includes('\0') && value.isWellFormed()
}

/** @throws {TypeError} */
export function checkName(call: NamedCall, name: unknown): asserts name is string {
  if (isName(name)) return
  throw new TypeError(
    `The name of a ${call} must be a text of 1 to ${nameLengthMax} characters without U+0000 or half of a surrogate pair, and not ${describe(name)}.`,
  )
}

/** @throws {TypeError} */
export function checkFunction(name: string, fn: unknown): void {
  if (typeof fn === 'function') return
  throw new TypeError(`step("${name}"): the second argument must be a function, and not ${describe(fn)}.`)
}

const unitSeconds = { seconds: 1, minutes: 60, hours: 3600, days: daySeconds }
const unitNames = Object.keys(unitSeconds) as (keyof typeof unitSeconds)[]

/**
 * When a sleep ends, in milliseconds since 1970.
 *
 * @throws {TypeError | RangeError}
 */
export function readSleepEnd(name: string, time: SleepTime, now: number): number {
  const call = `sleep("${name}")`
  const example = 'such as { minutes: 5 } or { until: new Date("2030-01-01") }'
  if (!isRecord(time))
    throw new TypeError(`${call}: the time must be an object, ${example}, and not ${describe(time)}.`)
  const given = withoutUndefined(time)
  refuseUnknown(`${call}: the time`, given, [...unitNames, 'until'])
  if ('until' in given) return readUntil(call, given, now)
  if (Object.keys(given).length === 0)
    throw new TypeError(`${call}: the time must have seconds, minutes, hours or days, or until, ${example}.`)
  let total = 0
  for (const [unit, value] of Object.entries(given)) {
    if (typeof value !== 'number' || Number.isNaN(value))
      throw new TypeError(`${call}: ${unit} must be a number, and not ${describe(value)}.`)
    total += value * unitSeconds[unit as keyof typeof unitSeconds]
  }
  return endOf(call, 'the time', total, now)
}

function readUntil(call: string, { until, ...others }: Record<string, unknown>, now: number): number {
  const [other] = Object.keys(others)
  if (other !== undefined) throw new TypeError(`${call}: the time must have either until or ${other}, and not both.`)
  const at = until instanceof Date ? until.getTime() : Number.NaN
  if (Number.isNaN(at)) throw new TypeError(`${call}: until must be a valid Date, and not ${describe(until)}.`)
  if (at - now > waitSecondsMax * 1000) throw new RangeError(`${call}: until must be at most 366 days from now.`)
  return Math.max(now, at)
}

function endOf(call: string, argument: string, seconds: number, now: number): number {
  if (seconds >= 0 && seconds <= waitSecondsMax) return Math.ceil(now + seconds * 1000)
  throw new RangeError(`${call}: ${argument} must be from 0 seconds to 366 days, and not ${seconds} seconds.`)
}

/** 7 days. */
const timeoutSecondsDefault = 7 * daySeconds

/** @throws {TypeError | RangeError} */
export function readWaitOptions(name: string, options: WaitForOptions, now: number) {
  const call = `waitFor("${name}")`
  const { title = null, timeoutSeconds = timeoutSecondsDefault, show = null, ...others } = readOptions(call, options)
  refuseUnknown(`${call}: the options`, others, ['title', 'timeoutSeconds', 'show'])
  if (typeof timeoutSeconds !== 'number' || Number.isNaN(timeoutSeconds))
    throw new TypeError(`${call}: timeoutSeconds must be a number of seconds, and not ${describe(timeoutSeconds)}.`)
  const isTitle = title === null || (typeof title === 'string' && title !== '' && title.length <= messageLengthMax)
  if (!isTitle)
    throw new TypeError(
      `${call}: title must be a text of 1 to ${messageLengthMax} characters, and not ${describe(title)}.`,
    )
  if (show !== null && !isRecord(show))
    throw new TypeError(`${call}: show must be an object of values to show, and not ${describe(show)}.`)
  return { title, show, deadline: endOf(call, 'timeoutSeconds', timeoutSeconds, now) }
}

/** The options of the called run, as a request has them. @throws {TypeError} */
export function readCallOptions(name: string, workflowId: unknown, variables: unknown, options: CallOptions) {
  const call = `call("${name}")`
  if (typeof workflowId !== 'string' || workflowId === '')
    throw new TypeError(`${call}: the second argument must be the id of a workflow, and not ${describe(workflowId)}.`)
  if (!isRecord(variables))
    throw new TypeError(`${call}: the variables must be an object, and not ${describe(variables)}.`)
  const { detached = false, ...given } = readOptions(call, options)
  refuseUnknown(`${call}: the options`, given, [...callOptions, 'detached'])
  if (typeof detached !== 'boolean')
    throw new TypeError(`${call}: detached must be true or false, and not ${describe(detached)}.`)
  const error = findCallOptionError(given)
  if (error !== undefined) throw new TypeError(`${call}: ${error.rule}, and not ${describe(error.value)}.`)
  return { options: given as Omit<CallOptions, 'detached'>, detached }
}

function readOptions(call: string, options: unknown): Record<string, unknown> {
  if (isRecord(options)) return withoutUndefined(options)
  throw new TypeError(`${call}: the options must be an object, and not ${describe(options)}.`)
}

function refuseUnknown(subject: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((member) => !known.includes(member))
  if (unknown === undefined) return
  const names = `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`
  throw new TypeError(`${subject} cannot have ${JSON.stringify(unknown.slice(0, shownMax))}: use ${names}.`)
}

function withoutUndefined(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

const shownMax = 40

/** Short enough for a sentence. */
function describe(value: unknown): string {
  if (typeof value === 'string')
    return `the text ${JSON.stringify(value.length > shownMax ? `${value.slice(0, shownMax)}…` : value)}`
  if (typeof value === 'number' || typeof value === 'bigint') return `the number ${value}`
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return 'a list'
  return value instanceof Date ? 'a Date' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
