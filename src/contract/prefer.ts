/** Reads the header `Prefer` (RFC 7240). */

/** Preferences with their values, in their order; names in lower case, without parameters. */
export function parsePreferences(prefer = ''): [name: string, value: string][] {
  return splitUnquoted(prefer, ',').map((preference) => {
    const [pair = ''] = splitUnquoted(preference, ';')
    const [name = '', ...value] = pair.split('=')
    return [name.trim().toLowerCase(), unquote(value.join('=').trim())]
  })
}

/**
 * The seconds of the first valid `wait` preference (RFC 7240, section 4.3), at most `secondsMax`. Invalid ones are
 * ignored, as section 2 asks.
 */
export function preferredWait(prefer: string | undefined, secondsMax: number): number | undefined {
  const found = parsePreferences(prefer).find(([name, value]) => name === 'wait' && /^\d{1,9}$/.test(value))
  return found && Math.min(Number(found[1]), secondsMax)
}

function splitUnquoted(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '"') isQuoted = !isQuoted
    else if (text[index] === '\\') index++
    else if (text[index] === separator && !isQuoted) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  return [...parts, text.slice(start)]
}

function unquote(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}
