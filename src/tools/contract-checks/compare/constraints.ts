/** The keywords that bound a value, and whether a change of one narrows or widens what is valid. */
import {
  type Comparison,
  type Direction,
  expanded,
  type Kind,
  type Node,
  note,
  type Place,
  same,
  why,
} from './change.ts'

type Effect = 'narrower' | 'wider' | 'unknown'

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minContains', 'minProperties']
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxContains', 'maxProperties']

/** Those that can only be compared by being there or not. */
const conditions = [
  'pattern',
  'format',
  'multipleOf',
  'uniqueItems',
  'not',
  'allOf',
  'if',
  'then',
  'else',
  'contains',
  'prefixItems',
  'propertyNames',
  'patternProperties',
  'dependentRequired',
  'dependentSchemas',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentEncoding',
  'contentMediaType',
]

/** Every keyword that bounds a value. */
export const bounds = [...lowerBounds, ...upperBounds, ...conditions]

export function compareConstraints(
  comparison: Comparison,
  place: Place,
  direction: Direction,
  before: Node,
  after: Node,
): void {
  for (const keyword of bounds) {
    const was = expanded(comparison.before, boundOf(keyword, before))
    const is = expanded(comparison.after, boundOf(keyword, after))
    if (same(was, is)) continue
    const effect = effectOf(keyword, was, is)
    const [kind, reason] = judge(effect, direction)
    note(comparison, place, kind, sentence(keyword, was, is), reason)
  }
}

/** What a value set that became smaller, larger or other does to callers. */
export function judge(effect: Effect, direction: Direction): [Kind, string] {
  if (direction === 'request') return effect === 'wider' ? ['added', why.nobody] : ['breaking', why.refused]
  return effect === 'narrower' ? ['changed', why.nobody] : ['breaking', why.surprised]
}

/** A bound of 0 on a size says nothing. */
function boundOf(keyword: string, schema: Node): unknown {
  const value = schema[keyword]
  const nothing = value === 0 && ['minLength', 'minItems', 'minProperties'].includes(keyword)
  return nothing || value === false ? undefined : value
}

function effectOf(keyword: string, was: unknown, is: unknown): Effect {
  if (was === undefined) return 'narrower'
  if (is === undefined) return 'wider'
  const rises = Number(is) > Number(was)
  if (lowerBounds.includes(keyword)) return rises ? 'narrower' : 'wider'
  if (upperBounds.includes(keyword)) return rises ? 'wider' : 'narrower'
  return 'unknown'
}

function sentence(keyword: string, was: unknown, is: unknown): string {
  if (typeof (is ?? was) === 'object') return `has another \`${keyword}\``
  const name = /[A-Z]/.test(keyword) ? `\`${keyword}\`` : keyword
  if (is === undefined) return `has no ${name} any more (it was ${shown(was)})`
  return `has the ${name} ${shown(is)}${was === undefined ? '' : ` instead of ${shown(was)}`}`
}

export function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}
