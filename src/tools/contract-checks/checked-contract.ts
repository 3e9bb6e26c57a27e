/** The documents that the contract checks read, and the form in which checks report findings. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, type DocumentName, documentNames } from '../../openapi/document.ts'

export interface CheckedContract {
  name: DocumentName
  current: Document
  released: Document
}

export function currentPath(name: DocumentName): string {
  return `generated/${name}/document.json`
}

export function releasedPath(name: DocumentName): string {
  return `openapi/released/${name}.json`
}

/** @param root directory of the checkout. */
export function readCheckedContracts(root: string): CheckedContract[] {
  const read = (path: string): Document => JSON.parse(readFileSync(join(root, path), 'utf8'))
  return documentNames.map((name) => ({ name, current: read(currentPath(name)), released: read(releasedPath(name)) }))
}

export interface Finding {
  /** Only errors make a check fail. */
  severity: 'error' | 'warning'
  message: string
  /** A document with a JSON Pointer, or a file with a line. */
  location: string
  reason: string
  fix: string
}

export interface Report {
  /** What the check covered, such as `25 patterns`; empty if that is of no interest. */
  summary: string
  findings: Finding[]
}

export function formatFinding({ severity, message, location, reason, fix }: Finding): string {
  const details = [location, reason, fix].filter((line) => line !== '')
  return [`${severity}: ${message}`, ...details.map((line) => `    ${line}`)].join('\n')
}
