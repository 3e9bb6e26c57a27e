/** Finds the occurrences of many words in a text in one pass over it, however many the words are. */

/** As much of a string as the search reads. */
export interface CodeUnits {
  readonly length: number
  charCodeAt(index: number): number
}

/** From its start to before its end, in UTF-16 code units. */
export type Span = [start: number, end: number]

/** Words are looked for by as many code units as each of them has to have. */
export const wordLengthMin = 4

/**
 * A function that tells which spans of a text the occurrences of the words cover; those that overlap are one span.
 *
 * A table of the words' first four code units passes over most places of a text; at the others, the longest word that
 * begins there is found among those that begin alike. These are sorted when a text first needs them: to sort 35,000
 * words at once takes longer than all the rest. A trie (Aho-Corasick) would read no code unit twice, but has a node for
 * each code unit of the words, which can be 5 MB.
 */
export function wordSearch(words: readonly string[]): (text: CodeUnits) => Span[] {
  const { first, following, shift } = beginningsOf(words)
  const alikes = new Map<number, Alike>()
  const alikeFrom = (word: number) => {
    const alike = alikes.get(word) ?? alikeOf(words, following, word)
    alikes.set(word, alike)
    return alike
  }
  return (text) => {
    const spans: Span[] = []
    let last: Span | undefined
    let key = 0
    for (let read = 0; read < text.length; read++) {
      key = next(key, text.charCodeAt(read))
      const word = first[slotOf(key, shift)] as number
      const start = read + 1 - wordLengthMin
      if (word === none || start < 0) continue
      const end = start + longestAt(text, start, alikeFrom(word))
      if (end === start) continue
      if (last && start < last[1]) {
        last[1] = Math.max(last[1], end)
      } else {
        last = [start, end]
        spans.push(last)
      }
    }
    return spans
  }
}

const none = -1

/** The key of the last four code units: what came before them is shifted out of its 32 bits. */
function next(key: number, codeUnit: number): number {
  return (key << 8) ^ codeUnit
}

/** Fibonacci hashing: the product's upper bits depend on all of the key. */
function slotOf(key: number, shift: number): number {
  return Math.imul(key, 0x9e3779b1) >>> shift
}

/** For each slot the first of the words whose beginning has it, and for each word the one that follows it there. */
function beginningsOf(words: readonly string[]): { first: Int32Array; following: Int32Array; shift: number } {
  // At least 8 slots for each word, so that at most one of 8 other beginnings is taken for one of theirs.
  const bits = Math.ceil(Math.log2(words.length + 1)) + 3
  const first = new Int32Array(2 ** bits).fill(none)
  const following = new Int32Array(words.length)
  const shift = 32 - bits
  words.forEach((word, index) => {
    let key = 0
    for (let read = 0; read < wordLengthMin; read++) key = next(key, word.charCodeAt(read))
    const slot = slotOf(key, shift)
    following[index] = first[slot] as number
    first[slot] = index
  })
  return { first, following, shift }
}

/** Words whose beginnings share a slot. */
interface Alike {
  /** By code units, each once. */
  sorted: readonly string[]
  /** For each of them, where among them the longest other one is with which it begins. */
  prefixes: Int32Array
}

function alikeOf(words: readonly string[], following: Int32Array, from: number): Alike {
  const found = new Set<string>()
  for (let word = from; word !== none; word = following[word] as number) found.add(words[word] as string)
  const sorted = [...found].sort()
  const prefixes = new Int32Array(sorted.length)
  sorted.forEach((word, index) => {
    let prefix = index - 1
    while (prefix !== none && !word.startsWith(sorted[prefix] as string)) prefix = prefixes[prefix] as number
    prefixes[index] = prefix
  })
  return { sorted, prefixes }
}

/** The length of the longest word that begins at `start`; 0 where none does. */
function longestAt(text: CodeUnits, start: number, { sorted, prefixes }: Alike): number {
  // The rest of the text sorts at or after the word at `low`, and before the one at `high`.
  let low = none
  let lowShared = 0
  let high = sorted.length
  let highShared = 0
  while (high - low > 1) {
    const middle = (low + high) >> 1
    const word = sorted[middle] as string
    const end = Math.min(word.length, text.length - start)
    // What the words at both ends share with the rest, all between them share too.
    let shared = Math.min(lowShared, highShared)
    while (shared < end && word.charCodeAt(shared) === text.charCodeAt(start + shared)) shared++
    const isBefore = shared < end ? word.charCodeAt(shared) < text.charCodeAt(start + shared) : shared === word.length
    if (isBefore) {
      low = middle
      lowShared = shared
    } else {
      high = middle
      highShared = shared
    }
  }
  // What sorts between a word and a text that begins with it begins with it too: so the one that is sought is the word
  // at `low`, or one with which that begins.
  let word = low
  while (word !== none && (sorted[word] as string).length > lowShared) word = prefixes[word] as number
  return word === none ? 0 : (sorted[word] as string).length
}
