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

/** What a comparison has found out. */
interface Known {
  /** References, and whether their targets are the same, apart from further references. */
  sameTargets: Map<string, boolean>
  /** Pairs of components whose changes are noted. */
  compared: Set<string>
}

export class Place {
  readonly before: Document
  readonly after: Document
  readonly changes: Change[]
  readonly location: Location
  readonly #known: Known

  constructor(
    before: Document,
    after: Document,
    changes: Change[],
    location: Location,
    known: Known = { sameTargets: new Map(), compared: new Set() },
  ) {
    this.before = before
    this.after = after
    this.changes = changes
    this.location = location
    this.#known = known
  }

  get subject(): string {
    return this.location.subject
  }

  note(kind: Kind, predicate: string, reason = ''): void {
    this.changes.push({ kind, ...this.location, predicate, reason })
  }

  with(location: Partial<Location>): Place {
    return new Place(this.before, this.after, this.changes, { ...this.location, ...location }, this.#known)
  }

  /** The same place, with a separate list of changes. */
  probe(): Place {
    return new Place(this.before, this.after, [], this.location, { ...this.#known, compared: new Set() })
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

  /** Whether this is the first comparison of two components here. Another one would note the same changes. */
  isFirst(before: string, after: string, scope: string): boolean {
    const { operation, status } = this.location
    const key = JSON.stringify([before, after, operation, status, scope])
    if (this.#known.compared.has(key)) return false
    this.#known.compared.add(key)
    return true
  }

  /** Whether two values and everything that they refer to are the same, so that there is nothing to compare. */
  isUnchanged(before: unknown, after: unknown): boolean {
    if (!isSame(before, after)) return false
    const references = referencesIn(before, new Set())
    // A set's iteration also visits what is added meanwhile.
    for (const reference of references) {
      const [was, is] = [this.before, this.after].map((document) => valueAt(document, reference.slice(1)))
      const known = this.#known.sameTargets.get(reference) ?? (was !== undefined && isSame(was, is))
      this.#known.sameTargets.set(reference, known)
      if (!known) return false
      referencesIn(was, references)
    }
    return true
  }
}

function referencesIn(value: unknown, found: Set<string>): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  spend()
  if (isReference(value)) found.add(value.$ref)
  for (const each of Object.values(value)) referencesIn(each, found)
  return found
}

/** The schema `true`, like a missing one, allows everything; `false` allows nothing. */
export function followNode(document: Document, node: unknown): Resolved<Node> {
  spend()
  const found = follow<unknown>(document, node ?? {})
  const value = typeof found.value === 'boolean' ? (found.value ? {} : { not: {} }) : found.value
  return { value: value as Node, pointer: found.pointer }
}

/** Keywords whose members are names, not keywords. */
const ofNames = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']
/** Keywords whose values are data. */
const ofData = ['const', 'enum', 'default']

/**
 * Whether two values are the same when each reference is replaced by its target. A pair of references is compared once, so
 * that schemas which refer to each other many times, or to themselves, take no longer than others.
 *
 * @param ignored keywords that may differ.
 */
export function isSameExpanded(
  [before, after]: readonly [Document, Document],
  was: unknown,
  is: unknown,
  ignored: readonly string[] = [],
): boolean {
  const compared = new Map<unknown, Set<unknown>>()
  const isCompared = (one: unknown, other: unknown): boolean => {
    const [key, otherKey] = [referenceKey(one), referenceKey(other)]
    const others = compared.get(key) ?? new Set()
    const isKnown = others.has(otherKey)
    compared.set(key, others.add(otherKey))
    return isKnown
  }
  const same = (one: unknown, other: unknown, areNames: boolean): boolean => {
    spend()
    if (isReference(one) || isReference(other)) {
      if (isCompared(one, other)) return true
      return same(followNode(before, one).value, followNode(after, other).value, false)
    }
    if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other
    if (Array.isArray(one) !== Array.isArray(other)) return false
    const isLeft = (name: string) => areNames || !ignored.includes(name)
    const [names, otherNames] = [Object.keys(one).filter(isLeft), Object.keys(other).filter(isLeft)]
    if (names.length !== otherNames.length) return false
    return names.every((name) => {
      if (!Object.hasOwn(other, name)) return false
      const [value, otherValue] = [(one as Node)[name], (other as Node)[name]]
      if (ignored.length > 0 && !areNames && ofData.includes(name)) return isSame(value, otherValue)
      return same(value, otherValue, !areNames && ofNames.includes(name))
    })
  }
  return same(was, is, false)
}

function isReference(value: unknown): value is { $ref: string } {
  return typeof value === 'object' && value !== null && '$ref' in value && typeof value.$ref === 'string'
}

/** References without other keywords beside them are the same if their targets are. */
function referenceKey(value: unknown): unknown {
  return isReference(value) && Object.keys(value).length === 1 ? value.$ref : value
}

// The work of a comparison, which alternatives of alternatives can multiply.

/** Two schemas cannot be compared with the work that is allowed. */
export class TooMuchToCompare extends Error {}

let workLeft = Number.POSITIVE_INFINITY

/** Calls a comparison that follows at most this many schemas. @throws {TooMuchToCompare} */
export function withWorkLimit(work: number, compare: () => void): void {
  workLeft = work
  try {
    compare()
  } finally {
    workLeft = Number.POSITIVE_INFINITY
  }
}

/** Counts work. @throws {TooMuchToCompare} */
export function spend(work = 1): void {
  workLeft -= work
  if (workLeft < 0) throw new TooMuchToCompare()
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
