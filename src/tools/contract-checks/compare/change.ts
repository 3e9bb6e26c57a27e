/** What a change of a document is to those who call the service, and what a comparison notes. */
import { type Document, follow } from '../../../openapi/document.ts'
import { parsePointer, toPointer } from '../../../openapi/json-pointer.ts'

/** Breaking: a client of the last release may fail. Changed: words, and answers that hold less than they might have. */
export type Kind = 'breaking' | 'added' | 'deprecated' | 'changed'

/** Which way a schema travels: what a request may hold may only grow, what an answer may hold may only shrink. */
export type Direction = 'request' | 'answer'

/** A part of a document, of any shape. */
export type Node = Record<string, unknown>

export interface Change {
  kind: Kind
  /** Where, in words; `{operation}` and `{answer}` stand for those that the change was found in. */
  subject: string
  /** What became of it: the rest of the sentence. */
  what: string
  /** Whom it breaks, and how; empty for what breaks nobody. */
  why: string
  /** JSON Pointer into the current document, or into the released one for what is gone. */
  pointer: string
  operation: string
  status: string
}

/** Where a comparison is. */
export type Place = Pick<Change, 'subject' | 'pointer' | 'operation' | 'status'>

export interface Comparison {
  before: Document
  after: Document
  changes: Change[]
}

export const why = {
  refused: 'A request that was accepted until now is refused.',
  surprised: 'A client that was written for the last release gets what it does not know.',
  missed: 'A client that reads it finds nothing.',
  renamed: 'Code that was written for the last release names it as it was.',
  forbidden: 'A key whose scopes sufficed until now is answered 403.',
  unanswered: 'Whoever calls it is answered 404 or 405.',
  defaulted: 'Whoever leaves it out gets something else.',
  repeated: 'A client that repeats it when no answer came does twice what it wanted once.',
  unjudged: 'The guard does not know what it means for callers.',
  nobody: '',
}

export function note({ changes }: Comparison, place: Place, kind: Kind, what: string, reason = why.nobody): void {
  const { subject, pointer, operation, status } = place
  changes.push({ kind, subject, what, why: reason, pointer, operation, status })
}

export function below(place: Place, subject: string, ...steps: string[]): Place {
  return { ...place, subject, pointer: place.pointer + toPointer(steps) }
}

export interface Resolved {
  node: Node
  /** The last component that a `$ref` led to. */
  component?: { name: string; pointer: string }
}

/** The schema or object that a `$ref` leads to; keywords next to the `$ref` override those of its target. */
export function resolve(document: Document, node: unknown): Resolved {
  const { value, pointer } = follow<Node>(document, node === true ? {} : (node ?? {}))
  if (pointer === undefined) return { node: value }
  return { node: value, component: { name: parsePointer(pointer).at(-1) ?? '', pointer } }
}

/** A value with everything that it refers to, once on each way down. */
export function expanded(document: Document, value: unknown, open: readonly string[] = []): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => expanded(document, each, open))
  const { $ref } = value as Node
  if (typeof $ref === 'string') {
    return open.includes($ref) ? $ref : expanded(document, resolve(document, value).node, [...open, $ref])
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, expanded(document, each, open)]))
}

export function same(one: unknown, other: unknown): boolean {
  if (one === other || JSON.stringify(one) === JSON.stringify(other)) return true
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))
}

/** The order of members means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([name, each]) => [name, sorted(each)]),
  )
}

/** The names of both, in the order of the second; those that it lacks come last. */
export function names(before: unknown, after: unknown): string[] {
  return [...new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})])]
}

/** `description`, `summary`, `title`, `deprecated` and examples: what tells people, and is not enforced. */
export function compareWords(comparison: Comparison, place: Place, before: Node, after: Node): void {
  if (after.deprecated === true && before.deprecated !== true) note(comparison, place, 'deprecated', 'is deprecated')
  if (after.deprecated !== true && before.deprecated === true)
    note(comparison, place, 'changed', 'is not deprecated any more')
  const prose = ['description', 'summary', 'title'].some((name) => before[name] !== after[name])
  if (prose) note(comparison, place, 'changed', 'is described in other words')
  const examples = ['example', 'examples'].some(
    (name) => !same(examplesOf(comparison.before, before[name]), examplesOf(comparison.after, after[name])),
  )
  if (examples) note(comparison, place, 'changed', 'has other examples')
}

function examplesOf(document: Document, examples: unknown): unknown {
  if (typeof examples !== 'object' || examples === null || Array.isArray(examples)) return examples
  return Object.fromEntries(
    Object.entries(examples).map(([name, each]) => [name, (each as Node)?.$ref ? resolve(document, each).node : each]),
  )
}
