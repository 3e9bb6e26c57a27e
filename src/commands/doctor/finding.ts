/** What a check has found, and how it is shown. */

export type Status = 'ok' | 'warn' | 'fail'

export interface Finding {
  status: Status
  /** What was found. Nothing secret: it is copied into mails and tickets. */
  detail: string
  /** What to do about it, in one sentence; `null` when all is well. */
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

/** For a check that stands on another, which has failed. */
export function unchecked(because: string, mend: string): Finding {
  return warn(`not checked: ${because}`, `Mend ${mend} first.`)
}

/** A refusal of the service's own, which says what is wrong and, behind its last colon, what to do. */
export function failAsSaid(message: string): Finding {
  const at = message.lastIndexOf(': ')
  if (at < 0) return fail(message, 'Mend that, and call this again.')
  const advice = message.slice(at + 2)
  return fail(message.slice(0, at), `${advice.slice(0, 1).toUpperCase()}${advice.slice(1)}`)
}

/** What was thrown, in one line that is not too long for a person. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const line = text
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

export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
