import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../domain/workflows/example-values.ts'

/** Whether the value has every member of the pattern, in objects at any depth. Other values must be equal. */
export function contains(value: unknown, pattern: unknown): boolean {
  if (!isObject(pattern)) return isDeepStrictEqual(value, pattern)
  if (!isObject(value)) return false
  return Object.entries(pattern).every(([name, each]) => Object.hasOwn(value, name) && contains(value[name], each))
}
