/** Compares what a schema allows, for values that callers send and for values that they get. */
import { alternativesOf, pairUp, typeOf } from './alternatives.ts'
import {
  below,
  type Comparison,
  type Direction,
  type Node,
  names,
  note,
  type Place,
  type Resolved,
  resolve,
  same,
  why,
} from './change.ts'
import { compareConstraints, judge, shown } from './constraints.ts'
import { compareKeywords } from './keywords.ts'

/** `open` are the components that the comparison is inside of: a schema that contains itself is compared once. */
export function compareSchemas(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  before: unknown,
  after: unknown,
  open: readonly string[] = [],
): void {
  const [was, is] = [resolve(comparison.before, before), resolve(comparison.after, after)]
  const at = inComponent(place, is)
  if (is.component && open.includes(is.component.pointer)) return
  const inner = is.component ? [...open, is.component.pointer] : open
  compareKeywords(comparison, at, 'schema', was.node, is.node)
  compareDefaults(comparison, at, direction, was.node, is.node)
  compareMode(comparison, at, direction, was.node, is.node)
  compareDiscriminators(comparison, at, was.node, is.node)
  const pairing = pairUp(alternativesOf(comparison.before, was), alternativesOf(comparison.after, is))
  for (const { label } of pairing.gone) lose(comparison, at, direction, label)
  // Clients skip a kind of thing that they do not know, where a discriminator tells them the kind.
  const skipped = direction === 'answer' && is.node.discriminator !== undefined
  for (const { label } of pairing.come) {
    if (skipped) note(comparison, at, 'added', `may be \`${label}\` too`)
    else gain(comparison, at, direction, label)
  }
  for (const [one, other] of pairing.pairs) {
    const branch = other.component?.pointer === is.component?.pointer ? at : inComponent(at, other)
    if (branch !== at && open.includes(other.component?.pointer ?? '')) continue
    if (branch !== at) compareKeywords(comparison, branch, 'schema', one.node, other.node)
    compareValues(comparison, branch, direction, one.node, other.node, [...inner, other.component?.pointer ?? ''])
  }
}

function inComponent(place: Place, { component }: Resolved): Place {
  return component ? { ...place, subject: `\`${component.name}\``, pointer: component.pointer } : place
}

function lose(comparison: Comparison, place: Place, direction: Direction, label: string): void {
  const [kind, reason] = judge('narrower', direction)
  const what = direction === 'request' ? `does not take \`${label}\` any more` : `is never \`${label}\` any more`
  note(comparison, place, kind, what, reason)
}

function gain(comparison: Comparison, place: Place, direction: Direction, label: string): void {
  const [kind, reason] = judge('wider', direction)
  note(comparison, place, kind, `${direction === 'request' ? 'takes' : 'may be'} \`${label}\` too`, reason)
}

function compareDefaults(comparison: Comparison, place: Place, direction: Direction, was: Node, is: Node): void {
  if (same(was.default, is.default)) return
  const breaks = direction === 'request' && was.default !== undefined
  const what =
    is.default === undefined
      ? 'has no default any more'
      : `has the default ${shown(is.default)}${was.default === undefined ? '' : ` instead of ${shown(was.default)}`}`
  note(comparison, place, breaks ? 'breaking' : 'changed', what, breaks ? why.defaulted : why.nobody)
}

/** What is only read may not be sent, and what is only written does not come. */
function compareMode(comparison: Comparison, place: Place, direction: Direction, was: Node, is: Node): void {
  const [keyword, reason] = direction === 'request' ? ['readOnly', why.refused] : ['writeOnly', why.missed]
  if (was[keyword] !== true && is[keyword] === true) note(comparison, place, 'breaking', `is \`${keyword}\``, reason)
  if (was[keyword] === true && is[keyword] !== true) note(comparison, place, 'added', `is not \`${keyword}\` any more`)
}

/** Clients tell kinds apart by it; that there is another kind is told by the alternatives. */
function compareDiscriminators(comparison: Comparison, place: Place, before: Node, after: Node): void {
  const [was, is] = [before.discriminator, after.discriminator] as { propertyName?: string; mapping?: Node }[]
  if (!was) return
  const kept = Object.entries(was.mapping ?? {}).every(([value, kind]) => is?.mapping?.[value] === kind)
  if (is && kept && is.propertyName === was.propertyName) return
  note(
    comparison,
    place,
    'breaking',
    `has ${is ? 'another' : 'no'} \`discriminator\`${is ? '' : ' any more'}`,
    why.missed,
  )
}

function compareValues(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  before: Node,
  after: Node,
  open: readonly string[],
): void {
  if (!compareTypes(comparison, place, direction, typeOf(before), typeOf(after))) return
  compareConstants(comparison, place, direction, before, after)
  compareConstraints(comparison, place, direction, before, after)
  // What may be anything has no members to lose.
  if (typeOf(after) !== undefined || after.properties) compareMembers(comparison, place, direction, before, after, open)
  const inside: [string, string][] = [
    ['items', 'an item of'],
    ['contentSchema', 'the content of'],
  ]
  for (const [keyword, words] of inside) {
    if (before[keyword] === undefined && after[keyword] === undefined) continue
    const inner = below(place, `${words} ${place.subject}`, keyword)
    compareSchemas(comparison, inner, direction, before[keyword], after[keyword], open)
  }
}

