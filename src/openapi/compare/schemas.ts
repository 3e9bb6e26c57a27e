/** Compares the values that a schema allows, in requests and in responses. */
import type { Document, Resolved } from '../document.ts'
import {
  componentName,
  constantsOf,
  flatten,
  listAlternatives,
  overlaps,
  pairAlternatives,
  typeOf,
} from './alternatives.ts'
import { compareConstraints, compareKeywords, documentation, formatValue, judge } from './keywords.ts'
import {
  type Direction,
  followNode,
  isSame,
  isSameExpanded,
  memberNames,
  type Node,
  type Place,
  reasons,
} from './place.ts'

/** What a comparison is within. */
interface Scope {
  /** The pairs of schemas that are being compared: recursive ones are compared once. */
  open: readonly { before: unknown; after: unknown; fillsDefaults: boolean }[]
  /** Validation fills defaults in, except within alternatives. */
  fillsDefaults: boolean
}

export function compareSchemas(
  place: Place,
  direction: Direction,
  before: unknown,
  after: unknown,
  { open, fillsDefaults }: Scope = { open: [], fillsDefaults: true },
): void {
  const isOpen = open.some(
    (pair) => pair.before === before && pair.after === after && pair.fillsDefaults === fillsDefaults,
  )
  if (isOpen || place.isUnchanged(before, after)) return
  const found = place.follow(before, after)
  const [{ pointer: one }, { pointer: other }] = found
  const isFirst = one === undefined || other === undefined || place.isFirst(one, other, `${direction} ${fillsDefaults}`)
  if (!isFirst) return
  const [was, is] = [flatten(place.before, found[0]), flatten(place.after, found[1])]
  const at = inComponent(place, is)
  compareKeywords(at, 'schema', was.value, is.value)
  if (allowsNothing(was) || allowsNothing(is)) return compareEmptiness(at, direction, was, is)
  compareDefaults(at, direction, was.value, is.value)
  compareAccess(at, direction, was.value, is.value)
  compareDiscriminators(at, was.value, is.value)
  const constrainSame = isSameExpanded([place.before, place.after], before, after, documentation)
  if (!constrainSame) compareExclusion(at, direction, was, is)
  const pairing = pairAlternatives(listAlternatives(place.before, was), listAlternatives(place.after, is))
  for (const { label } of pairing.removed) noteRemovedValue(at, direction, label)
  // Clients skip unknown types of objects if a discriminator distinguishes them.
  const isSkipped = direction === 'response' && is.value.discriminator !== undefined
  for (const { label } of pairing.added) {
    if (isSkipped) at.note('added', `can also be \`${label}\``)
    else noteAddedValue(at, direction, label)
  }
  const hasBranches = [was, is].some(({ value }) => value.oneOf !== undefined || value.anyOf !== undefined)
  const scope = {
    open: [...open, { before, after, fillsDefaults }],
    fillsDefaults: fillsDefaults && !hasBranches,
  }
  for (const [one, other] of pairing.pairs) {
    const branch = other.pointer === is.pointer ? at : inComponent(at, other)
    if (branch !== at) compareKeywords(branch, 'schema', one.value, other.value)
    compareValues(branch, direction, one.value, other.value, scope)
  }
}

function allowsNothing({ value }: Resolved<Node>): boolean {
  return isSame(value.not, {})
}

function compareEmptiness(place: Place, direction: Direction, was: Resolved<Node>, is: Resolved<Node>): void {
  if (allowsNothing(was) && allowsNothing(is)) return
  if (allowsNothing(is)) place.note(...judge('narrower', direction, 'can have no value'))
  else place.note(...judge('wider', direction, 'can have a value'))
}

/**
 * Of alternatives in `oneOf` exactly one must match. Where they overlap, a wider one allows fewer values and a narrower
 * one more: then any change can break clients.
 */
function compareExclusion(place: Place, direction: Direction, was: Resolved<Node>, is: Resolved<Node>): void {
  const overlap = direction === 'request' ? overlaps(place.after, is) : overlaps(place.before, was)
  if (overlap) place.note(...judge('unknown', direction, 'has changed alternatives in `oneOf` that overlap'))
  const [before, after] = [was.value, is.value]
  for (const keyword of ['unevaluatedProperties', 'unevaluatedItems']) {
    if (before[keyword] === undefined && after[keyword] === undefined) continue
    place.note(...judge('unknown', direction, `has changes beside \`${keyword}\``))
  }
}

function inComponent(place: Place, { pointer }: Resolved<Node>): Place {
  return pointer === undefined ? place : place.with({ subject: `\`${componentName(pointer)}\``, pointer })
}

function noteRemovedValue(place: Place, direction: Direction, label: string): void {
  place.note(...judge('narrower', direction, `can no longer be \`${label}\``))
}

function noteAddedValue(place: Place, direction: Direction, label: string): void {
  place.note(...judge('wider', direction, `can also be \`${label}\``))
}

