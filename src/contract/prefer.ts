/** Reads the header `Prefer` (RFC 7240). */

const waitSecondsMax = 30

/** Each preference and its value, in their order; names in lower case, without parameters. */
export function preferencesIn(prefer: string | undefined): [name: string, value: string][] {
  // Commas part preferences, but not inside of quotes.
  const parts = prefer?.match(/(?:"(?:[^"\\]|\\.)*"|[^",])+/g) ?? []
  return parts.flatMap((part): [string, string][] => {
    const [, name, quoted, token = ''] =
      /^\s*([^\s=;"]+)\s*(?:=\s*(?:"([^"]*)"|([^\s;"]*)))?\s*(?:;|$)/.exec(part) ?? []
    return name === undefined ? [] : [[name.toLowerCase(), quoted ?? token]]
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
