/** What a guard has to say: to people, and so with a place and with what to do about it. */
import type { Document, DocumentName } from '../../openapi/document.ts'

export interface Finding {
  /** A warning is shown, and fails nothing. */
  severity: 'error' | 'warning'
  what: string
  /** A document with a JSON Pointer, or a file with a line. */
  where: string
  why: string
  /** What to do about it. */
  mend: string
}

/** A document as it is, beside what was released of it last. */
export interface CheckedContract {
  name: DocumentName
  current: Document
  released: Document
}

/** What a guard found, and for a clean run what it looked at. */
export interface Report {
  looked: string
  findings: Finding[]
}

export function shownFinding({ severity, what, where, why, mend }: Finding): string {
  const lines = [where, why, mend].filter((line) => line !== '')
  return [`${severity}: ${what}`, ...lines.map((line) => `    ${line}`)].join('\n')
}