function compareDefaults(place: Place, direction: Direction, was: Node, is: Node): void {
  if (isSame(was.default, is.default)) return
  const breaks = direction === 'request' && was.default !== undefined
  const instead = was.default === undefined ? '' : ` instead of ${formatValue(was.default)}`
  const predicate =
    is.default === undefined ? 'no longer has a default' : `has the default ${formatValue(is.default)}${instead}`
  place.note(breaks ? 'breaking' : 'changed', predicate, breaks ? reasons.omitted : '')
}

/** `readOnly` members must not be sent; `writeOnly` members are not returned. */
function compareAccess(place: Place, direction: Direction, was: Node, is: Node): void {
  const [keyword, reason] = direction === 'request' ? ['readOnly', reasons.rejected] : ['writeOnly', reasons.missing]
  if (was[keyword] !== true && is[keyword] === true) place.note('breaking', `is now \`${keyword}\``, reason)
  if (was[keyword] === true && is[keyword] !== true) place.note('added', `is no longer \`${keyword}\``)
}

/** A value added to the mapping is reported as an alternative. */
function compareDiscriminators(place: Place, before: Node, after: Node): void {
  const [was, is] = [before.discriminator, after.discriminator] as { propertyName?: string; mapping?: Node }[]
  if (!was) return
  const isKept = Object.entries(was.mapping ?? {}).every(([value, target]) => is?.mapping?.[value] === target)
  if (is && isKept && is.propertyName === was.propertyName) return
  place.note('breaking', is ? 'has a different `discriminator`' : 'no longer has a `discriminator`', reasons.missing)
}

function compareValues(place: Place, direction: Direction, before: Node, after: Node, scope: Scope): void {
  const isLimited = [before, after].every((schema) => constantsOf(schema) !== undefined)
  if (!isLimited && !compareTypes(place, direction, typeOf(before), typeOf(after))) return
  compareConstants(place, direction, before, after)
  compareConstraints(place, direction, before, after)
  const keywords = ['properties', 'required', 'additionalProperties']
  // A schema that allows anything has no members to lose.
  if (typeOf(after) !== undefined || keywords.some((keyword) => keyword in after))
    compareMembers(place, direction, before, after, scope)
  compareItems(place, direction, before, after, scope)
  if (before.contentSchema === undefined && after.contentSchema === undefined) return
  const content = place.below(`the content of ${place.subject}`, 'contentSchema')
  compareSchemas(content, direction, before.contentSchema, after.contentSchema, scope)
}

/** `items` applies to those that `prefixItems` does not describe. */
function compareItems(place: Place, direction: Direction, before: Node, after: Node, scope: Scope): void {
  const [first = [], firstNow = []] = [before.prefixItems, after.prefixItems] as (unknown[] | undefined)[]
  for (let at = 0; at < Math.max(first.length, firstNow.length); at++) {
    const item = place.below(`item ${at + 1} of ${place.subject}`, 'prefixItems', String(at))
    const [was, is] = [at < first.length ? first[at] : before.items, at < firstNow.length ? firstNow[at] : after.items]
    compareSchemas(item, direction, was, is, scope)
  }
  if (before.items === undefined && after.items === undefined) return
  compareSchemas(place.below(`an item of ${place.subject}`, 'items'), direction, before.items, after.items, scope)
}

/** Returns whether the types overlap, so that comparing the values makes sense. */
function compareTypes(place: Place, direction: Direction, was?: string, is?: string): boolean {
  if (was === is) return true
  const isWider = is === undefined || (was === 'integer' && is === 'number')
  const isNarrower = was === undefined || (was === 'number' && is === 'integer')
  const predicate = isWider
    ? `can be ${is === undefined ? 'anything' : `\`${is}\``}`
    : `must be \`${is}\`${isNarrower ? '' : ` instead of \`${was}\``}`
  const effect = isWider ? 'wider' : isNarrower ? 'narrower' : 'unknown'
  place.note(...judge(effect, direction, predicate))
  return isWider || isNarrower
}

function compareConstants(place: Place, direction: Direction, was: Node, is: Node): void {
  const [before, after] = [constantsOf(was), constantsOf(is)]
  const format = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  if (before && after) {
    const isIn = (list: unknown[], value: unknown) => list.some((each) => isSame(each, value))
    for (const value of before) if (!isIn(after, value)) noteRemovedValue(place, direction, format(value))
    for (const value of after) if (!isIn(before, value)) noteAddedValue(place, direction, format(value))
  } else if (before || after) {
    const list = (after ?? before ?? []).map((value) => `\`${format(value)}\``).join(', ')
    const predicate = after ? `must be one of ${list}` : `is no longer limited to ${list}`
    place.note(...judge(after ? 'narrower' : 'wider', direction, predicate))
  }
}

