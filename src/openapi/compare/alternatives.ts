/** The alternatives that a schema allows (`oneOf`, `anyOf`, a list of types), and which of two versions correspond. */
import type { Document, Resolved } from '../document.ts'
import { parsePointer } from '../json-pointer.ts'
import { documentation, lowerBounds, upperBounds } from './keywords.ts'
import { followNode, isSame, type Node, spend } from './place.ts'

export interface Alternative extends Resolved<Node> {
  /** The name of its component, or its type. */
  label: string
}

/** The last step of a pointer, which names the component. */
export function componentName(pointer: string): string {
  return parsePointer(pointer).at(-1) ?? ''
}

export function listAlternatives(document: Document, schema: Resolved<Node>): Alternative[] {
  const { oneOf, anyOf, ...rest } = schema.value
  const branches = (oneOf ?? anyOf) as unknown[] | undefined
  if (branches) {
    // Other keywords apply to each branch, except documentation and those that describe the choice.
    const { description, summary, title, example, examples, deprecated, discriminator, default: _, ...others } = rest
    const both = oneOf !== undefined && anyOf !== undefined
    const shared = both ? { ...others, allOf: [...listOf(others.allOf), { anyOf }] } : others
    return branches.flatMap((branch) => {
      const { value, pointer } = flatten(document, followNode(document, branch))
      const merged = mergeSchemas(shared, value) ?? { ...shared, allOf: [...listOf(shared.allOf), value] }
      return listAlternatives(document, { value: merged, pointer })
    })
  }
  const types = Array.isArray(schema.value.type) ? schema.value.type : typesOfConstants(schema.value)
  if (types.length > 1 || Array.isArray(schema.value.type))
    return types.map((type) => label({ value: { ...schema.value, type }, pointer: undefined }))
  return [label(schema)]
}

function label(schema: Resolved<Node>): Alternative {
  const name = schema.pointer === undefined ? undefined : componentName(schema.pointer)
  return { ...schema, label: name ?? typeOf(schema.value) ?? 'anything' }
}

/** The declared type, or the type of the constants. */
export function typeOf(schema: Node): string | undefined {
  if (typeof schema.type === 'string') return schema.type
  const types = typesOfConstants(schema)
  return types.length === 1 ? types[0] : undefined
}

function typesOfConstants({ type, ...schema }: Node): string[] {
  if (type !== undefined) return [type].flat() as string[]
  const types = new Set((constantsOf(schema) ?? []).map(typeOfValue))
  if (types.has('number')) types.delete('integer')
  return [...types]
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}

/** The only values that the schema can allow. */
export function constantsOf({ const: constant, enum: values, type }: Node): unknown[] | undefined {
  const list = constant !== undefined ? [constant] : (values as unknown[] | undefined)
  const isAllowed = (value: unknown) => {
    const types = [typeOfValue(value), ...(typeof value === 'number' ? ['number'] : [])]
    return type === undefined || [type].flat().some((each) => types.includes(each as string))
  }
  return list?.filter(isAllowed)
}

function listOf(value: unknown): unknown[] {
  return (value ?? []) as unknown[]
}

// `allOf`, as one schema.

/** Writes `allOf` as one schema where its members constrain different things. */
export function flatten(
  document: Document,
  { value, pointer }: Resolved<Node>,
  open: readonly unknown[] = [],
): Resolved<Node> {
  if (!Array.isArray(value.allOf) || open.includes(value.allOf)) return { value: closed(value), pointer }
  const { allOf, ...rest } = value
  let merged: Node = rest
  const others: Node[] = []
  for (const each of allOf) {
    const branch = flatten(document, followNode(document, each), [...open, allOf]).value
    const next = mergeSchemas(merged, branch)
    if (next) merged = next
    else others.push(branch)
  }
  if (others.length > 0) merged = { ...merged, allOf: [...listOf(merged.allOf), ...others] }
  return { value: closed(merged), pointer }
}

const applicators = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties']

/** Where no other schema evaluates members, the unevaluated ones are the additional ones. */
function closed(schema: Node): Node {
  const { unevaluatedProperties, ...rest } = schema
  const isPlain = ![...applicators, 'additionalProperties'].some((keyword) => keyword in schema)
  return unevaluatedProperties === false && isPlain ? { ...rest, additionalProperties: false } : schema
}

/** Keywords that depend on each other within one schema: only one of two merged schemas may have them. */
const groups = [
  ['prefixItems', 'items', 'unevaluatedItems'],
  ['contains', 'minContains', 'maxContains'],
  ['if', 'then', 'else'],
  ['oneOf', 'anyOf', 'discriminator'],
  ['const', 'enum'],
]
const ofMembers = ['properties', 'patternProperties', 'additionalProperties']

