/** Compares the current document with the released one, and lists what changed for callers. */
import { type Document, type DocumentOperation, listOperations } from '../document.ts'
import { compareDocumentation, compareKeywords } from './keywords.ts'
import { type Change, expand, isSame, memberNames, type Node, Place, reasons } from './place.ts'
import { compareBodies, compareParameters, compareSecurity } from './requests.ts'
import { compareContent, compareResponses } from './responses.ts'

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
      if (!isSame(expand(root.before, was.parameters), expand(root.after, is.parameters))) {
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
