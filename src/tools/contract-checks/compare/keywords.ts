/** Keywords that a comparison does not know: a change of one may mean anything, and so it breaks until it is judged. */
import {
  below,
  type Comparison,
  compareWords,
  expanded,
  type Node,
  names,
  note,
  type Place,
  same,
  why,
} from './change.ts'
import { bounds } from './constraints.ts'

/** For people, and told by `compareWords` or by nobody. */
const words = ['description', 'summary', 'title', 'deprecated', 'example', 'examples', 'externalDocs', '$comment']
const notes = ['x-decision', 'x-decision-reason']

/** What the comparison of each kind of object looks at. */
const known = {
  document: ['openapi', 'info', 'servers', 'tags', 'paths', 'components', 'security', ...words],
  path: ['parameters', 'get', 'put', 'post', 'delete', 'patch', ...words],
  operation: ['operationId', 'tags', 'security', 'parameters', 'requestBody', 'responses', 'x-idempotent', ...words],
  parameter: ['name', 'in', 'required', 'style', 'explode', 'allowReserved', 'content', 'schema', ...words],
  body: ['required', 'content', 'x-body-bytes-max', ...words],
  answer: ['headers', 'content', 'links', ...words],
  header: ['required', 'style', 'explode', 'schema', ...words],
  content: ['schema', ...words],
  schema: [
    ...['type', 'const', 'enum', 'default', 'oneOf', 'anyOf', 'discriminator', 'readOnly', 'writeOnly'],
    ...['properties', 'required', 'additionalProperties', 'items', 'contentSchema'],
    ...bounds,
    ...words,
  ],
} as const

/** What is said for people, and what is said with keywords that nothing here looks at. */
export function compareKeywords(
  comparison: Comparison,
  place: Place,
  kind: keyof typeof known,
  was: Node,
  is: Node,
): void {
  if (kind !== 'document' && kind !== 'path') compareWords(comparison, place, was, is)
  const seen: readonly string[] = [...known[kind], ...notes]
  for (const keyword of names(was, is)) {
    if (seen.includes(keyword) || (kind === 'document' && keyword.startsWith('x-'))) continue
    if (same(expanded(comparison.before, was[keyword]), expanded(comparison.after, is[keyword]))) continue
    note(comparison, below(place, place.subject, keyword), 'breaking', `has another \`${keyword}\``, why.unjudged)
  }
}
