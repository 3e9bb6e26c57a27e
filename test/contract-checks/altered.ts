/** Altered copies of the two documents, as a change of openapi/ would make them. */
import { readFileSync } from 'node:fs'
import type { DocumentName } from '../../src/openapi/document.ts'

/** A part of a document, whose shape the alteration knows. */
// biome-ignore lint/suspicious/noExplicitAny: an alteration writes anywhere, also what does not fit the types.
export type Part = any

export function current(name: DocumentName = 'execution.v1'): Part {
  return JSON.parse(readFileSync(new URL(`../../generated/${name}/document.json`, import.meta.url), 'utf8'))
}

/** A copy of a document that `alter` has changed; its objects are shared with nothing. */
export function altered(document: Part, alter: (copy: Part) => void): Part {
  const copy = structuredClone(document)
  alter(copy)
  return copy
}

export const runs = '/v1/execution/runs'
export const run = '/v1/execution/runs/{runId}'
export const queue = '/v1/execution/queue-remote/{workflowId}'

/** The schema of a component, by name. */
export function schemaOf(document: Part, name: string): Part {
  return document.components.schemas[name]
}

export function parameterOf(document: Part, name: string): Part {
  return document.components.parameters[name]
}
