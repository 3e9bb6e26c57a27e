/**
 * A text for the regular expression of a schema: its first alternatives, with as few repetitions as the length needs. Look
 * around and references are not followed, so the text may not match.
 */

/** Repetitions above the fewest ones. */
const extraMax = 64
const repetitionsMax = 1000

/** @returns undefined if no text of the length was found. */
export function exampleOfPattern(pattern: string, lengthMin: number, lengthMax: number): string | undefined {
  for (let extra = 0; extra <= extraMax; extra++) {
    const text = new PatternReader(pattern, extra).read()
    if (text.length > lengthMax) return undefined
    if (text.length >= lengthMin) return text
  }
  return undefined
}

const printable = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index))
/** In the order in which they are tried for a set of characters. */
const characters = ['a', '1', 'A', ...printable, ' ', '\n', '\t', 'é', '中']

class PatternReader {
  readonly #pattern: string
  readonly #extra: number
  #at = 0

  constructor(pattern: string, extra: number) {
    this.#pattern = pattern
    this.#extra = extra
  }

  /** Reads alternatives until the end of the group or pattern. */
  read(): string {
    let first: string | undefined
    let text = ''
    while (this.#at < this.#pattern.length && this.#pattern[this.#at] !== ')') {
      if (this.#match(/^\|/)) {
        first ??= text
        text = ''
      } else text += this.#readRepeated()
    }
    return first ?? text
  }

  #match(expression: RegExp): RegExpExecArray | null {
    const found = expression.exec(this.#pattern.slice(this.#at))
    this.#at += found?.[0].length ?? 0
    return found
  }

  #readRepeated(): string {
    const atom = this.#readAtom()
    const [quantifier, , least, comma, most] = this.#match(/^([*+?]|\{(\d+)(,?)(\d*)\})\??/) ?? []
    if (quantifier === undefined) return atom
    const isRange = least !== undefined
    const fewest = isRange ? Number(least) : quantifier.startsWith('+') ? 1 : 0
    const bounded = isRange ? Number(most || (comma ? repetitionsMax : least)) : repetitionsMax
    const limit = quantifier.startsWith('?') ? 1 : bounded
    return atom.repeat(Math.min(limit, fewest + this.#extra, repetitionsMax))
  }

  #readAtom(): string {
    if (this.#match(/^(?:[\^$]|\\[bB])/)) return ''
    if (this.#match(/^\(\?<?[=!]/)) {
      this.#readGroup()
      return ''
    }
    if (this.#match(/^\((?:\?(?::|<[^>]*>))?/)) return this.#readGroup()
    const [set] = this.#match(setPattern) ?? []
    if (set !== undefined) return firstOf(set)
    return this.#match(/^./su)?.[0] ?? ''
  }

  #readGroup(): string {
    const text = this.read()
    this.#match(/^\)/)
    return text
  }
}

/** A character class, an escape or a dot. */
const setPattern = /^(?:\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\dA-Fa-f]{4}|x[\dA-Fa-f]{2}|.)|\.)/su

function firstOf(set: string): string {
  try {
    const expression = new RegExp(`^${set}$`, 'u')
    return characters.find((character) => expression.test(character)) ?? ''
  } catch {
    // A reference to a group.
    return ''
  }
}
