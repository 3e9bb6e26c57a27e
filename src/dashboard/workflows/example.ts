/** Variables that show what a workflow takes, made from its schema. They need not fit it: a pattern is not looked at. */
import type { JsonSchema } from '../../workflows/workflow.ts'

/** Deeper than this, and in schemas that contain themselves, there is nothing. */
const depthMax = 5

const ofFormat: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** Members that are required, and those with a default or an example; a secret and an unknown text as `<its name>`. */
export function exampleOf(schema: JsonSchema): Record<string, unknown> {
  return membersOf(schema, { root: schema, depth: 0, unknown: (name) => `<${name}>` })
}

/** The same, to be completed: what is unknown is empty. */
export function draftOf(schema: JsonSchema): Record<string, unknown> {
  return membersOf(schema, { root: schema, depth: 0, unknown: () => '' })
}

interface Place {
  root: JsonSchema
  depth: number
  unknown: (name: string) => string
}

function membersOf(schema: JsonSchema, place: Place): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : [])
  const names = [...new Set([...Object.keys(properties), ...required])]
  const shown = names.filter((name) => {
    if (required.has(name)) return true
    const member = Object.hasOwn(properties, name) ? properties[name] : undefined
    return isRecord(member) && member.writeOnly !== true && ('default' in member || Array.isArray(member.examples))
  })
  // Not by assignment, which a member named `__proto__` would mislead.
  return Object.fromEntries(
    shown.map((name) => [name, memberValue(name, Object.hasOwn(properties, name) ? properties[name] : {}, place)]),
  )
}

function memberValue(name: string, schema: unknown, place: Place): unknown {
  if (!isRecord(schema) || place.depth > depthMax || schema.writeOnly === true) return place.unknown(name)
  const { examples, enum: values } = schema
  if ('const' in schema) return schema.const
  if ('default' in schema) return schema.default
  for (const given of [examples, values]) if (Array.isArray(given) && given.length > 0) return given[0]
  const deeper = { ...place, depth: place.depth + 1 }
  const other = referred(schema, place.root) ?? [schema.anyOf, schema.oneOf, schema.allOf].flatMap(firstOf)[0]
  return other === undefined ? ofType(name, schema, deeper) : memberValue(name, other, deeper)
}

function ofType(name: string, schema: JsonSchema, place: Place): unknown {
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'string':
      return ofFormat[String(schema.format)] ?? place.unknown(name)
    case 'integer':
    case 'number':
      return schema.minimum ?? schema.maximum ?? 1
    case 'boolean':
      return false
    case 'null':
      return null
    case 'array':
      return Number(schema.minItems) > 0 ? [memberValue(name, schema.items, place)] : []
    case 'object':
      return membersOf(schema, place)
    default:
      return place.unknown(name)
  }
}

function firstOf(schemas: unknown): unknown[] {
  return Array.isArray(schemas) ? schemas.slice(0, 1) : []
}

/** What a reference within the schema itself leads to. */
function referred({ $ref }: JsonSchema, root: JsonSchema): unknown {
  if (typeof $ref !== 'string' || !$ref.startsWith('#/')) return undefined
  const steps = $ref.slice(2).split('/')
  return steps.reduce<unknown>((holder, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    return isRecord(holder) && Object.hasOwn(holder, name) ? holder[name] : undefined
  }, root)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
