/** Compares the current document with the released one, and lists what changed for callers. */
import {
  type Document,
  type DocumentOperation,
  listOperations,
  type ParameterObject,
  type SecurityRequirement,
} from '../document.ts'
import { bodyBytesMax } from '../served-operations.ts'
import { typeOf } from './alternatives.ts'
import { compareDocumentation, compareKeywords } from './keywords.ts'
import { type Change, type Direction, isSame, isSameExpanded, memberNames, type Node, Place, reasons } from './place.ts'
import { compareSchemas } from './schemas.ts'

export function compareDocuments(before: Document, after: Document): Change[] {
  const changes: Change[] = []
  const root = new Place(before, after, changes, { subject: 'the document', pointer: '', operation: '', status: '' })
  compareKeywords(root, 'document', before as unknown as Node, after as unknown as Node)
  compareOperations(root)
  compareWebhooks(root)
  compareSecuritySchemes(root)
  const described = ({ info, tags }: Document) => ({ info: { ...info, version: '' }, tags })
  if (!isSame(described(before), described(after))) root.note('changed', 'has a new description')
  if (!isSame(before.servers, after.servers)) root.note('changed', 'has other default addresses')
  const withoutVersion = (document: Document) => ({ ...document, info: { ...document.info, version: '' } })
  if (changes.length === 0 && !isSame(withoutVersion(before), withoutVersion(after))) {
    root.note('changed', 'has changes that do not concern callers')
  }
  return changes
}

/** Identifies an operation by method and path, ignoring the names of path parameters. */
function addressOf({ method, path }: DocumentOperation): string {
  return `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`
}

function compareOperations(root: Place): void {
  const placeOf = ({ path, method, operation }: DocumentOperation) =>
    root.below('{operation}', 'paths', path, method).with({ operation: operation.operationId })
  const released = new Map(listOperations(root.before).map((it) => [addressOf(it), it]))
  for (const is of listOperations(root.after)) {
    const was = released.get(addressOf(is))
    released.delete(addressOf(is))
    if (was) compareOperation(placeOf(is), was, is)
    else placeOf(is).note('added', `is new: \`${is.method.toUpperCase()} ${is.path}\``)
  }
  for (const removed of released.values()) placeOf(removed).note('breaking', 'was removed', reasons.removed)
}

function compareOperation(place: Place, was: DocumentOperation, is: DocumentOperation): void {
  const [before, after] = [was.operation, is.operation]
  if (before.operationId !== after.operationId) {
    place.note('breaking', `was renamed from \`${before.operationId}\``, reasons.renamed)
  }
  compareKeywords(place, 'path', place.before.paths[was.path] ?? {}, place.after.paths[is.path] ?? {})
  compareKeywords(place, 'operation', before as unknown as Node, after as unknown as Node)
  const [wasIdempotent, isIdempotent] = [before['x-idempotent'] === true, after['x-idempotent'] === true]
  if (wasIdempotent && !isIdempotent)
    place.note('breaking', 'is no longer idempotent (`x-idempotent`)', reasons.repeated)
  if (!wasIdempotent && isIdempotent) place.note('added', 'is idempotent (`x-idempotent`)')
  compareSecurity(place, before.security, after.security)
  compareParameters(place, was, is)
  compareBodies(place, before.requestBody, after.requestBody)
  const newHeaders = is.parameters.filter(
    (it) => it.in === 'header' && !was.parameters.some(({ name }) => name === it.name),
  )
  const names = newHeaders.map(({ name }) => name)
  compareResponses(place, before.responses as unknown as Node, after.responses as unknown as Node, names)
}

/** The service sends their bodies, so that these are to receivers what responses are to callers. */
function compareWebhooks(root: Place): void {
  const [before, after] = [root.before, root.after].map(({ webhooks = {} }) => webhooks as Node) as [Node, Node]
  for (const name of memberNames(before, after)) {
    const at = root.below(`the webhook \`${name}\``, 'webhooks', name, 'post').with({ operation: name })
    const [was, is] = [before[name], after[name]].map((item) => (item as { post?: Node } | undefined)?.post)
    if (!was) at.note('added', 'is new')
    else if (!is) at.note('breaking', 'was removed', reasons.missing)
    else {
      compareKeywords(at, 'operation', was, is)
      if (!isSameExpanded([root.before, root.after], was.parameters, is.parameters)) {
        at.note('breaking', 'has different headers', reasons.unjudged)
      }
      const [wasBody, isBody] = at.resolve(was.requestBody, is.requestBody)
      const body = at.below(`the body of the webhook \`${name}\``, 'requestBody')
      compareContent(body, 'response', (wasBody.content ?? {}) as Node, (isBody.content ?? {}) as Node)
    }
  }
}

