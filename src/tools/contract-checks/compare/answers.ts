/** Compares what an operation may answer: statuses, headers, media types. */
import { below, type Comparison, type Direction, type Node, names, note, type Place, resolve, why } from './change.ts'
import { compareKeywords } from './keywords.ts'
import { compareSchemas } from './schemas.ts'

export function compareAnswers(comparison: Comparison, place: Place, before: Node, after: Node): void {
  for (const status of names(before, after)) {
    const error = /^[45]/.test(status)
    const at = { ...below(place, '{answer}', 'responses', status), status }
    if (!(status in after)) {
      const what = `does not answer ${status} any more`
      note(comparison, { ...at, subject: place.subject }, error ? 'changed' : 'breaking', what, error ? '' : why.missed)
      continue
    }
    const is = resolve(comparison.after, after[status]).node
    if (!(status in before)) {
      // A client understands the class of a status that it does not know (RFC 9110, section 15).
      const what = `may answer ${status} (${inPassing(String(is.description ?? ''))})`
      const reason = error ? why.nobody : why.surprised
      note(comparison, { ...at, subject: place.subject }, error ? 'added' : 'breaking', what, reason)
      continue
    }
    const was = resolve(comparison.before, before[status]).node
    compareKeywords(comparison, at, 'answer', was, is)
    compareHeaders(comparison, at, (was.headers ?? {}) as Node, (is.headers ?? {}) as Node)
    compareContent(comparison, at, 'answer', (was.content ?? {}) as Node, (is.content ?? {}) as Node)
  }
}

/** A description's first sentence, as part of another. */
function inPassing(description: string): string {
  const [sentence = ''] = description.trim().split(/\.(?:\s|$)/)
  return sentence.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase()).replaceAll(/\s+/g, ' ')
}

/** Headers are the same in any case: those of before, named as after has them. */
function namedAs(after: Node, before: Node): Node {
  const nameOf = (name: string) => Object.keys(after).find((it) => it.toLowerCase() === name.toLowerCase()) ?? name
  return Object.fromEntries(Object.entries(before).map(([name, header]) => [nameOf(name), header]))
}

function compareHeaders(comparison: Comparison, place: Place, released: Node, after: Node): void {
  const before = namedAs(after, released)
  for (const name of names(before, after)) {
    const at = below(place, `header \`${name}\` of ${place.subject}`, 'headers', name)
    const there = { ...at, subject: place.subject }
    if (!(name in after)) {
      note(comparison, there, 'breaking', `does not have the header \`${name}\` any more`, why.missed)
    } else if (!(name in before)) {
      note(comparison, there, 'added', `has the new header \`${name}\``)
    } else {
      const was = resolve(comparison.before, before[name]).node
      const is = resolve(comparison.after, after[name]).node
      compareKeywords(comparison, at, 'header', was, is)
      if (was.required && !is.required) note(comparison, at, 'breaking', 'may be absent', why.missed)
      if (!was.required && is.required) note(comparison, at, 'changed', 'is always there')
      compareSchemas(comparison, at, 'answer', was.schema, is.schema)
    }
  }
}

/** The media types of a body or an answer, and what each holds. */
export function compareContent(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  before: Node,
  after: Node,
): void {
  const request = direction === 'request'
  for (const type of names(before, after)) {
    const at = below(place, place.subject, 'content', type)
    if (!(type in after)) {
      const what = request ? `may not be \`${type}\` any more` : `is never \`${type}\` any more`
      note(comparison, at, 'breaking', what, request ? why.refused : why.missed)
    } else if (!(type in before)) {
      note(comparison, at, 'added', `may be \`${type}\``)
    } else {
      const [was, is] = [before[type] as Node, after[type] as Node]
      compareKeywords(comparison, { ...at, subject: '{operation}' }, 'content', was, is)
      compareSchemas(comparison, below(at, place.subject, 'schema'), direction, was.schema, is.schema)
    }
  }
}
