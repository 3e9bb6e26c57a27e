/** The limits of what workflows report, as the contract documents them. Workers apply them before anything is stored. */
import type { RunEvent, RunProgress } from './run.ts'
import type { AttemptError, RunError } from './run-state.ts'

/**
 * Source maps for the stacks of errors: executors read no larger ones, and deployments have none. A parsed map takes about
 * ten times its size.
 */
export const mapBytesMax = 4 * 1024 * 1024

/** Characters of the message of an error, log line or progress report. */
export const messageLengthMax = 8192
/** Characters of the name of a step or an error. */
export const nameLengthMax = 200
/** Characters of the stack of an error, with its causes. */
export const stackLengthMax = 8192
/** Bytes of an output as JSON, and of the result of a step. */
export const jsonBytesMax = 1024 * 1024
/** Results of all steps of a run. */
export const stepsMax = 10_000
export const stepBytesOfRunMax = 16 * 1024 * 1024
/** Events that an attempt reports, and the characters of their texts. They keep a loop from filling the disk. */
export const reportsMax = 10_000
export const reportLengthMax = 8 * 1024 * 1024

export const logLevels = ['info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return logLevels.includes(value as LogLevel)
}

/** Replaces halves of surrogate pairs, and ends a text that is too long with an ellipsis. */
export function truncate(text: string, lengthMax: number): string {
  const wellFormed = text.toWellFormed()
  return wellFormed.length <= lengthMax ? wellFormed : `${wellFormed.slice(0, lengthMax - 1).toWellFormed()}…`
}

export function toRunError({ name, message }: { name: unknown; message: unknown }): RunError {
  return { name: truncate(String(name), nameLengthMax), message: truncate(String(message), messageLengthMax) }
}

export function toAttemptError(error: {
  name: unknown
  message: unknown
  stack?: unknown
  step?: unknown
}): AttemptError {
  const { stack, step } = error
  return {
    ...toRunError(error),
    stack: typeof stack === 'string' ? truncate(stack, stackLengthMax) : null,
    step: typeof step === 'string' ? truncate(step, nameLengthMax) : null,
  }
}

export function toRunProgress({ percent, message }: { percent: unknown; message: unknown }): RunProgress {
  const number = Number(percent)
  return {
    percent: Math.min(100, Math.max(0, Number.isNaN(number) ? 0 : number)),
    message: typeof message === 'string' ? truncate(message, messageLengthMax) : null,
  }
}

export function boundEventData(type: RunEvent['type'], data: Record<string, unknown>): Record<string, unknown> {
  if (type === 'log') {
    const level = isLogLevel(data.level) ? data.level : 'info'
    return { ...data, level, message: truncate(String(data.message), messageLengthMax) }
  }
  if (type === 'progress') return { ...data, ...toRunProgress(data as unknown as RunProgress) }
  if (type === 'status' && data.error) return { ...data, error: toAttemptError(data.error as AttemptError) }
  return type === 'step' ? { ...data, name: truncate(String(data.name), nameLengthMax) } : data
}

/** Limits the number and length of the reports of one attempt. */
export class ReportLimit {
  #count: number
  #length: number

  /** @param before the number and the length of earlier reports. */
  constructor(before = { count: 0, length: 0 }) {
    this.#count = Math.min(before.count, reportsMax)
    this.#length = before.length
  }

  get length(): number {
    return this.#length
  }

  /** The report, a warning in place of the first report above the limit, or undefined for the others. */
  next(type: RunEvent['type'], data: Record<string, unknown>): Pick<RunEvent, 'type' | 'data'> | undefined {
    if (this.#count === reportsMax) return undefined
    this.#count += 1
    this.#length += String(data.message ?? data.name).length
    if (this.#length > reportLengthMax) this.#count = reportsMax
    return this.#count === reportsMax ? { type: 'log', data: tooMany } : { type, data }
  }
}

const limits = `${reportsMax} events or ${reportLengthMax} characters`
const tooMany = { level: 'warn', message: `The attempt reported more than ${limits}; the rest is dropped.` }
