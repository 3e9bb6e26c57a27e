/** Modified copies of the two documents, and the form of the tables of changes. */
import { readFileSync } from 'node:fs'
import type { Kind } from '../../src/openapi/compare/place.ts'
import type { DocumentName } from '../../src/openapi/document.ts'

/** Any part of a document. */
// biome-ignore lint/suspicious/noExplicitAny: tests write anywhere, also what does not fit the types.
export type Part = any

export function readCurrent(name: DocumentName = 'execution.v1'): Part {
  return JSON.parse(readFileSync(new URL(`../../generated/${name}/document.json`, import.meta.url), 'utf8'))
}

export function modify(document: Part, change: (copy: Part) => void): Part {
  const copy = structuredClone(document)
  change(copy)
  return copy
}

export const runs = '/v1/execution/runs'
export const run = '/v1/execution/runs/{runId}'
export const artifact = '/v1/execution/runs/{runId}/artifacts/{artifactName}'
export const cancel = '/v1/execution/runs/{runId}/cancel'
export const queue = '/v1/execution/queue-remote/{workflowId}'

/** The schema of a component. */
export function schemaOf(document: Part, name: string): Part {
  return document.components.schemas[name]
}

export function parameterOf(document: Part, name: string): Part {
  return document.components.parameters[name]
}

export interface ExpectedChange {
  title: string
  /** Matches the sentence that describes the change. */
  sentence: RegExp
  change: (document: Part) => void
  /** Prepares both versions of the document. */
  prepare: ((document: Part) => void) | undefined
  kind: Kind
}

type Describe = (
  title: string,
  sentence: RegExp,
  change: ExpectedChange['change'],
  prepare?: ExpectedChange['change'],
) => ExpectedChange

function describeAs(kind: Kind): Describe {
  return (title, sentence, change, prepare) => ({ title, sentence, change, prepare, kind })
}

export const breaking = describeAs('breaking')
export const added = describeAs('added')
export const deprecated = describeAs('deprecated')
export const changed = describeAs('changed')
