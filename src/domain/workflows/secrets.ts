/** Secret members of variables: extracted before storing, and inserted for the workflow. */
import { parsePointer, valueAt } from '../../openapi/json-pointer.ts'

/** Replaces a secret. */
export const mask = '********'

/** Secret values by JSON Pointer (RFC 6901). */
export type Secrets = Record<string, unknown>

type Json = Record<string, unknown>

/** Returns a copy of `value` with the members at `pointers` masked, and their values. */
export function extractSecrets(value: Json, pointers: readonly string[]): { masked: Json; secrets: Secrets } {
  const masked = structuredClone(value)
  const secrets: Secrets = {}
  for (const pointer of [...new Set(pointers)].sort()) {
    const member = findMember(masked, pointer)
    if (!member || member.holder[member.name] === mask) continue
    secrets[pointer] = member.holder[member.name]
    member.holder[member.name] = mask
  }
  return { masked, secrets }
}

/** The inverse of `extractSecrets`. */
export function insertSecrets(masked: Json, secrets: Secrets): Json {
  const value = structuredClone(masked)
  for (const [pointer, secret] of Object.entries(secrets)) {
    const member = findMember(value, pointer)
    if (member) member.holder[member.name] = secret
  }
  return value
}

/** Replaces masks in a copy of `value` by the secrets of the same pointers, which it returns as `restored`. */
export function restoreSecrets(value: Json, secrets: Secrets): { value: Json; restored: string[] } {
  const restored = findMasked(value, Object.keys(secrets))
  if (restored.length === 0) return { value, restored }
  return { value: insertSecrets(value, Object.fromEntries(restored.map((each) => [each, secrets[each]]))), restored }
}

/** Returns those of `pointers` whose value is the mask. */
export function findMasked(value: Json, pointers: readonly string[]): string[] {
  return [...new Set(pointers)].filter((pointer) => valueAt(value, pointer) === mask)
}

/** Whether `value` has a member at `pointer` that is not masked. */
export function isShownAt(value: Json, pointer: string): boolean {
  const member = findMember(value, pointer)
  return member !== undefined && member.holder[member.name] !== mask
}

function findMember(root: Json, pointer: string): { holder: Json; name: string } | undefined {
  const name = parsePointer(pointer).at(-1)
  const holder = valueAt(root, pointer.slice(0, pointer.lastIndexOf('/')))
  if (name === undefined || typeof holder !== 'object' || holder === null) return undefined
  return Object.hasOwn(holder, name) ? { holder: holder as Json, name } : undefined
}
