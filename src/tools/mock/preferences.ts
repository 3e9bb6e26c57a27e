/** Which of an operation's documented answers a request is to get: the usual one, or what its `Prefer` asks for. */

import { parsePreferences, preferredWait } from '../../contract/prefer.ts'
import { invalidRequest, Problem } from '../../contract/problem.ts'
import { waitSecondsMax } from '../../domain/runs/run-operations.ts'
import type { Operation } from '../../openapi/served-operations.ts'

export interface Choice {
  code: number
  exampleKey?: string
  dynamic: boolean
}

/**
 * Throws a Problem for what the document does not have.
 *
 * @param examples names of the documented examples, by status.
 * @param delaySeconds how long what is accepted for later does not begin.
 */
export function choiceOf(
  operation: Operation,
  examples: Map<number, string[]>,
  prefer: string | undefined,
  delaySeconds = 0,
): Choice {
  const preferences = new Map(parsePreferences(prefer).reverse())
  const [code, example, dynamic] = ['code', 'example', 'dynamic'].map((name) => preferences.get(name))
  const usual = usualStatus(operation, (preferredWait(prefer, waitSecondsMax) ?? 0) > delaySeconds)
  const statuses = [...operation.responses.keys()]
  if (code !== undefined && !statuses.map(String).includes(code)) throw unknown('code', code, statuses)
  if (dynamic !== undefined && !['true', 'false'].includes(dynamic))
    throw unknown('dynamic', dynamic, ['true', 'false'])
  const chosen = { code: Number(code ?? usual), dynamic: dynamic === 'true' }
  if (example === undefined) return chosen
  const searched = code === undefined ? [usual, ...statuses] : [chosen.code]
  const having = searched.find((status) => examples.get(status)?.includes(example))
  if (having !== undefined) return { code: having, exampleKey: example, dynamic: false }
  throw unknown('example', example, new Set(searched.flatMap((status) => examples.get(status) ?? [])))
}

/** The lowest success, as Prism takes it; but what is accepted for later is 202, unless the caller waits for it to end. */
function usualStatus({ responses }: Operation, waits: boolean): number {
  if (responses.has(202) && !waits) return 202
  return Math.min(...[...responses.keys()].filter((status) => status < 300))
}

function unknown(name: string, value: string, known: Iterable<unknown>): Problem {
  const listed = [...known].join(', ') || 'none'
  const detail = `asks for ${name}=${value}, which the document does not have; it has ${listed}`
  return new Problem(invalidRequest([{ header: 'Prefer', detail }]).problem)
}
