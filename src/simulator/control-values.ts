/** Values that requests to control a simulator have in common. */
import { invalid } from './control-problems.ts'

export const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

/** @throws {Problem} */
export function readNumber(pointer: string, value: unknown, max: number): number {
  if (typeof value === 'number' && value >= 0 && value <= max) return value
  throw invalid([{ pointer, detail: `must be a number from 0 to ${max}` }])
}
