/** Compares what an operation takes: parameters, the body, and the scopes that its key needs. */
import type { Document, DocumentOperation } from '../../../openapi/document.ts'
import { compareContent } from './answers.ts'
import { below, type Comparison, type Node, note, type Place, resolve, same, why } from './change.ts'
import { compareKeywords } from './keywords.ts'
import { compareSchemas } from './schemas.ts'

type Requirements = Record<string, string[]>[]

/** What documents meant that were released before each body said how large it may be. */
const unsaidBytesMax = 1024 * 1024

/** No requirement at all is met by everybody (OpenAPI 3.1.1, section 4.8.10). */
function requirementsOf(document: Document, own: Requirements | undefined): Requirements {
  const requirements = own ?? (document as { security?: Requirements }).security ?? []
  return requirements.length > 0 ? requirements : [{}]
}

/** Callers never see what a scheme is called: one that is the same but for its name is the same. */
function schemesRenamed({ before, after }: Comparison, requirements: Requirements): Requirements {
  const [was, is] = [before, after].map(({ components }) => (components.securitySchemes ?? {}) as Record<string, Node>)
  const told = (scheme?: Node) => ({ ...scheme, description: '' })
  const nameOf = (name: string) =>
    was?.[name] && is && !(name in is) ? Object.keys(is).find((it) => same(told(is[it]), told(was[name]))) : undefined
  return requirements.map((requirement) =>
    Object.fromEntries(Object.entries(requirement).map(([name, scopes]) => [nameOf(name) ?? name, scopes])),
  )
}

export function compareSecurity(
  comparison: Comparison,
  place: Place,
  own: Requirements | undefined,
  other: Requirements | undefined,
): void {
  const before = schemesRenamed(comparison, requirementsOf(comparison.before, own))
  const after = requirementsOf(comparison.after, other)
  const at = below(place, place.subject, 'security')
  for (const requirement of before) {
    if (after.some((it) => satisfies(requirement, it))) continue
    const missing = after[0] ? scopesBeyond(after[0], requirement) : []
    const what = missing.length
      ? `needs the scope ${missing.map((scope) => `\`${scope}\``).join(', ')} too`
      : `does not take ${namesOf(requirement)} any more`
    note(comparison, at, 'breaking', what, missing.length ? why.forbidden : why.refused)
  }
  for (const requirement of after) {
    if (before.some((it) => satisfies(requirement, it))) continue
    const spared = before.flatMap((it) => scopesBeyond(it, requirement))
    const without = spared.map((scope) => `\`${scope}\``).join(', ')
    note(
      comparison,
      at,
      'added',
      spared.length ? `may be called without the scope ${without}` : `takes ${namesOf(requirement)}`,
    )
  }
}

function namesOf(requirement: Requirements[number]): string {
  const known = Object.keys(requirement).map((name) => `\`${name}\``)
  return known.join(' with ') || 'calls without a key'
}

/** Whether whoever meets `offered` also meets `asked`. */
function satisfies(offered: Requirements[number], asked: Requirements[number]): boolean {
  return Object.entries(asked).every(
    ([scheme, scopes]) => scopes.every((it) => offered[scheme]?.includes(it)) && scheme in offered,
  )
}

function scopesBeyond(one: Requirements[number], other: Requirements[number]): string[] {
  return Object.entries(one).flatMap(([scheme, scopes]) =>
    scopes.filter((it) => scheme in other && !other[scheme]?.includes(it)),
  )
}

type Parameter = DocumentOperation['parameters'][number] & Node

