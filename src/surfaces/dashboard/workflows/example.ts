/** Variables that show what a workflow takes, made from its schema. They need not fit it: a pattern is not looked at. */
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import { isMembers, type Members, memberSchemas, resolved } from './schema.ts'

/** Deeper than this, and in schemas that contain themselves, there is nothing. */
const depthMax = 3

const ofFormat: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** Members that are required, and those with a default or an example; a secret and an unknown text as `<its name>`. */
export function exampleOf(schema: JsonSchema): Members {
  return exampleMembers(schema, { root: schema, depth: 0, unknown: (name) => `<${name}>` })
}

/** The same, to be completed: what is unknown is empty. */
export function draftOf(schema: JsonSchema): Members {
  return exampleMembers(schema, { root: schema, depth: 0, unknown: () => '' })
}

interface Place {
  root: JsonSchema
  depth: number
  unknown: (name: string) => string
}

function exampleMembers(schema: Members, place: Place): Members {
  const shown = memberSchemas(schema).filter((member) => {
    if (member.required) return true
    const { writeOnly, examples, ...others } = record(resolved(member.schema, place.root))
    return writeOnly !== true && (Array.isArray(examples) || 'default' in others)
  })
  // Not by assignment, which a member named `__proto__` would mislead.
  return Object.fromEntries(shown.map((member) => [member.name, exampleValue(member.name, member.schema, place)]))
}

function exampleValue(name: string, given: unknown, place: Place): unknown {
  const schema = record(resolved(given, place.root))
  if (place.depth > depthMax || schema.writeOnly === true) return place.unknown(name)
  if ('const' in schema) return schema.const
  if ('default' in schema) return schema.default
  for (const values of [schema.examples, schema.enum]) if (Array.isArray(values) && values.length > 0) return values[0]
  const deeper = { ...place, depth: place.depth + 1 }
  const [part] = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((parts) => (Array.isArray(parts) ? parts : []))
  return part === undefined ? ofType(name, schema, deeper) : exampleValue(name, part, deeper)
}

function ofType(name: string, schema: Members, place: Place): unknown {
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
      return Number(schema.minItems) > 0 ? [exampleValue(name, schema.items, place)] : []
    case 'object':
      return exampleMembers(schema, place)
    default:
      return place.unknown(name)
  }
}

function record(value: unknown): Members {
  return isMembers(value) ? value : {}
}
