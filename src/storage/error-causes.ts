/**
 * Errors with what caused them. Libraries wrap the error that says what happened: `fetch failed` has the refused
 * connection as its `cause`, and a host with several addresses an `AggregateError` without a message.
 */

const causesMax = 5
/** Of an `AggregateError`, such as the addresses of a host. */
const errorsMax = 5

/** The error, and what caused it, outermost first. Getters that throw end the list. */
export function withCauses(error: unknown): unknown[] {
  const chain = [error]
  // The list grows while it is read.
  for (const each of chain) {
    for (const cause of causesOf(each)) {
      if (chain.length > causesMax) return chain
      if (!chain.includes(cause)) chain.push(cause)
    }
  }
  return chain
}

function causesOf(error: unknown): unknown[] {
  try {
    if (!(error instanceof Error)) return []
    const { cause } = error
    const errors = error instanceof AggregateError ? error.errors.slice(0, errorsMax) : []
    return [...errors, ...(cause === undefined || cause === null ? [] : [cause])]
  } catch {
    return []
  }
}

/**
 * What happened, in one line: the message of the error, then those of its causes, such as
 * `fetch failed: connect ECONNREFUSED 127.0.0.1:8200`. A text that stands in an earlier one is not repeated.
 */
export function describeCauses(error: unknown): string {
  const texts: string[] = []
  for (const each of withCauses(error)) {
    const text = textOf(each)
    if (text !== '' && !texts.some((earlier) => earlier.includes(text))) texts.push(text)
  }
  return texts.join(': ') || 'unknown error'
}

/** Some errors have a code only. An `AggregateError` without a message is described by its errors. */
function textOf(error: unknown): string {
  try {
    const { message, name, code, errors } = Object(error) as Partial<NodeJS.ErrnoException & AggregateError>
    if (typeof message !== 'string') return oneLine(String(error))
    if (message !== '') return oneLine(message)
    return errors && errors.length > 0 ? '' : String(code ?? name)
  } catch {
    return ''
  }
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}
