/** Compares keywords: documentation, those that constrain values, and unknown ones, which count as breaking. */
import { isMultipleOf } from '../decimal.ts'
import { type Direction, isSameExpanded, type Kind, memberNames, type Node, type Place, reasons } from './place.ts'

export const documentation = [
  'description',
  'summary',
  'title',
  'deprecated',
  'example',
  'examples',
  'externalDocs',
  '$comment',
]
const ignored = ['x-decision', 'x-decision-reason']

export const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minContains', 'minProperties']
export const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxContains', 'maxProperties']
/** Compared as one bound: either keyword may replace the other. */
const numberBounds = [
  ['minimum', 'exclusiveMinimum', 1],
  ['maximum', 'exclusiveMaximum', -1],
] as const

/** Only their presence can be compared: any other change of them counts as breaking. */
const conditions = [
  ...['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'contentMediaType'],
  ...['not', 'allOf', 'if', 'then', 'else', 'contains', 'propertyNames', 'patternProperties'],
  ...['dependentRequired', 'dependentSchemas', 'unevaluatedItems', 'unevaluatedProperties'],
]

const constraints = [...lowerBounds, ...upperBounds, ...conditions]

/** The keywords that the comparison of each kind of object handles. */
const handled = {
  document: ['openapi', 'info', 'servers', 'tags', 'paths', 'webhooks', 'components', 'security'],
  path: ['parameters', 'get', 'put', 'post', 'delete', 'patch'],
  operation: ['operationId', 'tags', 'security', 'parameters', 'requestBody', 'responses', 'x-idempotent'],
  parameter: ['name', 'in', 'required', 'style', 'explode', 'allowReserved', 'content', 'schema', 'x-required-scopes'],
  body: ['required', 'content', 'x-body-bytes-max'],
  response: ['headers', 'content', 'links'],
  header: ['required', 'style', 'explode', 'schema'],
  content: ['schema'],
  schema: [
    ...['type', 'const', 'enum', 'default', 'oneOf', 'anyOf', 'discriminator', 'readOnly', 'writeOnly'],
    ...['properties', 'required', 'additionalProperties', 'items', 'prefixItems', 'contentSchema', ...constraints],
  ],
} as const

/** Compares the documentation of an object, and the keywords that no other comparison handles. */
export function compareKeywords(place: Place, objectType: keyof typeof handled, was: Node, is: Node): void {
  if (objectType !== 'document' && objectType !== 'path') compareDocumentation(place, was, is)
  const skipped: readonly string[] = [...handled[objectType], ...documentation, ...ignored]
  for (const keyword of memberNames(was, is)) {
    if (skipped.includes(keyword) || (objectType === 'document' && keyword.startsWith('x-'))) continue
    if (isSameExpanded([place.before, place.after], was[keyword], is[keyword])) continue
    place.below(place.subject, keyword).note('breaking', `has a different \`${keyword}\``, reasons.unjudged)
  }
}

export function compareDocumentation(place: Place, was: Node, is: Node): void {
  if (is.deprecated === true && was.deprecated !== true) place.note('deprecated', 'is deprecated')
  if (is.deprecated !== true && was.deprecated === true) place.note('changed', 'is no longer deprecated')
  const isRewritten = ['description', 'summary', 'title'].some((name) => was[name] !== is[name])
  if (isRewritten) place.note('changed', 'has a new description')
  const hasNewExamples = ['example', 'examples'].some(
    (name) => !isSameExpanded([place.before, place.after], was[name], is[name]),
  )
  if (hasNewExamples) place.note('changed', 'has new examples')
}

export function compareConstraints(place: Place, direction: Direction, before: Node, after: Node): void {
  // Of closed members, each pattern allows more.
  const isClosed = [before, after].some(({ additionalProperties: others = true }) => others !== true)
  for (const bound of numberBounds) compareNumberBound(place, direction, bound, before, after)
  for (const keyword of constraints) {
    if (numberBounds.some(([...keywords]) => keywords.includes(keyword as never))) continue
    const [was, is] = [constraintOf(keyword, before), constraintOf(keyword, after)]
    if (isSameExpanded([place.before, place.after], was, is, documentation)) continue
    const effect = keyword === 'patternProperties' && isClosed ? effectOf(keyword, is, was) : effectOf(keyword, was, is)
    // Clients ignore unknown members, which are all that a higher number allows.
    const areIgnored = keyword === 'maxProperties' && direction === 'response' && after.properties !== undefined
    if (areIgnored) place.note('changed', describeConstraint(keyword, was, is))
    else place.note(...judge(effect, direction, describeConstraint(keyword, was, is)))
  }
}

type Effect = 'narrower' | 'wider' | 'unknown'

/** What a narrower, wider or different set of values means for clients. */
export function judge(effect: Effect, direction: Direction, predicate: string): [Kind, string, string] {
  const harmless = direction === 'request' ? 'wider' : 'narrower'
  if (effect === harmless) return [direction === 'request' ? 'added' : 'changed', predicate, '']
  return ['breaking', predicate, direction === 'request' ? reasons.rejected : reasons.unknown]
}

interface NumberBound {
  keyword: string
  value: number
  /** The keyword's value, or the integer next to it that is allowed; negated for an upper bound. */
  least: number
  isExclusive: boolean
}

function compareNumberBound(
  place: Place,
  direction: Direction,
  bound: (typeof numberBounds)[number],
  before: Node,
  after: Node,
): void {
  const [was, is] = [numberBoundOf(bound, before), numberBoundOf(bound, after)]
  const difference =
    (is?.least ?? -Infinity) - (was?.least ?? -Infinity) || Number(is?.isExclusive) - Number(was?.isExclusive)
  if ((!was && !is) || difference === 0) return
  const [other] = was?.keyword === is?.keyword ? [] : [was?.keyword]
  const predicate = describeConstraint((is ?? was)?.keyword ?? '', was?.value, is?.value, other)
  place.note(...judge(!was || difference > 0 ? 'narrower' : 'wider', direction, predicate))
}

/** The bound with effect. Of integers, `exclusiveMinimum: 0` is `minimum: 1`. */
function numberBoundOf([inclusive, exclusive, sign]: (typeof numberBounds)[number], schema: Node) {
  let found: NumberBound | undefined
  for (const keyword of [inclusive, exclusive]) {
    const value = schema[keyword]
    if (typeof value !== 'number') continue
    const isExclusive = keyword === exclusive
    const least = sign * value
    const bound =
      schema.type === 'integer'
        ? { keyword, value, least: isExclusive ? Math.floor(least) + 1 : Math.ceil(least), isExclusive: false }
        : { keyword, value, least, isExclusive }
    if (!found || bound.least > found.least || (bound.least === found.least && isExclusive)) found = bound
  }
  return found
}

/** The constraint, unless its value has no effect. */
function constraintOf(keyword: string, schema: Node): unknown {
  if (keyword.endsWith('Contains') && schema.contains === undefined) return undefined
  const value = schema[keyword] ?? (keyword === 'minContains' ? 1 : undefined)
  const isVoid = value === 0 && ['minLength', 'minItems', 'minProperties'].includes(keyword)
  return isVoid || value === false ? undefined : value
}

function effectOf(keyword: string, was: unknown, is: unknown): Effect {
  if (was === undefined) return 'narrower'
  if (is === undefined) return 'wider'
  if (keyword === 'multipleOf' && isMultipleOf(Number(was), Number(is))) return 'wider'
  if (keyword === 'multipleOf' && isMultipleOf(Number(is), Number(was))) return 'narrower'
  const isHigher = Number(is) > Number(was)
  if (lowerBounds.includes(keyword)) return isHigher ? 'narrower' : 'wider'
  if (upperBounds.includes(keyword)) return isHigher ? 'wider' : 'narrower'
  return 'unknown'
}

/** @param other the keyword that `keyword` replaces. */
function describeConstraint(keyword: string, was: unknown, is: unknown, other?: string): string {
  if (typeof (is ?? was) === 'object') return `has a different \`${keyword}\``
  const nameOf = (each: string) => (/[A-Z]/.test(each) ? `\`${each}\`` : each)
  if (is === undefined) return `no longer has the ${nameOf(keyword)} ${formatValue(was)}`
  const instead = was === undefined ? '' : ` instead of ${other ? `the ${nameOf(other)} ` : ''}${formatValue(was)}`
  return `has the ${nameOf(keyword)} ${formatValue(is)}${instead}`
}

export function formatValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}
