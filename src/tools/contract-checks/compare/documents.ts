/** Compares the current document with the released one: what has changed for those who call the service. */
import { type Document, type DocumentOperation, listOperations } from '../../../openapi/document.ts'
import { compareAnswers } from './answers.ts'
import {
  below,
  type Change,
  type Comparison,
  compareWords,
  type Node,
  names,
  note,
  type Place,
  same,
  why,
} from './change.ts'
import { compareKeywords } from './keywords.ts'
import { compareBodies, compareParameters, compareSecurity } from './requests.ts'

const root: Place = { subject: 'the document', pointer: '', operation: '', status: '' }

export function compareDocuments(before: Document, after: Document): Change[] {
  const comparison: Comparison = { before, after, changes: [] }
  compareKeywords(comparison, root, 'document', before as unknown as Node, after as unknown as Node)
  compareOperations(comparison)
  compareSchemes(comparison)
  compareProse(comparison)
  const { changes } = comparison
  if (changes.length === 0 && !same(unversioned(before), unversioned(after))) {
    note(comparison, root, 'changed', 'differs in what says nothing to its callers')
  }
  return changes
}

function unversioned(document: Document): unknown {
  return { ...document, info: { ...document.info, version: '' } }
}

/** An operation is what its method and path are, whatever its path parameters are called. */
function addressOf({ method, path }: DocumentOperation): string {
  return `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`
}

function compareOperations(comparison: Comparison): void {
  const released = new Map(listOperations(comparison.before).map((it) => [addressOf(it), it]))
  for (const is of listOperations(comparison.after)) {
    const { operationId } = is.operation
    const at = { ...below(root, '{operation}', 'paths', is.path, is.method), operation: operationId }
    const was = released.get(addressOf(is))
    released.delete(addressOf(is))
    if (was) compareOperation(comparison, at, was, is)
    else note(comparison, at, 'added', `is new: \`${is.method.toUpperCase()} ${is.path}\``)
  }
  for (const { path, method, operation } of released.values()) {
    const at = { ...below(root, '{operation}', 'paths', path, method), operation: operation.operationId }
    note(comparison, at, 'breaking', 'is gone', why.unanswered)
  }
}

function compareOperation(comparison: Comparison, at: Place, was: DocumentOperation, is: DocumentOperation): void {
  const [before, after] = [was.operation, is.operation]
  if (before.operationId !== after.operationId) {
    note(comparison, at, 'breaking', `was called \`${before.operationId}\``, why.renamed)
  }
  const itemOf = ({ paths }: Document, path: string): Node => paths[path] ?? {}
  compareKeywords(comparison, at, 'path', itemOf(comparison.before, was.path), itemOf(comparison.after, is.path))
  compareKeywords(comparison, at, 'operation', before as unknown as Node, after as unknown as Node)
  compareRepetition(comparison, at, before['x-idempotent'] === true, after['x-idempotent'] === true)
  compareSecurity(comparison, at, before.security, after.security)
  compareParameters(comparison, at, was, is)
  compareBodies(comparison, at, before.requestBody, after.requestBody)
  compareAnswers(comparison, at, before.responses, after.responses)
}

/** Whether clients repeat it by themselves when no answer came. */
function compareRepetition(comparison: Comparison, at: Place, was: boolean, is: boolean): void {
  if (was && !is) note(comparison, at, 'breaking', 'may not be repeated any more (`x-idempotent`)', why.repeated)
  if (!was && is) note(comparison, at, 'added', 'may be repeated (`x-idempotent`)')
}

function compareSchemes(comparison: Comparison): void {
  const schemes = ({ components }: Document) => (components.securitySchemes ?? {}) as Record<string, Node>
  const [before, after] = [schemes(comparison.before), schemes(comparison.after)]
  for (const name of names(before, after)) {
    const at = below(root, `the security scheme \`${name}\``, 'components', 'securitySchemes', name)
    const [was, is] = [before[name], after[name]]
    // That an operation takes another scheme, or one less, is told there.
    if (!was || !is) continue
    compareWords(comparison, at, was, is)
    for (const keyword of ['type', 'scheme', 'in', 'name', 'flows', 'openIdConnectUrl']) {
      if (!same(was[keyword], is[keyword])) note(comparison, at, 'breaking', `has another \`${keyword}\``, why.refused)
    }
  }
}

function compareProse({ before, after, ...rest }: Comparison): void {
  const comparison = { before, after, ...rest }
  const told = (document: Document) => {
    const { info, tags } = document as Document & { tags?: unknown }
    return { info: { ...info, version: '' }, tags }
  }
  if (!same(told(before), told(after))) note(comparison, root, 'changed', 'is described in other words')
  const addresses = (document: Document) => (document as Document & { servers?: unknown }).servers
  if (!same(addresses(before), addresses(after))) note(comparison, root, 'changed', 'names other default addresses')
}
