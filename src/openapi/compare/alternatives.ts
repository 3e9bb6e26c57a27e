/** The alternatives that a schema allows (`oneOf`, `anyOf`, a list of types), and which of two versions correspond. */
import type { Document, Resolved } from '../document.ts'
import { parsePointer } from '../json-pointer.ts'
import { followNode, type Node } from './place.ts'

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

export interface Pairing {
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
