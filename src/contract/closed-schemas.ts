/**
 * Closes the schemas of responses. The published document leaves them open, because later versions may have more
 * members; this version must send no member that its document does not list.
 */
import type { Document, Schema } from '../openapi/document.ts'

/** Keywords whose schemas describe nested values. Each of these schemas is closed separately. */
const below = ['items', 'contains', 'additionalProperties', 'unevaluatedItems', 'contentSchema']
const belowInList = ['prefixItems']
const belowInMap = ['properties', 'patternProperties']
/** Keywords whose schemas describe the same value together. */
const inPlace = ['if', 'then', 'else', 'not']
const inPlaceInList = ['allOf', 'anyOf', 'oneOf']

type Components = Document['components']

/** Adds the open variant of each schema under another name: schemas that are composed refer to it. */
export function closeComponents(components: Components): Components {
  const { schemas = {} } = components
  return { ...components, schemas: mapValues(schemas, closeSchema), openSchemas: mapValues(schemas, open) }
}

/** Keywords whose schemas add to the members that a schema lists itself. */
const composing = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if']

/** Forbids the unlisted members of an object that lists members, unless the schema has a rule for them. */
export function closeSchema(schema: Schema): Schema {
  const [first, ...others] = composing.filter((keyword) => keyword in schema)
  // A single reference, or alternatives that each describe the whole value.
  const delegates = first === undefined || (others.length === 0 && first !== 'allOf' && first !== 'if')
  if (delegates && !('properties' in schema)) return descend(schema, closeSchema)
  const isComposed = first !== undefined
  const inner = isComposed ? open(schema) : descend(schema, closeSchema)
  if ('additionalProperties' in schema || 'unevaluatedProperties' in schema) return inner
  // `unevaluatedProperties` knows the members of all schemas that are composed; for a single schema it is slower.
  return { ...inner, [isComposed ? 'unevaluatedProperties' : 'additionalProperties']: false }
}

/** A schema that describes only some members of a value; the values below it are closed. */
function open(schema: Schema): Schema {
  const { $ref } = schema
  const inner = descend(schema, open)
  if (typeof $ref !== 'string') return inner
  return { ...inner, $ref: $ref.replace('#/components/schemas/', '#/components/openSchemas/') }
}

/** @param same transforms the schemas that describe the same value. */
function descend(schema: Schema, same: (schema: Schema) => Schema): Schema {
  const copy: Schema = { ...schema }
  const change = (keyword: string, map: (value: never) => unknown) => {
    if (keyword in copy) copy[keyword] = map(copy[keyword] as never)
  }
  const ifSchema = (map: (schema: Schema) => Schema) => (value: unknown) =>
    typeof value === 'object' && value !== null ? map(value as Schema) : value
  for (const keyword of below) change(keyword, ifSchema(closeSchema))
  for (const keyword of belowInList) change(keyword, (list: unknown[]) => list.map(ifSchema(closeSchema)))
  for (const keyword of belowInMap)
    change(keyword, (map: Record<string, unknown>) => mapValues(map, ifSchema(closeSchema)))
  for (const keyword of inPlace) change(keyword, ifSchema(open))
  for (const keyword of inPlaceInList) change(keyword, (list: unknown[]) => list.map(ifSchema(same)))
  return copy
}

function mapValues<From, To>(map: Record<string, From>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
}