/**
 * One schema that allows what both allow, or `undefined` when their keywords cannot be written together.
 *
 * @param shared may have `unevaluatedProperties`, which then concern the members of both.
 */
function mergeSchemas(shared: Node, branch: Node): Node | undefined {
  spend(Object.keys(shared).length + Object.keys(branch).length)
  if ('$ref' in shared || '$ref' in branch) return isSame(shared, branch) ? shared : undefined
  const unevaluated = ['unevaluatedProperties', 'unevaluatedItems']
  if (unevaluated.some((keyword) => keyword in branch)) {
    return Object.keys(shared).every((keyword) => documentation.includes(keyword)) ? branch : undefined
  }
  const hasAny = (schema: Node, keywords: string[]) => keywords.some((keyword) => keyword in schema)
  for (const group of groups) if (hasAny(shared, group) && hasAny(branch, group) && !areSame(group)) return undefined
  const isBounded = [shared, branch].some((schema) => hasAny(schema, ofMembers.slice(1)))
  if (isBounded && hasAny(shared, ofMembers) && hasAny(branch, ofMembers) && !areSame(ofMembers)) return undefined

  const merged = { ...branch, ...shared }
  for (const keyword of Object.keys(branch)) {
    if (!(keyword in shared) || documentation.includes(keyword) || isSame(shared[keyword], branch[keyword])) continue
    const value = mergeKeyword(keyword, shared[keyword], branch[keyword])
    if (value === undefined) return undefined
    merged[keyword] = value
  }
  return merged

  function areSame(keywords: string[]): boolean {
    return keywords.every((keyword) => isSame(shared[keyword], branch[keyword]))
  }
}

function mergeKeyword(keyword: string, shared: unknown, branch: unknown): unknown {
  if (keyword === 'required') return [...new Set([...listOf(shared), ...listOf(branch)])]
  if (keyword === 'allOf') return [...listOf(shared), ...listOf(branch)]
  if (lowerBounds.includes(keyword)) return Math.max(Number(shared), Number(branch))
  if (upperBounds.includes(keyword)) return Math.min(Number(shared), Number(branch))
  if (keyword !== 'properties') return undefined
  const properties: Node = { ...(branch as Node), ...(shared as Node) }
  for (const [name, one] of Object.entries(branch as Node)) {
    const other = (shared as Node)[name]
    if (other === undefined || isSame(one, other)) continue
    const [first, second] = [other, one].map((schema) => (schema === true ? {} : schema))
    const merged = isNode(first) && isNode(second) ? mergeSchemas(first, second) : undefined
    if (!merged) return undefined
    properties[name] = merged
  }
  return properties
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

// Which alternatives exclude each other, and which of two versions correspond.

/** Whether a value can match several alternatives of a `oneOf`, which then refuses it. */
export function overlaps(document: Document, { value }: Resolved<Node>): boolean {
  const branches = listOf(value.oneOf ?? value.anyOf).map((each) => flatten(document, followNode(document, each)))
  if (branches.some((branch) => overlaps(document, branch))) return true
  if (value.oneOf === undefined) return false
  const alternatives = branches.map((branch) => listAlternatives(document, branch))
  return alternatives.some((one, index) =>
    alternatives.slice(index + 1).some((other) => one.some((a) => other.some((b) => !areDisjoint(document, a, b)))),
  )
}

function areDisjoint(document: Document, { value: one }: Alternative, { value: other }: Alternative): boolean {
  spend()
  if (haveOtherValues(one, other)) return true
  if (typeOf(one) !== 'object' || typeOf(other) !== 'object') return false
  const [members, others] = [one.properties, other.properties] as (Node | undefined)[]
  const required = new Set([...listOf(one.required), ...listOf(other.required)] as string[])
  return [...required].some((name) => {
    if (!members || !others || !Object.hasOwn(members, name) || !Object.hasOwn(others, name)) return false
    return haveOtherValues(followNode(document, members[name]).value, followNode(document, others[name]).value)
  })
}

/** Whether the types or the constants of two schemas exclude each other. */
function haveOtherValues(one: Node, other: Node): boolean {
  const [type, otherType] = [typeOf(one), typeOf(other)].map((each) => (each === 'integer' ? 'number' : each))
  if (type !== undefined && otherType !== undefined && type !== otherType) return true
  const [values, others] = [constantsOf(one), constantsOf(other)]
  return values !== undefined && others !== undefined && !values.some((value) => others.some((it) => isSame(it, value)))
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
export function pairAlternatives(before: Alternative[], after: Alternative[]): Pairing {
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
