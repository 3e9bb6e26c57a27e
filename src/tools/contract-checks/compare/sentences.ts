/** Says changes in words: what was found in several operations or answers in the same way is said once. */
import { type Document, listOperations } from '../../../openapi/document.ts'
import type { Change, Kind } from './change.ts'

export interface Sentence {
  kind: Kind
  text: string
  why: string
  pointer: string
  /** Those that it concerns; none when it concerns the document. */
  operations: string[]
}

/** In the order in which they were found. "Every" is said of what the released document has. */
export function sentences(changes: readonly Change[], released: Document): Sentence[] {
  const groups = Map.groupBy(changes, ({ kind, subject, what, why }) => JSON.stringify([kind, subject, what, why]))
  return [...groups.values()].flatMap((group) => said(group, statusesOf(released)))
}

type Statuses = Map<string, string[]>

function statusesOf(document: Document): Statuses {
  return new Map(
    listOperations(document).map(({ operation }) => [operation.operationId, Object.keys(operation.responses)]),
  )
}

function said(group: Change[], statuses: Statuses): Sentence[] {
  const [first] = group as [Change]
  const operations = [...new Set(group.map((it) => it.operation).filter((it) => it !== ''))]
  const { kind, subject, what, why, pointer } = first
  const sentence = (place: string, of: string[]): Sentence => {
    return { kind, text: `${capitalised(place)} ${what}.`, why, pointer, operations: of }
  }
  const fill = (of: string[]) => subject.replace('{operation}', eachOf(of, statuses))
  if (!subject.includes('{answer}')) return [sentence(fill(operations), operations)]
  const answers = new Map(
    operations.map((operation) => {
      const own = new Set(group.filter((it) => it.operation === operation).map(({ status }) => status))
      const every = own.size > 1 && statuses.get(operation)?.every((status) => own.has(status))
      return [operation, every ? 'every answer' : `answer ${listed([...own], 'or')}`]
    }),
  )
  return [...Map.groupBy(operations, (operation) => answers.get(operation) ?? '')].map(([answer, of]) =>
    sentence(subject.replace('{answer}', `${answer} of ${eachOf(of, statuses)}`), of),
  )
}

function eachOf(operations: string[], statuses: Statuses): string {
  if (operations.length > 1 && [...statuses.keys()].every((it) => operations.includes(it))) return 'every operation'
  const list = listed(
    operations.map((it) => `\`${it}\``),
    'and',
  )
  return operations.length > 1 ? `each of ${list}` : list
}

export function listed(items: string[], word: 'and' | 'or'): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}` : (items[0] ?? '')
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