function compareMembers(place: Place, direction: Direction, before: Node, after: Node, scope: Scope): void {
  const [was, is] = [readMembers(before), readMembers(after)]
  const isRequest = direction === 'request'
  const needs = (document: Document, { properties, required }: Members, name: string) => {
    const isFilled = isRequest && scope.fillsDefaults && Object.hasOwn(properties, name)
    return required.includes(name) && !(isFilled && followNode(document, properties[name]).value.default !== undefined)
  }
  for (const name of memberNames({ ...was.properties, ...toNames(was) }, { ...is.properties, ...toNames(is) })) {
    const at = place.below(memberSubject(place.subject, name), 'properties', name)
    const inParent = at.with({ subject: place.subject })
    const [wasNeeded, isNeeded] = [needs(place.before, was, name), needs(place.after, is, name)]
    const [wasDeclared, isDeclared] = [was, is].map(({ properties }) => Object.hasOwn(properties, name))
    const [wasSchema, isSchema] = [was, is].map(({ properties, others }) =>
      Object.hasOwn(properties, name) ? properties[name] : others,
    )
    if (wasDeclared && !isDeclared) {
      const isAccepted = isRequest && is.others !== false && accepts(at, wasSchema, isSchema, scope)
      const [verb, reason] = isRequest ? ['accepts', reasons.rejected] : ['has', reasons.missing]
      if (!isAccepted) {
        inParent.note('breaking', `no longer ${verb} the member \`${name}\``, reason)
        continue
      }
      inParent.note('changed', `no longer describes the member \`${name}\``)
    } else if (isDeclared && !wasDeclared) {
      noteNewMember(inParent, direction, name, {
        isRequired: isNeeded && !wasNeeded,
        isCompatible: was.others === false || accepts(at, wasSchema, isSchema, scope),
      })
      continue
    } else if (isDeclared) compareSchemas(at, direction, wasSchema, isSchema, scope)
    compareRequired(inParent, direction, name, wasNeeded, isNeeded)
  }
  compareAdditional(place, direction, was.additional, is.additional, scope)
}

/** Whether requests may have each value that they could have before. */
function accepts(place: Place, before: unknown, after: unknown, scope: Scope): boolean {
  const probe = place.probe()
  compareSchemas(probe, 'request', before, after, scope)
  return !probe.changes.some(({ kind }) => kind === 'breaking')
}

type Members = ReturnType<typeof readMembers>

function readMembers({ properties, required, additionalProperties, unevaluatedProperties }: Node) {
  return {
    properties: (properties ?? {}) as Record<string, unknown>,
    required: (required ?? []) as string[],
    additional: additionalProperties ?? true,
    /** The schema of members that are not declared. */
    others: additionalProperties ?? unevaluatedProperties ?? true,
  }
}

function toNames({ required }: Members): Record<string, true> {
  return Object.fromEntries(required.map((name) => [name, true]))
}

/** `Run` → `Run.id`; a subject that is not a name is described. */
function memberSubject(subject: string, name: string): string {
  return /^`[^`]+`$/.test(subject) ? `${subject.slice(0, -1)}.${name}\`` : `member \`${name}\` of ${subject}`
}

/** Clients ignore unknown members, so a new member of a response is compatible. */
function noteNewMember(
  place: Place,
  direction: Direction,
  name: string,
  { isRequired, isCompatible }: { isRequired: boolean; isCompatible: boolean },
): void {
  if (direction === 'response') return place.note('added', `has the new member \`${name}\``)
  if (isRequired) return place.note('breaking', `requires the new member \`${name}\``, reasons.rejected)
  if (isCompatible) return place.note('added', `accepts the new member \`${name}\``)
  place.note('breaking', `defines the member \`${name}\`, which it accepted before with other values`, reasons.rejected)
}

function compareRequired(place: Place, direction: Direction, name: string, was: boolean, is: boolean): void {
  if (was === is) return
  const predicates =
    direction === 'request'
      ? { required: `now requires \`${name}\``, optional: `no longer requires \`${name}\`` }
      : { required: `always has \`${name}\``, optional: `does not always have \`${name}\`` }
  const [kind, predicate] = judge(is ? 'narrower' : 'wider', direction, is ? predicates.required : predicates.optional)
  const reason = direction === 'request' ? reasons.rejected : reasons.missing
  place.note(kind, predicate, kind === 'breaking' ? reason : '')
}

function compareAdditional(place: Place, direction: Direction, was: unknown, is: unknown, scope: Scope): void {
  if (was !== false && is !== false) {
    if (was === true && is === true) return
    const at = place.below(`any undeclared member of ${place.subject}`, 'additionalProperties')
    return compareSchemas(at, direction, was, is, scope)
  }
  if (was === is) return
  if (direction === 'response') {
    // Compatible in both directions: clients ignore unknown members.
    return place.note('changed', `${is === false ? 'no longer has' : 'can have'} undeclared members`)
  }
  const predicate = `${is === false ? 'no longer accepts' : 'accepts'} undeclared members`
  place.note(...judge(is === false ? 'narrower' : 'wider', direction, predicate))
}
