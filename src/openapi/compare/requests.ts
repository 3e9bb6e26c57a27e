/** Compares what an operation accepts: parameters, the body, and the scopes that an API key needs. */
import type { Document, DocumentOperation, ParameterObject, SecurityRequirement } from '../document.ts'
import { bodyBytesMax } from '../served-operations.ts'
import { typeOf } from './alternatives.ts'
import { compareKeywords } from './keywords.ts'
import { isSame, type Node, type Place, reasons } from './place.ts'
import { compareContent } from './responses.ts'
import { compareSchemas } from './schemas.ts'

/** An empty list means that no requirement applies (OpenAPI 3.1.1, section 4.8.10). */
function requirementsOf(document: Document, own: SecurityRequirement[] | undefined): SecurityRequirement[] {
  const requirements = own ?? document.security ?? []
  return requirements.length > 0 ? requirements : [{}]
}

/** Callers do not see the names of schemes: uses the current name of a scheme that was only renamed. */
function withCurrentSchemeNames({ before, after }: Place, requirements: SecurityRequirement[]): SecurityRequirement[] {
  const [was, is] = [before, after].map(({ components }) => (components.securitySchemes ?? {}) as Record<string, Node>)
  const withoutDescription = (scheme?: Node) => ({ ...scheme, description: '' })
  const rename = (name: string) => {
    if (!was?.[name] || !is || name in is) return name
    const scheme = withoutDescription(was[name])
    return Object.keys(is).find((it) => isSame(withoutDescription(is[it]), scheme)) ?? name
  }
  return requirements.map((requirement) =>
    Object.fromEntries(Object.entries(requirement).map(([name, scopes]) => [rename(name), scopes])),
  )
}

export function compareSecurity(
  place: Place,
  released: SecurityRequirement[] | undefined,
  current: SecurityRequirement[] | undefined,
): void {
  const before = withCurrentSchemeNames(place, requirementsOf(place.before, released))
  const after = requirementsOf(place.after, current)
  const at = place.below(place.subject, 'security')
  for (const requirement of before) {
    if (after.some((it) => satisfies(requirement, it))) continue
    const missing = after[0] ? additionalScopes(after[0], requirement) : []
    if (missing.length) at.note('breaking', `also requires the scope ${formatScopes(missing)}`, reasons.forbidden)
    else at.note('breaking', `no longer accepts ${describeRequirement(requirement)}`, reasons.rejected)
  }
  for (const requirement of after) {
    if (before.some((it) => satisfies(requirement, it))) continue
    const dropped = before.flatMap((it) => additionalScopes(it, requirement))
    if (dropped.length) at.note('added', `no longer requires the scope ${formatScopes(dropped)}`)
    else at.note('added', `accepts ${describeRequirement(requirement)}`)
  }
}

function formatScopes(scopes: string[]): string {
  return scopes.map((scope) => `\`${scope}\``).join(', ')
}

function describeRequirement(requirement: SecurityRequirement): string {
  const schemes = Object.keys(requirement).map((name) => `\`${name}\``)
  return schemes.join(' with ') || 'calls without a key'
}

/** Whether a caller that meets `offered` also meets `required`. */
function satisfies(offered: SecurityRequirement, required: SecurityRequirement): boolean {
  return Object.entries(required).every(
    ([scheme, scopes]) => scheme in offered && scopes.every((it) => offered[scheme]?.includes(it)),
  )
}

/** The scopes of `one` that `other` lacks, of schemes that both have. */
function additionalScopes(one: SecurityRequirement, other: SecurityRequirement): string[] {
  return Object.entries(one).flatMap(([scheme, scopes]) =>
    scopes.filter((it) => scheme in other && !other[scheme]?.includes(it)),
  )
}

type Parameter = ParameterObject & Node

export function compareParameters(place: Place, released: DocumentOperation, current: DocumentOperation): void {
  const removed = new Set(released.parameters as Parameter[])
  for (const is of current.parameters as Parameter[]) {
    const was = [...removed].find((it) => isCounterpart(it, is, released.path, current.path))
    if (was) removed.delete(was)
    const described = `${describeLocation(is)} \`${is.name}\``
    if (was) compareParameter(place.below(`${described} of {operation}`, 'parameters', is.name), was, is)
    else if (is.required) place.note('breaking', `requires the new ${described}`, reasons.rejected)
    else place.note('added', `accepts the new ${described}`)
  }
  for (const parameter of removed) {
    const reason = parameter.in === 'header' ? reasons.ignored : reasons.rejected
    place.note('breaking', `no longer accepts the ${describeLocation(parameter)} \`${parameter.name}\``, reason)
  }
}

