/** The rules for the names of keys, users, accounts, invitations and browser contexts. */

export const nameLengthMax = 100

/** Control characters, lone surrogates, and bidirectional controls, which reorder the text around them. */
const forbidden = /[\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]/u
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Returns a sentence for the person who chose the name, or `undefined` for a valid name. */
export function nameError(name: string): string | undefined {
  if (name === '') return 'Enter a name.'
  if ([...name].length > nameLengthMax) return `Use at most ${nameLengthMax} characters.`
  if (forbidden.test(name)) return 'Remove the control characters.'
  return visible.test(name) ? undefined : 'Use at least one visible character.'
}
