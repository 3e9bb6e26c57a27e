/**
 * Finds the patterns of schemas, and those with exponential or quadratic run time, which callers could exploit. Not part of
 * `document.ts`: the detector takes 3 MB, which no process that serves requests needs.
 */
import { isSafePattern as detect } from 'redos-detector'
import { walk } from './document.ts'
import type { Path } from './json-pointer.ts'

/** The patterns of a schema or document, each with the path of its keyword. */
export function* patternsIn(value: unknown): Generator<{ pattern: string; path: Path }> {
  for (const { value: keyword, path } of walk(value)) {
    if (path.at(-1) === 'pattern' && typeof keyword === 'string') yield { pattern: keyword, path }
    else if (path.at(-1) === 'patternProperties')
      for (const pattern of Object.keys(Object(keyword))) yield { pattern, path }
  }
}

/** Twice what the longest safe pattern here takes. With ten times as many steps, an unsafe pattern can take 5 s. */
const maxSteps = 2000

export const safePatternAdvice =
  'Anchor it with ^, and let no two adjacent or nested repetitions match the same character.'

/** @param flags of the regular expression. */
export function isSafePattern(pattern: string, flags: string): boolean {
  try {
    return detect(pattern, {
      maxSteps,
      unicode: /[uv]/.test(flags),
      caseInsensitive: flags.includes('i'),
      multiLine: flags.includes('m'),
      dotAll: flags.includes('s'),
    }).safe
  } catch {
    // The detector does not know the syntax.
    return false
  }
}
