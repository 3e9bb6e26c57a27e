/** Reading of JSON Schemas that anybody may have written: nothing in them is taken for granted. */

import { valueAt } from '../../../openapi/json-pointer.ts'

export type Members = Record<string, unknown>

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member of the object's own, and nothing that every object inherits. */
export function ownMember(holder: unknown, name: string): unknown {
  return isMembers(holder) && Object.hasOwn(holder, name) ? holder[name] : undefined
}

/** The subschemas of an object's members, by name; with `true`, which permits anything, for those only required. */
export function memberSchemas(schema: Members): { name: string; schema: unknown; required: boolean }[] {
  const properties = isMembers(schema.properties) ? schema.properties : {}
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : [])
  const names = [...new Set([...Object.keys(properties), ...required])]
  return names.map((name) => ({
    name,
    schema: Object.hasOwn(properties, name) ? properties[name] : true,
    required: required.has(name),
  }))
}

/** References that lead to references are followed this far. */
const referencesMax = 5

/** The schema with what its reference within `root` leads to, as if that stood in its place. */
export function resolved(schema: unknown, root: Members): unknown {
  let found = schema
  for (let count = 0; count < referencesMax && isMembers(found); count++) {
    const { $ref, ...beside } = found
    const isLocal = typeof $ref === 'string' && /^#(\/|$)/.test($ref)
    const target = isLocal ? valueAt(root, $ref.slice(1)) : undefined
    if (!isMembers(target)) return found
    found = { ...target, ...beside }
  }
  return found
}
