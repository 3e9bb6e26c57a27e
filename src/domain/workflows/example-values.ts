/** Example values from a workflow's schemas. They may not satisfy them: patterns, for example, are ignored. */

import { valueAt } from '../../openapi/json-pointer.ts'
import type { JsonSchema } from './workflow.ts'

// Reads JSON Schemas of workflows, which may be invalid: every member is checked before it is used.

export type Members = Record<string, unknown>

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The members of an object; none of any other value. */
export function toMembers(value: unknown): Members {
  return isObject(value) ? value : {}
}

/** The schemas of an object's members. A member that is only required has the schema `true`. */
export function memberSchemas(schema: Members): { name: string; schema: unknown; required: boolean }[] {
  const properties = toMembers(schema.properties)
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : [])
  const names = [...new Set([...Object.keys(properties), ...required])]
  return names.map((name) => ({
    name,
    schema: Object.hasOwn(properties, name) ? properties[name] : true,
    required: required.has(name),
  }))
}

/** References to references are followed this many times, so that a cycle ends. */
const referencesMax = 5

/** Replaces `$ref` by the schema within `root` that it refers to. */
export function resolveSchema(schema: unknown, root: Members): unknown {
  let found = schema
  for (let count = 0; count < referencesMax && isObject(found); count++) {
    const { $ref, ...siblings } = found
    const isLocal = typeof $ref === 'string' && /^#(\/|$)/.test($ref)
    const target = isLocal ? valueAt(root, $ref.slice(1)) : undefined
    if (!isObject(target)) return found
    found = { ...target, ...siblings }
  }
  return found
}

/** Deeper schemas, including recursive ones, get a placeholder. */
const depthMax = 3
/** Values in an example. Required members that refer to each other multiply with each level. */
const valuesMax = 10_000

const formatExamples: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  email: 'ada@example.com',
  file: '00000000-0000-7000-8000-000000000000',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/**
 * The schema's own first example, or else its members that are required or have a default or example. Secrets and strings
 * without an example become `<name>`.
 */
export function exampleVariables(schema: JsonSchema): Members {
  const [example] = Array.isArray(schema.examples) ? schema.examples : []
  return isObject(example) ? structuredClone(example) : exampleMembers(schema, namedPlaceholders(schema))
}

/** @param name of the value: `output`, or the wait of an answer. */
export function exampleOf(name: string, schema: JsonSchema): unknown {
  return exampleValue(name, schema, namedPlaceholders(schema))
}

function namedPlaceholders(root: JsonSchema): Scope {
  return { root, depth: 0, made: { values: 0 }, placeholder: (name) => `<${name}>` }
}

/** The same with empty placeholders, for a form to complete. */
export function draftVariables(schema: JsonSchema): Members {
  return exampleMembers(schema, { root: schema, depth: 0, made: { values: 0 }, placeholder: () => '' })
}

interface Scope {
  root: JsonSchema
  depth: number
  made: { values: number }
  placeholder: (name: string) => string
}

function exampleMembers(schema: Members, scope: Scope): Members {
  const included = memberSchemas(schema).filter((member) => {
    if (member.required) return true
    const { writeOnly, examples, ...others } = toMembers(resolveSchema(member.schema, scope.root))
    return writeOnly !== true && (Array.isArray(examples) || 'default' in others)
  })
  // Not by assignment, which would set the prototype for a member named `__proto__`.
  return Object.fromEntries(included.map((member) => [member.name, exampleValue(member.name, member.schema, scope)]))
}

function exampleValue(name: string, unresolved: unknown, scope: Scope): unknown {
  const schema = toMembers(resolveSchema(unresolved, scope.root))
  scope.made.values += 1
  if (scope.depth > depthMax || scope.made.values > valuesMax || schema.writeOnly === true)
    return scope.placeholder(name)
  if ('const' in schema) return schema.const
  if ('default' in schema) return schema.default
  for (const values of [schema.examples, schema.enum]) if (Array.isArray(values) && values.length > 0) return values[0]
  const deeper = { ...scope, depth: scope.depth + 1 }
  const [subschema] = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((each) => (Array.isArray(each) ? each : []))
  return subschema === undefined ? exampleOfType(name, schema, deeper) : exampleValue(name, subschema, deeper)
}

function exampleOfType(name: string, schema: Members, scope: Scope): unknown {
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'string':
      return formatExamples[String(schema.format)] ?? scope.placeholder(name)
    case 'integer':
    case 'number':
      return schema.minimum ?? schema.maximum ?? 1
    case 'boolean':
      return false
    case 'null':
      return null
    case 'array':
      return Number(schema.minItems) > 0 ? [exampleValue(name, schema.items, scope)] : []
    case 'object':
      return exampleMembers(schema, scope)
    default:
      return scope.placeholder(name)
  }
}
