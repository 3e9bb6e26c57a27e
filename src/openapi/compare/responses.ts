/** Compares the responses of an operation: statuses, headers and media types. */
import { compareKeywords } from './keywords.ts'
import { type Direction, memberNames, type Node, type Place, reasons } from './place.ts'
import { compareSchemas } from './schemas.ts'

/** The request header without which a service does not respond with the status (RFC 9110, sections 14.2 and 13.2.2). */
const requestHeaders: Record<string, string> = { 206: 'Range', 304: 'If-None-Match' }

/** @param newHeaders request headers that the operation did not have before. */
export function compareResponses(place: Place, before: Node, after: Node, newHeaders: readonly string[]): void {
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
export function compareContent(place: Place, direction: Direction, before: Node, after: Node): void {
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