/** Schemes that were added or removed are reported with the operations that use them. */
function compareSecuritySchemes(root: Place): void {
  const [before = {}, after = {}] = [root.before, root.after].map(({ components }) => components.securitySchemes)
  for (const name of memberNames(before, after)) {
    const at = root.below(`the security scheme \`${name}\``, 'components', 'securitySchemes', name)
    const [was, is] = [before[name], after[name]]
    if (!was || !is) continue
    compareDocumentation(at, was, is)
    for (const keyword of ['type', 'scheme', 'in', 'name', 'flows', 'openIdConnectUrl']) {
      if (isSame(was[keyword], is[keyword])) continue
      at.note('breaking', `has a different \`${keyword}\``, reasons.rejected)
    }
  }
}

// Compares what an operation accepts: parameters, the body, and the scopes that an API key needs.

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

function compareSecurity(
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

function compareParameters(place: Place, released: DocumentOperation, current: DocumentOperation): void {
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

function compareBodies(place: Place, before: unknown, after: unknown): void {
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

// Compares the responses of an operation: statuses, headers and media types.

/** The request header without which a service does not respond with the status (RFC 9110, sections 14.2 and 13.2.2). */
const requestHeaders: Record<string, string> = { 206: 'Range', 304: 'If-None-Match' }

/** @param newHeaders request headers that the operation did not have before. */
function compareResponses(place: Place, before: Node, after: Node, newHeaders: readonly string[]): void {
  for (const status of memberNames(before, after)) {
    const isError = /^[45]/.test(status)
    const at = place.below('{response}', 'responses', status).with({ status })
    const ofOperation = at.with({ subject: place.subject })
    const [was, is] = place.resolve(before[status], after[status])
    if (!(status in after)) {
      const predicate = `no longer responds with ${status}`
      if (isError) ofOperation.note('changed', predicate)
      else ofOperation.note('breaking', predicate, reasons.missing)
    } else if (!(status in before)) {
      const predicate = `can respond with ${status} (${toClause(String(is.description ?? ''))})`
      // Clients treat an unknown status by its class (RFC 9110, section 15).
      if (isError || newHeaders.includes(requestHeaders[status] ?? '')) ofOperation.note('added', predicate)
      else ofOperation.note('breaking', predicate, reasons.unknown)
    } else {
      compareKeywords(at, 'response', was, is)
      compareHeaders(at, (was.headers ?? {}) as Node, (is.headers ?? {}) as Node)
      compareContent(at, 'response', (was.content ?? {}) as Node, (is.content ?? {}) as Node)
    }
  }
}

/** The first sentence of a description, as part of another sentence. */
function toClause(description: string): string {
  const [sentence = ''] = description.trim().split(/\.(?:\s|$)/)
  return sentence.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase()).replaceAll(/\s+/g, ' ')
}

/** Header names are case-insensitive: renames those of `before` to the case used in `after`. */
function alignHeaderNames(before: Node, after: Node): Node {
  const align = (name: string) => Object.keys(after).find((it) => it.toLowerCase() === name.toLowerCase()) ?? name
  return Object.fromEntries(Object.entries(before).map(([name, header]) => [align(name), header]))
}

function compareHeaders(place: Place, released: Node, after: Node): void {
  const before = alignHeaderNames(released, after)
  for (const name of memberNames(before, after)) {
    const at = place.below(`header \`${name}\` of ${place.subject}`, 'headers', name)
    const ofResponse = at.with({ subject: place.subject })
    const [was, is] = place.resolve(before[name], after[name])
    if (!(name in after)) ofResponse.note('breaking', `no longer has the header \`${name}\``, reasons.missing)
    else if (!(name in before)) ofResponse.note('added', `has the new header \`${name}\``)
    else {
      compareKeywords(at, 'header', was, is)
      if (was.required && !is.required) at.note('breaking', 'is not always present', reasons.missing)
      if (!was.required && is.required) at.note('changed', 'is always present')
      compareSchemas(at, 'response', was.schema, is.schema)
    }
  }
}

/** Compares the media types of a body or a response, and their schemas. */
function compareContent(place: Place, direction: Direction, before: Node, after: Node): void {
  for (const type of memberNames(before, after)) {
    const at = place.below(place.subject, 'content', type)
    if (!(type in after)) {
      const reason = direction === 'request' ? reasons.rejected : reasons.missing
      at.note('breaking', `can no longer be \`${type}\``, reason)
    } else if (!(type in before)) {
      at.note('added', `can be \`${type}\``)
    } else {
      const [was, is] = [before[type] as Node, after[type] as Node]
      compareKeywords(at.with({ subject: '{operation}' }), 'content', was, is)
      const described = at.below(place.subject, 'schema')
      if (isBytes(place.resolve(was.schema, is.schema)[0])) describeBytes(described, type, is.schema)
      else compareSchemas(described, direction, was.schema, is.schema)
    }
  }
}

/** OpenAPI 3.0's description of bytes; it limits them no more than the empty schema, which replaces it in 3.1. */
function isBytes(schema: Node): boolean {
  return schema.type === 'string' && schema.format === 'binary'
}

function describeBytes(place: Place, mediaType: string, schema: unknown): void {
  const [, is] = place.resolve({}, schema)
  if (!isBytes(is)) place.note('changed', `is no longer documented as bytes when it is \`${mediaType}\``)
}
