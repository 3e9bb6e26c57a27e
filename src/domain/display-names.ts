/** What people may call a key, a user, an account or an invitation. */

export const nameLengthMax = 100

/** Control characters would disturb a terminal; half a character and those that turn a line around, whoever reads it. */
const disturbing = /[\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]/u
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Why the text is no name, as a sentence for whoever chose it; `undefined` for a good one. */
export function nameError(name: string): string | undefined {
  if (name === '') return 'Enter a name.'
  if ([...name].length > nameLengthMax) return `Use at most ${nameLengthMax} characters.`
  if (disturbing.test(name)) return 'Use no control characters.'
  return visible.test(name) ? undefined : 'Use a character that can be seen.'
}
