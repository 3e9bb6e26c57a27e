/** The kinds of value that a schema allows (`oneOf`, `anyOf`, a list of types), and which of them are the same kind. */
import type { Document } from '../../../openapi/document.ts'
import { type Node, type Resolved, resolve } from './change.ts'

export interface Alternative extends Resolved {
  /** What people call it: a component's name, or a type. */
  label: string
}

export function alternativesOf(document: Document, schema: Resolved): Alternative[] {
  const { oneOf, anyOf, ...rest } = schema.node
  const branches = (oneOf ?? anyOf) as unknown[] | undefined
  if (branches) {
    // What is said of all alternatives holds for each, but for words and for what the choice itself is.
    const { description, summary, title, example, examples, deprecated, discriminator, default: _, ...shared } = rest
    return branches.flatMap((branch) => {
      const resolved = resolve(document, branch)
      return alternativesOf(document, { ...resolved, node: merged(shared, resolved.node) })
    })
  }
  const { type } = schema.node
  if (Array.isArray(type)) return type.map((each) => labelled({ node: { ...schema.node, type: each } }))
  return [labelled(schema)]
}

/** A branch adds members to those that all alternatives have. */
function merged(shared: Node, branch: Node): Node {
  const [properties, required] = [
    { ...(shared.properties as Node), ...(branch.properties as Node) },
    [...new Set([...((shared.required ?? []) as string[]), ...((branch.required ?? []) as string[])])],
  ]
  return {
    ...shared,
    ...branch,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  }
}

function labelled(schema: Resolved): Alternative {
  return { ...schema, label: schema.component?.name ?? typeOf(schema.node) ?? 'anything' }
}

/** The type of a value, also where only its constants tell. */
export function typeOf({ type, const: constant, enum: values }: Node): string | undefined {
  if (typeof type === 'string') return type
  const [value] = constant !== undefined ? [constant] : ((values as unknown[] | undefined) ?? [])
  if (value === undefined) return undefined
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

/** The constant member that tells alternatives apart, as `type: status`. */
function tag({ properties }: Node): string | undefined {
  for (const [name, member] of Object.entries((properties ?? {}) as Record<string, Node>)) {
    if (typeof member.const === 'string') return `${name}: ${member.const}`
  }
  return undefined
}

export interface Pairing {
  pairs: [Alternative, Alternative][]
  gone: Alternative[]
  come: Alternative[]
}

/** By component, then by the constant that tells them apart, then by type; one that is left on each side is a pair. */
export function pairUp(before: Alternative[], after: Alternative[]): Pairing {
  const pairs: Pairing['pairs'] = []
  let [gone, come] = [before, after]
  const keys = [
    (it: Alternative) => it.component?.name,
    (it: Alternative) => tag(it.node),
    (it: Alternative) => (tag(it.node) ? undefined : typeOf(it.node)),
  ]
  for (const key of keys) {
    for (const one of gone) {
      const other = key(one) === undefined ? undefined : come.find((it) => key(it) === key(one))
      if (!other) continue
      pairs.push([one, other])
      gone = gone.filter((it) => it !== one)
      come = come.filter((it) => it !== other)
    }
  }
  const [one, other] = [gone[0], come[0]]
  if (!one || !other || gone.length > 1 || come.length > 1) return { pairs, gone, come }
  return { pairs: [...pairs, [one, other]], gone: [], come: [] }
}
