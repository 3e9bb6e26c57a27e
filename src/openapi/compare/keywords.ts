/** Compares keywords: documentation, those that constrain values, and unknown ones, which count as breaking. */
import { type Direction, expand, isSame, type Kind, memberNames, type Node, type Place, reasons } from './place.ts'

const documentation = [
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

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minContains', 'minProperties']
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxContains', 'maxProperties']

/** Only their presence can be compared: any other change of them counts as breaking. */
const conditions = [
  ...['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'contentMediaType'],
  ...['not', 'allOf', 'if', 'then', 'else', 'contains', 'prefixItems', 'propertyNames', 'patternProperties'],
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
    ...['properties', 'required', 'additionalProperties', 'items', 'contentSchema', ...constraints],
  ],
} as const

/** Compares the documentation of an object, and the keywords that no other comparison handles. */
export function compareKeywords(place: Place, objectType: keyof typeof handled, was: Node, is: Node): void {
  if (objectType !== 'document' && objectType !== 'path') compareDocumentation(place, was, is)
  const skipped: readonly string[] = [...handled[objectType], ...documentation, ...ignored]
  for (const keyword of memberNames(was, is)) {
    if (skipped.includes(keyword) || (objectType === 'document' && keyword.startsWith('x-'))) continue
    if (isSame(expand(place.before, was[keyword]), expand(place.after, is[keyword]))) continue
    place.below(place.subject, keyword).note('breaking', `has a different \`${keyword}\``, reasons.unjudged)
  }
}

export function compareDocumentation(place: Place, was: Node, is: Node): void {
  if (is.deprecated === true && was.deprecated !== true) place.note('deprecated', 'is deprecated')
  if (is.deprecated !== true && was.deprecated === true) place.note('changed', 'is no longer deprecated')
  const isRewritten = ['description', 'summary', 'title'].some((name) => was[name] !== is[name])
  if (isRewritten) place.note('changed', 'has a new description')
  const hasNewExamples = ['example', 'examples'].some(
    (name) => !isSame(expand(place.before, was[name]), expand(place.after, is[name])),
  )
  if (hasNewExamples) place.note('changed', 'has new examples')
}

export function compareConstraints(place: Place, direction: Direction, before: Node, after: Node): void {
  for (const keyword of constraints) {
    const was = expand(place.before, constraintOf(keyword, before))
    const is = expand(place.after, constraintOf(keyword, after))
    if (isSame(was, is)) continue
    // Clients ignore unknown members, which are all that a higher number allows.
    const areIgnored = keyword === 'maxProperties' && direction === 'response' && after.properties !== undefined
    if (areIgnored) place.note('changed', describeConstraint(keyword, was, is))
    else place.note(...judge(effectOf(keyword, was, is), direction, describeConstraint(keyword, was, is)))
  }
}

type Effect = 'narrower' | 'wider' | 'unknown'

/** What a narrower, wider or different set of values means for clients. */
export function judge(effect: Effect, direction: Direction, predicate: string): [Kind, string, string] {
  const harmless = direction === 'request' ? 'wider' : 'narrower'
  if (effect === harmless) return [direction === 'request' ? 'added' : 'changed', predicate, '']
  return ['breaking', predicate, direction === 'request' ? reasons.rejected : reasons.unknown]
}

/** The constraint, unless its value has no effect. */
function constraintOf(keyword: string, schema: Node): unknown {
  const value = schema[keyword]
  const isVoid = value === 0 && ['minLength', 'minItems', 'minProperties'].includes(keyword)
  return isVoid || value === false ? undefined : value
}

function effectOf(keyword: string, was: unknown, is: unknown): Effect {
  if (was === undefined) return 'narrower'
  if (is === undefined) return 'wider'
  const isHigher = Number(is) > Number(was)
  if (lowerBounds.includes(keyword)) return isHigher ? 'narrower' : 'wider'
  if (upperBounds.includes(keyword)) return isHigher ? 'wider' : 'narrower'
  return 'unknown'
}

function describeConstraint(keyword: string, was: unknown, is: unknown): string {
  if (typeof (is ?? was) === 'object') return `has a different \`${keyword}\``
  const name = /[A-Z]/.test(keyword) ? `\`${keyword}\`` : keyword
  if (is === undefined) return `no longer has the ${name} ${formatValue(was)}`
  return `has the ${name} ${formatValue(is)}${was === undefined ? '' : ` instead of ${formatValue(was)}`}`
}

export function formatValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}
