/** Reads the header `Prefer` (RFC 7240). */

const waitSecondsMax = 30

/** Each preference and its value, in their order; names in lower case, without parameters. */
export function preferencesIn(prefer = ''): [name: string, value: string][] {
  return parted(prefer, ',').map((preference) => {
    const [pair = ''] = parted(preference, ';')
    const [name = '', ...value] = pair.split('=')
    return [name.trim().toLowerCase(), unquoted(value.join('=').trim())]
  })
}

/**
 * The seconds of the first `wait` preference (RFC 7240, section 4.3). One that is not a number is ignored, as section 2
 * asks; so is what stands in another preference's value or parameters.
 */
export function preferredWait(prefer: string | undefined): number | undefined {
  const found = preferencesIn(prefer).find(([name, value]) => name === 'wait' && /^\d{1,9}$/.test(value))
  return found && Math.min(Number(found[1]), waitSecondsMax)
}

/** The parts between separators that do not stand in quotes. */
function parted(text: string, separator: string): string[] {
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

function unquoted(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}
