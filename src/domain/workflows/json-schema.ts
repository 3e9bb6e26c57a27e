/** Reads JSON Schemas of workflows, which may be invalid: every member is checked before it is used. */
import { valueAt } from '../../openapi/json-pointer.ts'

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