export function compareParameters(
  comparison: Comparison,
  place: Place,
  one: DocumentOperation,
  other: DocumentOperation,
): void {
  const gone = new Set(one.parameters as Parameter[])
  for (const is of other.parameters as Parameter[]) {
    const was = [...gone].find((it) => counterpart(it, is, one.path, other.path))
    if (was) gone.delete(was)
    const at = below(place, `${kindOf(is)} \`${is.name}\` of {operation}`, 'parameters', is.name)
    if (was) compareParameter(comparison, at, was, is)
    else if (is.required)
      note(comparison, place, 'breaking', `requires the new ${kindOf(is)} \`${is.name}\``, why.refused)
    else note(comparison, place, 'added', `takes the new ${kindOf(is)} \`${is.name}\``)
  }
  for (const { in: where, name } of gone) {
    const reason = where === 'header' ? why.defaulted.replace('leaves it out', 'sends it') : why.refused
    note(comparison, place, 'breaking', `does not take the ${kindOf({ in: where })} \`${name}\` any more`, reason)
  }
}

function kindOf({ in: where }: Pick<Parameter, 'in'>): string {
  return where === 'header' ? 'header' : `${where} parameter`
}

/** Headers are the same in any case; a path parameter is what stands at its place in the path. */
function counterpart(was: Parameter, is: Parameter, pathBefore: string, pathAfter: string): boolean {
  if (was.in !== is.in) return false
  if (is.in === 'path') return placeInPath(was.name, pathBefore) === placeInPath(is.name, pathAfter)
  return is.in === 'header' ? was.name.toLowerCase() === is.name.toLowerCase() : was.name === is.name
}

function placeInPath(name: string, path: string): number {
  return path.split('/').findIndex((segment) => segment.includes(`{${name}}`))
}

function compareParameter(comparison: Comparison, place: Place, was: Parameter, is: Parameter): void {
  if (was.name !== is.name) note(comparison, place, 'breaking', `was called \`${was.name}\``, why.renamed)
  if (!was.required && is.required) note(comparison, place, 'breaking', 'is required', why.refused)
  if (was.required && !is.required) note(comparison, place, 'added', 'may be left out')
  const [written, writes] = [serialisation(was), serialisation(is)]
  for (const [keyword, value] of Object.entries(writes)) {
    if (!same(written[keyword], value)) note(comparison, place, 'breaking', `has another \`${keyword}\``, why.refused)
  }
  compareKeywords(comparison, place, 'parameter', was, is)
  compareSchemas(comparison, below(place, place.subject, 'schema'), 'request', was.schema, is.schema)
}

/** How a value is written, with the defaults spelt out (OpenAPI 3.1.1, section 4.8.12.2). */
function serialisation({ in: where, style: own, explode, allowReserved = false, content = null }: Parameter): Node {
  const style = own ?? (where === 'query' ? 'form' : 'simple')
  return { style, explode: explode ?? style === 'form', allowReserved, content }
}

export function compareBodies(comparison: Comparison, place: Place, before: unknown, after: unknown): void {
  if (!before && !after) return
  const at = below(place, 'the body of {operation}', 'requestBody')
  const [was, is] = [resolve(comparison.before, before).node, resolve(comparison.after, after).node]
  if (!after) return note(comparison, at, 'breaking', 'is refused', why.refused)
  if (!before && is.required) return note(comparison, place, 'breaking', 'requires a body', why.refused)
  if (!before) return note(comparison, place, 'added', 'takes a body')
  if (!was.required && is.required) note(comparison, at, 'breaking', 'is required', why.refused)
  if (was.required && !is.required) note(comparison, at, 'added', 'may be left out')
  compareBytes(comparison, at, Number(was['x-body-bytes-max'] ?? unsaidBytesMax), is['x-body-bytes-max'])
  compareKeywords(comparison, at, 'body', was, is)
  compareContent(comparison, at, 'request', (was.content ?? {}) as Node, (is.content ?? {}) as Node)
}

/** The service has a limit of its own for a body that states none, which a document must not depend on. */
function compareBytes(comparison: Comparison, place: Place, was: number, is: unknown): void {
  if (typeof is !== 'number')
    return note(comparison, place, 'breaking', 'does not say how large it may be (`x-body-bytes-max`)', why.refused)
  const smaller = is < was
  const size = `may have ${is} bytes instead of ${was}`
  if (is !== was) note(comparison, place, smaller ? 'breaking' : 'added', size, smaller ? why.refused : why.nobody)
}
