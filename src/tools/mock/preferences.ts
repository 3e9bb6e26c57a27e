/** Chooses one of an operation's documented responses: the default one, or the one that `Prefer` asks for. */
import { parsePreferences, preferredWait } from '../../contract/prefer.ts'
import { invalidRequest, Problem } from '../../contract/problem.ts'
import { waitSecondsMax } from '../../domain/run-api/queue-operations.ts'
import type { Operation } from '../../openapi/served-operations.ts'

export interface Choice {
  code: number
  exampleKey?: string
  /** Whether to make up values from the schema. */
  dynamic: boolean
  /** The same seed makes up the same values. */
  seed?: string
}

const selecting = ['code', 'example', 'dynamic']

/** Whether the caller selects a response, or selects one by this preference. */
export function isChosen(prefer: string | undefined, by?: string): boolean {
  const names = by === undefined ? selecting : [by]
  return parsePreferences(prefer).some(([name]) => names.includes(name))
}

/**
 * @param examples names of the documented examples, by status.
 * @param startsAfterSeconds how long a queued run is delayed.
 * @throws {Problem} if the document lacks the preferred status or example.
 */
export function chooseResponse(
  operation: Operation,
  examples: Map<number, string[]>,
  prefer: string | undefined,
  startsAfterSeconds = 0,
): Choice {
  // The first of several preferences of the same name counts.
  const preferences = new Map(parsePreferences(prefer).reverse())
  const [code, example, dynamic] = selecting.map((name) => preferences.get(name))
  const seed = preferences.get('seed')
  const statuses = [...operation.responses.keys()]
  const isAwaited = (preferredWait(prefer, waitSecondsMax) ?? 0) > startsAfterSeconds
  // The lowest success, like Prism; but 202 for a run that is queued, unless the caller waits, and 201 if a call creates.
  const usual = isAwaited ? [201] : [202, 201]
  const lowest = Math.min(...statuses.filter((status) => status < 300))
  const fallback = usual.find((status) => statuses.includes(status)) ?? lowest
  if (code !== undefined && !statuses.map(String).includes(code)) throw unknownPreference('code', code, statuses)
  if (dynamic !== undefined && !['true', 'false'].includes(dynamic))
    throw unknownPreference('dynamic', dynamic, ['true', 'false'])
  const choice = { code: Number(code ?? fallback), dynamic: dynamic === 'true', ...(seed !== undefined && { seed }) }
  if (example === undefined) return choice
  const searched = code === undefined ? [fallback, ...statuses] : [choice.code]
  const status = searched.find((each) => examples.get(each)?.includes(example))
  if (status !== undefined) return { code: status, exampleKey: example, dynamic: false }
  throw unknownPreference('example', example, new Set(searched.flatMap((each) => examples.get(each) ?? [])))
}

function unknownPreference(name: string, value: string, known: Iterable<unknown>): Problem {
  const list = [...known].join(', ') || 'none'
  const detail = `asks for ${name}=${value}, which the document does not have; it has ${list}`
  return new Problem(invalidRequest([{ header: 'Prefer', detail }]).problem)
}
