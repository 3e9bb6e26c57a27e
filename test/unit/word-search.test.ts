/** Words found in texts: all that they cover, and at a cost that hardly depends on how many they are. */
import { expect, test } from 'vitest'
import { createRedactor, mask } from '../../src/domain/workflows/secrets.ts'
import { type CodeUnits, type Span, wordSearch } from '../../src/domain/workflows/word-search.ts'

/** The same numbers each time, from 0 to below `bound` (mulberry32). */
function randomFrom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

type Random = ReturnType<typeof randomFrom>

/** The third has the low byte of the first; it and the last are longer in a URL, the last in JSON too. */
const alphabet = ['a', 'b', '\u0161', '"']

function textOf(random: Random, length: number): string {
  return Array.from({ length }, () => alphabet[random(random(3) === 0 ? 4 : 2)]).join('')
}

/** Words of which many begin alike or contain each other, and a text of pieces of them among others. */
function scene(random: Random): { words: string[]; text: string } {
  const words: string[] = []
  for (let left = 1 + random(12); left > 0; left--) {
    const before = words[random(words.length + 1)] ?? ''
    words.push(before.slice(0, random(before.length + 1)) + textOf(random, 4 + random(5)))
  }
  const pieces = Array.from({ length: random(8) }, () => {
    const word = words[random(words.length)] as string
    return [word, word.slice(random(word.length)), JSON.stringify(word), encodeURIComponent(word), textOf(random, 5)]
  })
  return { words, text: pieces.map((each) => each[random(each.length)]).join('') }
}

function spellingsOf(word: string): string[] {
  return [word, JSON.stringify(word).slice(1, -1), encodeURIComponent(word)]
}

/** Every occurrence of every word, those that overlap as one. */
function allSpans(words: readonly string[], text: string): Span[] {
  const occurrences = words.flatMap((word) =>
    [...text].flatMap((_, start): Span[] => (text.startsWith(word, start) ? [[start, start + word.length]] : [])),
  )
  const spans: Span[] = []
  for (const [start, end] of occurrences.sort((a, b) => a[0] - b[0] || b[1] - a[1])) {
    const last = spans.at(-1)
    if (last && start < last[1]) last[1] = Math.max(last[1], end)
    else spans.push([start, end])
  }
  return spans
}

/** One word after the other, the longest first. */
function replacedInTurn(words: readonly string[], text: string): string {
  const longestFirst = [...words].sort((a, b) => b.length - a.length)
  return longestFirst.reduce((result, word) => result.replaceAll(word, mask), text)
}

test('exactly what an occurrence of any word covers is found, whatever the words share', () => {
  const random = randomFrom(1)
  let found = 0
  for (let round = 0; round < 1000; round++) {
    const { words, text } = scene(random)
    const spans = wordSearch(words)(text)
    expect(spans, JSON.stringify({ words, text })).toEqual(allSpans(words, text))
    found += spans.length
  }
  expect(found).toBeGreaterThan(1000)
})

test('where secrets do not overlap, masking is replacing one after the other, the longest first', () => {
  const random = randomFrom(2)
  let compared = 0
  for (let round = 0; round < 1000; round++) {
    const { words, text } = scene(random)
    const spellings = [...new Set(words.flatMap(spellingsOf))]
    if (!allSpans(spellings, text).every(([start, end]) => spellings.includes(text.slice(start, end)))) continue
    compared++
    const expected = replacedInTurn(spellings, text)
    expect(createRedactor({ words })(text), JSON.stringify({ words, text })).toBe(expected)
  }
  expect(compared).toBeGreaterThan(200)
})

test('words in a slot of their own, of another, or of none are told apart at the ends of a text', () => {
  const search = wordSearch(['abcd', 'abcdef', 'abcdeg', 'zzzz', '\u0161bcd'])
  expect(search('abcdef')).toEqual([[0, 6]])
  expect(search('abcde')).toEqual([[0, 4]])
  expect(search('zzzzabc')).toEqual([[0, 4]])
  expect(search('abcdabcd')).toEqual([
    [0, 4],
    [4, 8],
  ])
  expect(search('abc')).toEqual([])
  expect(search('')).toEqual([])
  expect(wordSearch([])('abcd')).toEqual([])
})

/** The text, and how many of its code units were read. */
function counted(text: string): CodeUnits & { reads: number } {
  return {
    reads: 0,
    length: text.length,
    charCodeAt(index) {
      this.reads++
      return text.charCodeAt(index)
    },
  }
}

test.each([
  ['that begin in all ways', (n: number) => Math.imul(n, 0x9e3779b1).toString(36).padStart(10, 'xyz')],
  ['that begin alike', (n: number) => `GA1.2.${Math.imul(n, 0x9e3779b1)}`],
  ['that begin with each other', (n: number) => `GA1.2.${'0'.repeat(n % 100)}${n}`],
  ['that are all the same', () => 'GA1.2.000000000'],
])('a text is read a few times for 35,000 words %s', (_, wordOf) => {
  const words = Array.from({ length: 35_000 }, (_, n) => wordOf(n))
  const search = wordSearch(words)
  const line = 'Fetched https://shop.example/orders?page=3 as GA1.2.99 with status 200 in 312 ms. '.repeat(100)
  const nothing = counted(line)
  expect(search(nothing)).toEqual([])
  expect(nothing.reads).toBeLessThan(3 * line.length)
  const cookies = [words[7], words[20_000], words[34_999]].join('; ')
  const shown = counted(`${line}${cookies} ${line}`)
  expect(search(shown)).toHaveLength(3)
  expect(shown.reads).toBeLessThan(3 * shown.length)
})
