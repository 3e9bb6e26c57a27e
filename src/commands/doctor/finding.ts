/** The result of a check, and the wording that all checks share. */

import { describeCauses } from '../../storage/error-causes.ts'
import type { StoreInspection } from '../../storage/store.ts'

export type Status = 'ok' | 'warn' | 'fail'

export interface Finding {
  status: Status
  /** What was found. Contains no secret: people paste it into mails and bug reports. */
  detail: string
  /** What to do about it, in one sentence; `null` when the status is `ok`. */
  advice: string | null
}

export function ok(detail: string): Finding {
  return { status: 'ok', detail, advice: null }
}

export function warn(detail: string, advice: string): Finding {
  return { status: 'warn', detail, advice }
}

export function fail(detail: string, advice: string): Finding {
  return { status: 'fail', detail, advice }
}

/** For a check that depends on another, which has failed. */
export function notChecked(reason: string, dependency: string): Finding {
  return warn(`not checked: ${reason}`, `Fix ${dependency} first.`)
}

/** Splits one of the service's error messages, which give the advice after the last colon. */
export function failWithMessage(message: string): Finding {
  const at = message.lastIndexOf(': ')
  if (at < 0) return fail(message, 'Fix this and run doctor again.')
  const advice = message.slice(at + 2)
  return fail(message.slice(0, at), `${advice.slice(0, 1).toUpperCase()}${advice.slice(1)}`)
}

/** An inspection of a store; `undefined` inside when there is no store yet. */
export type Opened<Inspection extends StoreInspection = StoreInspection> =
  | { inspection: Inspection | undefined }
  | { error: string; cause?: unknown }

/** With its causes, such as the error of the system for which a request failed. */
export function shortMessage(error: unknown): string {
  const line = describeCauses(error)
    .replace(/\s+/g, ' ')
    .replace(/[. ]+$/, '')
    .trim()
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

export function formatBytes(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const amount = bytes / 1000 ** power
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[power]}`
}

export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
