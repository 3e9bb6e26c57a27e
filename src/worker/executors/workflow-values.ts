/** Converts what a workflow logs, throws and returns to bounded text, in the executor. None of it can be trusted. */
import { format, stripVTControlCharacters } from 'node:util'
import { jsonBytesMax } from '../../domain/runs/reported-values.ts'
import { describeCauses, withCauses } from '../../storage/error-causes.ts'
import { authorFrames } from './error-stack.ts'

/** The worker truncates messages after masking their secrets. A longer text could end in a part of a secret. */
const textLengthMax = 1024 * 1024

export function toText(value: unknown): string {
  const text = typeof value === 'string' ? value : formatSafely('%s', value)
  return text.length <= textLengthMax ? text : `[${text.length} characters; at most ${textLengthMax} are kept]`
}

/** Like `util.format`, also for values whose getters or conversions throw. */
export function formatSafely(...values: unknown[]): string {
  try {
    return format(...values)
  } catch {
    return '[a value that cannot be converted to text]'
  }
}

export interface DescribedError {
  name: string
  message: string
  stack: string | null
}

/** @param root the directory of workflows. */
export function describeError(error: unknown, root: string): DescribedError {
  try {
    // Playwright colours its messages.
    if (error instanceof Error) {
      const { name } = error
      // `Promise.any` throws one without a message.
      const message = error instanceof AggregateError && error.message === '' ? describeCauses(error) : error.message
      return { name: toText(name), message: plain(message), stack: describeStack(error, root) }
    }
  } catch {
    // A getter threw.
  }
  return { name: 'Error', message: toText(error), stack: null }
}

function plain(text: string): string {
  return stripVTControlCharacters(toText(text))
}

/** The author's frames of an error, then its causes with theirs; `null` when there is neither. */
function describeStack(error: Error, root: string): string | null {
  const [, ...causes] = withCauses(error)
  const lines = authorFrames(error, root)
  for (const cause of causes) {
    const isError = cause instanceof Error
    lines.push(`Caused by ${isError ? `${toText(cause.name)}: ${plain(cause.message)}` : toText(cause)}`)
    if (isError) lines.push(...authorFrames(cause, root))
  }
  return lines.length === 0 ? null : toText(lines.join('\n'))
}

/**
 * Halves of surrogate pairs, which no JSON in UTF-8 can contain, become U+FFFD.
 *
 * @param subject names the value in the error.
 */
export function toJson(value: unknown, subject: string): string {
  const json = stringify(value, subject).replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (sequence, half) =>
    half ? '\ufffd' : sequence,
  )
  const bytes = Buffer.byteLength(json)
  if (bytes <= jsonBytesMax) return json
  throw new RangeError(
    `${subject} has ${bytes} bytes as JSON; at most ${jsonBytesMax} are allowed. Store large results as an artifact.`,
  )
}

function stringify(value: unknown, subject: string): string {
  try {
    return JSON.stringify(value ?? null) ?? 'null'
  } catch (error) {
    throw new TypeError(`${subject} is not JSON: ${describeError(error, '').message}`)
  }
}
