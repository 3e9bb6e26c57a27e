/** A place in two versions of a document, where a comparison records changes with their effect on clients. */
import { isDeepStrictEqual } from 'node:util'
import { type Document, follow, listOperations, type Resolved } from '../document.ts'
import { toPointer, valueAt } from '../json-pointer.ts'

/** `breaking`: clients of the last release may fail. `changed`: documentation, and narrower responses. */
export type Kind = 'breaking' | 'added' | 'deprecated' | 'changed'

/** Whether a schema constrains requests, which may only become wider, or responses, which may only become narrower. */
export type Direction = 'request' | 'response'

export type Node = Record<string, unknown>

interface Location {
  /** Where the change is, in words; `{operation}` and `{response}` stand for those in which it was found. */
  subject: string
  /** JSON Pointer into the current document, or into the released one for what was removed. */
  pointer: string
  operation: string
  status: string
}

export interface Change extends Location {
  kind: Kind
  /** The rest of the sentence that begins with the subject. */
  predicate: string
  /** How it breaks clients; empty if it does not. */
  reason: string
}

export const reasons = {
  rejected: 'Requests that were accepted are now rejected.',
  unknown: 'Clients of the last release receive what they do not know.',
  missing: 'Clients that read it find nothing.',
  renamed: 'Code written for the last release uses the old name.',
  forbidden: 'Keys whose scopes sufficed now get a 403 response.',
  removed: 'Calls get a 404 or 405 response.',
  omitted: 'Clients that omit it get a different behaviour.',
  ignored: 'Clients that send it get a different behaviour.',
  repeated: 'Clients that repeat it after a lost response execute it twice.',
  unjudged: 'The contract checks do not know what it means for callers.',
}

export class Place {
  readonly before: Document
  readonly after: Document
  readonly changes: Change[]
  readonly location: Location
  /** The references that the comparison has met, and whether their targets are the same, apart from further references. */
  readonly #sameTargets: Map<string, boolean>

  constructor(
    before: Document,
    after: Document,
    changes: Change[],
    location: Location,
    sameTargets = new Map<string, boolean>(),
  ) {
    this.before = before
    this.after = after
    this.changes = changes
    this.location = location
    this.#sameTargets = sameTargets
  }

  get subject(): string {
    return this.location.subject
  }

  note(kind: Kind, predicate: string, reason = ''): void {
    this.changes.push({ kind, ...this.location, predicate, reason })
  }

  with(location: Partial<Location>): Place {
    return new Place(this.before, this.after, this.changes, { ...this.location, ...location }, this.#sameTargets)
  }

  /** The same place, with a separate list of changes. */
  probe(): Place {
    return new Place(this.before, this.after, [], this.location, this.#sameTargets)
  }

  below(subject: string, ...steps: string[]): Place {
    return this.with({ subject, pointer: this.location.pointer + toPointer(steps) })
  }

  /** Resolves a value of the released document and its counterpart in the current one. */
  follow(before: unknown, after: unknown): [Resolved<Node>, Resolved<Node>] {
    return [followNode(this.before, before), followNode(this.after, after)]
  }

  resolve(before: unknown, after: unknown): [Node, Node] {
    const [was, is] = this.follow(before, after)
    return [was.value, is.value]
  }

  /** Whether two values and everything that they refer to are the same, so that there is nothing to compare. */
  isUnchanged(before: unknown, after: unknown): boolean {
    if (!isSame(before, after)) return false
    const references = referencesIn(before, new Set())
    // A set's iteration also visits what is added meanwhile.
    for (const reference of references) {
      const [was, is] = [this.before, this.after].map((document) => valueAt(document, reference.slice(1)))
      const known = this.#sameTargets.get(reference) ?? (was !== undefined && isSame(was, is))
      this.#sameTargets.set(reference, known)
      if (!known) return false
      referencesIn(was, references)
    }
    return true
  }
}

function referencesIn(value: unknown, found: Set<string>): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  if ('$ref' in value && typeof value.$ref === 'string') found.add(value.$ref)
  for (const each of Object.values(value)) referencesIn(each, found)
  return found
}

/** The schema `true`, like a missing one, allows everything; `false` allows nothing. */
export function followNode(document: Document, node: unknown): Resolved<Node> {
  const found = follow<unknown>(document, node ?? {})
  const value = typeof found.value === 'boolean' ? (found.value ? {} : { not: {} }) : found.value
  return { value: value as Node, pointer: found.pointer }
}

/** Replaces every reference in a value by its target, except a reference that is inside its own target. */
export function expand(document: Document, value: unknown, open: readonly string[] = []): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => expand(document, each, open))
  const { $ref } = value as Node
  if (typeof $ref === 'string') {
    return open.includes($ref) ? $ref : expand(document, followNode(document, value).value, [...open, $ref])
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, expand(document, each, open)]))
}

/** Ignores the order of members. */
export const isSame = isDeepStrictEqual

/** The member names of both, in the order of the second; those that it lacks come last. */
export function memberNames(before: unknown, after: unknown): string[] {
  return [...new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})])]
}

// Turns changes into sentences; the same change of several operations or responses becomes one sentence.

export interface Sentence {
  kind: Kind
  text: string
  reason: string
  pointer: string
  /** Affected operations; empty if the change concerns the whole document. */
  operations: string[]
}

/** Keeps the order of the changes. "Every" refers to the operations and responses of the released document. */
export function toSentences(changes: readonly Change[], released: Document): Sentence[] {
  const groups = Map.groupBy(changes, ({ kind, subject, predicate, reason }) =>
    JSON.stringify([kind, subject, predicate, reason]),
  )
  const statuses = new Map(
    listOperations(released).map(({ operation }) => [operation.operationId, Object.keys(operation.responses)]),
  )
  return [...groups.values()].flatMap((group) => describeGroup(group, statuses))
}

/** The statuses of each operation. */
type Statuses = Map<string, string[]>

function describeGroup(group: Change[], statuses: Statuses): Sentence[] {
  const [{ kind, subject, predicate, reason, pointer }] = group as [Change]
  const operations = [...new Set(group.map((it) => it.operation).filter((it) => it !== ''))]
  const toSentence = (place: string, affected: string[]): Sentence => {
    const text = `${place.charAt(0).toUpperCase()}${place.slice(1)} ${predicate}.`
    return { kind, text, reason, pointer, operations: affected }
  }
  if (!subject.includes('{response}')) {
    return [toSentence(subject.replace('{operation}', describeOperations(operations, statuses)), operations)]
  }
  const describeResponses = (operation: string): string => {
    const affected = new Set(group.filter((it) => it.operation === operation).map(({ status }) => status))
    const isEvery = affected.size > 1 && statuses.get(operation)?.every((status) => affected.has(status))
    return isEvery ? 'every response' : `response ${formatList([...affected], 'or')}`
  }
  return [...Map.groupBy(operations, describeResponses)].map(([responses, affected]) =>
    toSentence(subject.replace('{response}', `${responses} of ${describeOperations(affected, statuses)}`), affected),
  )
}

function describeOperations(operations: string[], statuses: Statuses): string {
  if (operations.length > 1 && [...statuses.keys()].every((it) => operations.includes(it))) return 'every operation'
  const names = operations.map((it) => `\`${it}\``)
  return `${operations.length > 1 ? 'each of ' : ''}${formatList(names, 'and')}`
}

export function formatList(items: string[], word: 'and' | 'or'): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}` : (items[0] ?? '')
}
