/** Turns changes into sentences; the same change of several operations or responses becomes one sentence. */
import { type Document, listOperations } from '../document.ts'
import type { Change, Kind } from './place.ts'

export interface Sentence {
  kind: Kind
  text: string
  reason: string
  pointer: string
  /** Affected operations; empty if the change concerns the whole document. */
  operations: string[]
}

/** Keeps the order of the changes. "Every" refers to the operations and responses of the released document. */
export function toSentences(changes: readonly Change[], released: Document): Sentence[] {
  const groups = Map.groupBy(changes, ({ kind, subject, predicate, reason }) =>
    JSON.stringify([kind, subject, predicate, reason]),
  )
  const statuses = new Map(
    listOperations(released).map(({ operation }) => [operation.operationId, Object.keys(operation.responses)]),
  )
  return [...groups.values()].flatMap((group) => describeGroup(group, statuses))
}

/** The statuses of each operation. */
type Statuses = Map<string, string[]>

function describeGroup(group: Change[], statuses: Statuses): Sentence[] {
  const [{ kind, subject, predicate, reason, pointer }] = group as [Change]
  const operations = [...new Set(group.map((it) => it.operation).filter((it) => it !== ''))]
  const toSentence = (place: string, affected: string[]): Sentence => {
    const text = `${place.charAt(0).toUpperCase()}${place.slice(1)} ${predicate}.`
    return { kind, text, reason, pointer, operations: affected }
  }
  if (!subject.includes('{response}')) {
    return [toSentence(subject.replace('{operation}', describeOperations(operations, statuses)), operations)]
  }
  const describeResponses = (operation: string): string => {
    const affected = new Set(group.filter((it) => it.operation === operation).map(({ status }) => status))
    const isEvery = affected.size > 1 && statuses.get(operation)?.every((status) => affected.has(status))
    return isEvery ? 'every response' : `response ${formatList([...affected], 'or')}`
  }
  return [...Map.groupBy(operations, describeResponses)].map(([responses, affected]) =>
    toSentence(subject.replace('{response}', `${responses} of ${describeOperations(affected, statuses)}`), affected),
  )
}

function describeOperations(operations: string[], statuses: Statuses): string {
  if (operations.length > 1 && [...statuses.keys()].every((it) => operations.includes(it))) return 'every operation'
  const names = operations.map((it) => `\`${it}\``)
  return `${operations.length > 1 ? 'each of ' : ''}${formatList(names, 'and')}`
}

export function formatList(items: string[], word: 'and' | 'or'): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}` : (items[0] ?? '')
}