function describeLocation({ in: location }: Parameter): string {
  return location === 'header' ? 'header' : `${location} parameter`
}

/** Header names are case-insensitive; path parameters correspond by their position in the path. */
function isCounterpart(was: Parameter, is: Parameter, pathBefore: string, pathAfter: string): boolean {
  if (was.in !== is.in) return false
  if (is.in === 'path') return positionInPath(was.name, pathBefore) === positionInPath(is.name, pathAfter)
  return is.in === 'header' ? was.name.toLowerCase() === is.name.toLowerCase() : was.name === is.name
}

function positionInPath(name: string, path: string): number {
  return path.split('/').findIndex((segment) => segment.includes(`{${name}}`))
}

function compareParameter(place: Place, was: Parameter, is: Parameter): void {
  if (was.name !== is.name) place.note('breaking', `was renamed from \`${was.name}\``, reasons.renamed)
  if (!was.required && is.required) place.note('breaking', 'is now required', reasons.rejected)
  if (was.required && !is.required) place.note('added', 'is now optional')
  const [before, after] = [readSerialisation(was), readSerialisation(is)]
  for (const [keyword, value] of Object.entries(after)) {
    if (isSame(before[keyword], value)) continue
    place.note('breaking', `has a different \`${keyword}\``, reasons.rejected)
  }
  const scopes = is['x-required-scopes']?.filter((it) => !was['x-required-scopes']?.includes(it)) ?? []
  if (scopes.length) place.note('breaking', `now requires the scope ${formatScopes(scopes)}`, reasons.forbidden)
  compareKeywords(place, 'parameter', was, is)
  const at = place.below(place.subject, 'schema')
  const items = itemsInsteadOf(place, was, is)
  if (items === undefined) return compareSchemas(at, 'request', was.schema, is.schema)
  place.note('added', 'can be given several times')
  compareSchemas(at.below(at.subject, 'items'), 'request', was.schema, items)
}

/** A list of one value is serialised in the query as that value was: clients that send one see no difference. */
function itemsInsteadOf(place: Place, was: Parameter, is: Parameter): unknown {
  const [before, after] = place.resolve(was.schema, is.schema)
  const isList = is.in === 'query' && typeOf(before) !== 'array' && typeOf(after) === 'array'
  return isList && readSerialisation(is).explode && Number(after.minItems ?? 0) <= 1 ? after.items : undefined
}

/** How a value is serialised, with explicit defaults (OpenAPI 3.1.1, section 4.8.12.2). */
function readSerialisation(parameter: Parameter): Node {
  const { in: location, explode, allowReserved = false, content = null } = parameter
  const style = parameter.style ?? (location === 'query' ? 'form' : 'simple')
  return { style, explode: explode ?? style === 'form', allowReserved, content }
}

export function compareBodies(place: Place, before: unknown, after: unknown): void {
  if (!before && !after) return
  const at = place.below('the body of {operation}', 'requestBody')
  const [was, is] = place.resolve(before, after)
  if (!after) return at.note('breaking', 'is no longer accepted', reasons.rejected)
  if (!before && is.required) return place.note('breaking', 'requires a body', reasons.rejected)
  if (!before) return place.note('added', 'accepts a body')
  if (!was.required && is.required) at.note('breaking', 'is now required', reasons.rejected)
  if (was.required && !is.required) at.note('added', 'is now optional')
  compareBodySize(at, Number(was['x-body-bytes-max'] ?? bodyBytesMax), is['x-body-bytes-max'])
  compareKeywords(at, 'body', was, is)
  compareContent(at, 'request', (was.content ?? {}) as Node, (is.content ?? {}) as Node)
}

/** The document must declare the size: it must not depend on the service's default. */
function compareBodySize(place: Place, was: number, is: unknown): void {
  if (typeof is !== 'number') {
    return place.note('breaking', 'does not declare its maximum size (`x-body-bytes-max`)', reasons.rejected)
  }
  const predicate = `is limited to ${is} bytes instead of ${was}`
  if (is < was) place.note('breaking', predicate, reasons.rejected)
  if (is > was) place.note('added', predicate)
}
