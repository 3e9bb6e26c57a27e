/** How long a key may be chosen to live. */
import { ApiKeyError } from '../../../domain/api-keys/api-key.ts'

/** What may be chosen as a key's lifetime, in days. */
export const lifetimes: Record<string, string> = {
  '': 'Never',
  '7': 'In 7 days',
  '30': 'In 30 days',
  '90': 'In 90 days',
  '365': 'In a year',
}

const dayMilliseconds = 24 * 60 * 60 * 1000

/** When a key of this lifetime expires. @throws {ApiKeyError} for another than the above. */
export function expiryOf(lifetime: string): number | null {
  if (!Object.hasOwn(lifetimes, lifetime)) throw new ApiKeyError('lifetime', 'Choose one of these.')
  const days = Number(lifetime)
  return days === 0 ? null : Date.now() + days * dayMilliseconds
}