/** Whether the types have anything in common that is worth a closer look. */
function compareTypes(comparison: Comparison, place: Place, direction: Direction, was?: string, is?: string): boolean {
  if (was === is) return true
  const widened = is === undefined || (was === 'integer' && is === 'number')
  const narrowed = was === undefined || (was === 'number' && is === 'integer')
  const [kind, reason] = judge(widened ? 'wider' : narrowed ? 'narrower' : 'unknown', direction)
  const lost = direction === 'request' && !widened
  const what = narrowed
    ? `must be \`${is}\``
    : lost
      ? `does not take \`${was}\` any more, but \`${is}\``
      : `may be ${is === undefined ? 'anything' : `\`${is}\``}`
  note(comparison, place, kind, what, reason)
  return widened || narrowed
}

function compareConstants(comparison: Comparison, place: Place, direction: Direction, was: Node, is: Node): void {
  const [before, after] = [constantsOf(was), constantsOf(is)]
  if (!before && !after) return
  if (before && after) {
    for (const value of before) if (!after.includes(value)) lose(comparison, place, direction, value)
    for (const value of after) if (!before.includes(value)) gain(comparison, place, direction, value)
    return
  }
  const [kind, reason] = judge(after ? 'narrower' : 'wider', direction)
  const list = (after ?? before ?? []).map((value) => `\`${value}\``).join(', ')
  note(comparison, place, kind, after ? `must be one of ${list}` : `need not be one of ${list} any more`, reason)
}

function constantsOf({ const: constant, enum: values }: Node): string[] | undefined {
  const list = constant !== undefined ? [constant] : (values as unknown[] | undefined)
  return list?.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
}

function compareMembers(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  before: Node,
  after: Node,
  open: readonly string[],
): void {
  const [was, is] = [membersOf(before), membersOf(after)]
  for (const name of names(was.properties, is.properties)) {
    const at = below(place, memberSubject(place.subject, name), 'properties', name)
    if (!(name in is.properties)) {
      const what = `does not ${direction === 'request' ? 'take' : 'have'} the member \`${name}\` any more`
      note(comparison, place, 'breaking', what, direction === 'request' ? why.refused : why.missed)
    } else if (!(name in was.properties)) {
      newMember(comparison, { ...place, pointer: at.pointer }, direction, name, was.others !== false, is.required)
    } else {
      compareRequired(comparison, at, direction, place.subject, was.required.includes(name), is.required.includes(name))
      compareSchemas(comparison, at, direction, was.properties[name], is.properties[name], open)
    }
  }
  compareOthers(comparison, place, direction, was.others, is.others, open)
}

function membersOf({ properties, required, additionalProperties }: Node) {
  return {
    properties: (properties ?? {}) as Record<string, unknown>,
    required: (required ?? []) as string[],
    others: additionalProperties ?? true,
  }
}

/** `Run` → `Run.id`; what has no name of its own is described. */
function memberSubject(subject: string, name: string): string {
  return /^`[^`]+`$/.test(subject) ? `${subject.slice(0, -1)}.${name}\`` : `member \`${name}\` of ${subject}`
}

/** Clients ignore members that they do not know, so that a new one in an answer breaks nobody. */
function newMember(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  name: string,
  wasAllowed: boolean,
  required: string[],
): void {
  if (direction === 'answer') return note(comparison, place, 'added', `has the new member \`${name}\``)
  const requires = required.includes(name)
  if (requires) return note(comparison, place, 'breaking', `requires the new member \`${name}\``, why.refused)
  if (!wasAllowed) return note(comparison, place, 'added', `takes the new member \`${name}\``)
  const what = `gives the member \`${name}\` a meaning, which it took before without one`
  note(comparison, place, 'breaking', what, why.refused)
}

function compareRequired(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  subject: string,
  was: boolean,
  is: boolean,
): void {
  if (was === is) return
  const name = `\`${place.pointer.split('/').at(-1)}\``
  const [kind] = judge(is ? 'narrower' : 'wider', direction)
  const verb = direction === 'request' ? 'is accepted' : 'may come'
  const what = is ? `always has ${name}` : `${verb} without ${name}`
  const reason = kind !== 'breaking' ? why.nobody : direction === 'request' ? why.refused : why.missed
  note(comparison, { ...place, subject }, kind, direction === 'request' && is ? `requires ${name}` : what, reason)
}

function compareOthers(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  was: unknown,
  is: unknown,
  open: readonly string[],
): void {
  if (was !== false && is !== false) {
    if (was === true && is === true) return
    const at = below(place, `any other member of ${place.subject}`, 'additionalProperties')
    return compareSchemas(comparison, at, direction, was, is, open)
  }
  if (was === is) return
  if (direction === 'answer') {
    // Clients ignore members that they do not know: that there may be some breaks nobody.
    return note(comparison, place, 'changed', `${is === false ? 'has no' : 'may have'} members that it does not name`)
  }
  const [kind, reason] = judge(is === false ? 'narrower' : 'wider', direction)
  note(comparison, place, kind, `${is === false ? 'refuses' : 'takes'} members that it does not name`, reason)
}
