/** Compares the values that a schema allows, in requests and in responses. */
import type { Document, Resolved } from '../document.ts'
import { parsePointer } from '../json-pointer.ts'
import { compareConstraints, compareKeywords, formatValue, judge } from './keywords.ts'
import { type Direction, followNode, isSame, memberNames, type Node, type Place, reasons } from './place.ts'

/** @param open pointers of the components being compared: a recursive schema is compared once. */
export function compareSchemas(
  place: Place,
  direction: Direction,
  before: unknown,
  after: unknown,
  open: readonly string[] = [],
): void {
  const [was, is] = place.follow(before, after)
  if (is.pointer !== undefined && open.includes(is.pointer)) return
  const at = inComponent(place, is)
  compareKeywords(at, 'schema', was.value, is.value)
  compareDefaults(at, direction, was.value, is.value)
  compareAccess(at, direction, was.value, is.value)
  compareDiscriminators(at, was.value, is.value)
  const pairing = pairAlternatives(listAlternatives(place.before, was), listAlternatives(place.after, is))
  for (const { label } of pairing.removed) noteRemovedValue(at, direction, label)
  // Clients skip unknown types of objects if a discriminator distinguishes them.
  const isSkipped = direction === 'response' && is.value.discriminator !== undefined
  for (const { label } of pairing.added) {
    if (isSkipped) at.note('added', `can also be \`${label}\``)
    else noteAddedValue(at, direction, label)
  }
  for (const [one, other] of pairing.pairs) {
    const branch = other.pointer === is.pointer ? at : inComponent(at, other)
    if (branch !== at && open.includes(other.pointer ?? '')) continue
    if (branch !== at) compareKeywords(branch, 'schema', one.value, other.value)
    compareValues(branch, direction, one.value, other.value, [...open, is.pointer ?? '', other.pointer ?? ''])
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

function compareValues(place: Place, direction: Direction, before: Node, after: Node, open: readonly string[]): void {
  if (!compareTypes(place, direction, typeOf(before), typeOf(after))) return
  compareConstants(place, direction, before, after)
  compareConstraints(place, direction, before, after)
  // A schema that allows anything has no members to lose.
  if (typeOf(after) !== undefined || after.properties) compareMembers(place, direction, before, after, open)
  const nested = { items: 'an item of', contentSchema: 'the content of' }
  for (const [keyword, words] of Object.entries(nested)) {
    if (before[keyword] === undefined && after[keyword] === undefined) continue
    const inner = place.below(`${words} ${place.subject}`, keyword)
    compareSchemas(inner, direction, before[keyword], after[keyword], open)
  }
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
  const [before, after] = [listConstants(was), listConstants(is)]
  if (before && after) {
    for (const value of before) if (!after.includes(value)) noteRemovedValue(place, direction, value)
    for (const value of after) if (!before.includes(value)) noteAddedValue(place, direction, value)
  } else if (before || after) {
    const list = (after ?? before ?? []).map((value) => `\`${value}\``).join(', ')
    const predicate = after ? `must be one of ${list}` : `is no longer limited to ${list}`
    place.note(...judge(after ? 'narrower' : 'wider', direction, predicate))
  }
}

function listConstants({ const: constant, enum: values }: Node): string[] | undefined {
  const list = constant !== undefined ? [constant] : (values as unknown[] | undefined)
  return list?.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
}

function compareMembers(place: Place, direction: Direction, before: Node, after: Node, open: readonly string[]): void {
  const [was, is] = [readMembers(before), readMembers(after)]
  for (const name of memberNames(was.properties, is.properties)) {
    const at = place.below(memberSubject(place.subject, name), 'properties', name)
    const inParent = at.with({ subject: place.subject })
    if (!(name in is.properties)) {
      const [verb, reason] = direction === 'request' ? ['accepts', reasons.rejected] : ['has', reasons.missing]
      place.note('breaking', `no longer ${verb} the member \`${name}\``, reason)
    } else if (!(name in was.properties)) {
      noteNewMember(inParent, direction, name, was.additional !== false, is.required.includes(name))
    } else {
      compareRequired(inParent, direction, name, was.required.includes(name), is.required.includes(name))
      compareSchemas(at, direction, was.properties[name], is.properties[name], open)
    }
  }
  compareAdditional(place, direction, was.additional, is.additional, open)
}

function readMembers({ properties, required, additionalProperties }: Node) {
  return {
    properties: (properties ?? {}) as Record<string, unknown>,
    required: (required ?? []) as string[],
    additional: additionalProperties ?? true,
  }
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
  wasAccepted: boolean,
  isRequired: boolean,
): void {
  if (direction === 'response') return place.note('added', `has the new member \`${name}\``)
  if (isRequired) return place.note('breaking', `requires the new member \`${name}\``, reasons.rejected)
  if (!wasAccepted) return place.note('added', `accepts the new member \`${name}\``)
  place.note('breaking', `defines the member \`${name}\`, which it accepted before with any value`, reasons.rejected)
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

function compareAdditional(
  place: Place,
  direction: Direction,
  was: unknown,
  is: unknown,
  open: readonly string[],
): void {
  if (was !== false && is !== false) {
    if (was === true && is === true) return
    const at = place.below(`any undeclared member of ${place.subject}`, 'additionalProperties')
    return compareSchemas(at, direction, was, is, open)
  }
  if (was === is) return
  if (direction === 'response') {
    // Compatible in both directions: clients ignore unknown members.
    return place.note('changed', `${is === false ? 'no longer has' : 'can have'} undeclared members`)
  }
  const predicate = `${is === false ? 'no longer accepts' : 'accepts'} undeclared members`
  place.note(...judge(is === false ? 'narrower' : 'wider', direction, predicate))
}

// The alternatives that a schema allows (`oneOf`, `anyOf`, a list of types), and which of two versions correspond.

interface Alternative extends Resolved<Node> {
  /** The name of its component, or its type. */
  label: string
}

/** The last step of a pointer, which names the component. */
function componentName(pointer: string): string {
  return parsePointer(pointer).at(-1) ?? ''
}

function listAlternatives(document: Document, schema: Resolved<Node>): Alternative[] {
  const { oneOf, anyOf, ...rest } = schema.value
  const branches = (oneOf ?? anyOf) as unknown[] | undefined
  if (branches) {
    // Other keywords apply to each branch, except documentation and those that describe the choice.
    const { description, summary, title, example, examples, deprecated, discriminator, default: _, ...shared } = rest
    return branches.flatMap((branch) => {
      const resolved = followNode(document, branch)
      return listAlternatives(document, { ...resolved, value: mergeSchemas(shared, resolved.value) })
    })
  }
  const { type } = schema.value
  if (Array.isArray(type))
    return type.map((each) => label({ value: { ...schema.value, type: each }, pointer: undefined }))
  return [label(schema)]
}

function mergeSchemas(shared: Node, branch: Node): Node {
  const properties = { ...(shared.properties as Node), ...(branch.properties as Node) }
  const required = [...new Set([shared.required, branch.required].flatMap((it) => (it ?? []) as string[]))]
  return {
    ...shared,
    ...branch,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  }
}

function label(schema: Resolved<Node>): Alternative {
  const name = schema.pointer === undefined ? undefined : componentName(schema.pointer)
  return { ...schema, label: name ?? typeOf(schema.value) ?? 'anything' }
}

/** The declared type, or the type of the constants. */
export function typeOf({ type, const: constant, enum: values }: Node): string | undefined {
  if (typeof type === 'string') return type
  const [value] = constant !== undefined ? [constant] : ((values as unknown[] | undefined) ?? [])
  if (value === undefined) return undefined
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

/** The constant member that distinguishes alternatives, as `type: status`. */
function tagOf({ properties }: Node): string | undefined {
  for (const [name, member] of Object.entries((properties ?? {}) as Record<string, Node>)) {
    if (typeof member.const === 'string') return `${name}: ${member.const}`
  }
  return undefined
}

interface Pairing {
  pairs: [Alternative, Alternative][]
  removed: Alternative[]
  added: Alternative[]
}

/** Pairs by component, then by tag, then by type. If one is left on each side, they are a pair too. */
function pairAlternatives(before: Alternative[], after: Alternative[]): Pairing {
  const pairs: Pairing['pairs'] = []
  let [removed, added] = [before, after]
  const keys = [
    (it: Alternative) => it.pointer,
    (it: Alternative) => tagOf(it.value),
    (it: Alternative) => (tagOf(it.value) ? undefined : typeOf(it.value)),
  ]
  for (const key of keys) {
    for (const one of removed) {
      const other = key(one) === undefined ? undefined : added.find((it) => key(it) === key(one))
      if (!other) continue
      pairs.push([one, other])
      removed = removed.filter((it) => it !== one)
      added = added.filter((it) => it !== other)
    }
  }
  const [one, other] = [removed[0], added[0]]
  if (!one || !other || removed.length > 1 || added.length > 1) return { pairs, removed, added }
  return { pairs: [...pairs, [one, other]], removed: [], added: [] }
}
