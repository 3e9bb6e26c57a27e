/**
 * Masks secrets in text, in whatever spelling they stand there. Logs, errors, results and evidence of browsers use it.
 *
 * The text is decoded, instead of each secret being encoded in all ways: encoders differ in which characters they escape,
 * and in upper and lower case, and one may be applied to the result of another.
 */
import { mask, type Secrets } from './secrets.ts'

type Span = [start: number, end: number]

/** Masking shorter strings would mask letters everywhere; a secret this short protects nothing. */
export const maskedLengthMin = 4

/** Shorter lines of a secret may be common text, such as a bracket. */
const lineLengthMin = 8

/** Strings per regular expression. The compile time grows faster than their number: 10 ms for 1,000, 2 s for 35,000. */
const patternStringsMax = 1000

/**
 * Returns a function that masks every occurrence of the secrets in the strings and member names of a JSON value: as plain
 * text, in JSON, JavaScript, HTML, URLs and forms, up to three of these within each other, and in Base64 and hexadecimal.
 * The lines of a secret are masked also where each is written alone. Secrets that overlap are masked as one, so that no
 * part of them remains.
 *
 * CPU time for 1 MiB of text: 3 to 30 ms with 1,000 secrets; 0.2 to 1 s with 35,000, the most cookies of a context. Text
 * that is full of escapes takes up to four times as long. For 1 MiB of Base64: 0.3 s more.
 */
export function createRedactor(secrets: Secrets): <Value>(value: Value) => Value {
  const values = Object.values(secrets).flatMap(stringsIn).flatMap(withLines)
  const strings = [...new Set(values.flatMap(forms))].filter(({ length }) => length >= maskedLengthMin)
  if (strings.length === 0) return (value) => value
  const find = createSearch(strings)
  const redactText = (text: string): string => {
    const spans = find(text)
    if (spans.length === 0) return text
    let result = ''
    let shownFrom = 0
    for (const [start, end] of mergeSpans(spans.sort((a, b) => a[0] - b[0]))) {
      result += text.slice(shownFrom, start) + mask
      shownFrom = end
    }
    return result + text.slice(shownFrom)
  }
  const redact = (value: unknown): unknown => {
    if (typeof value === 'string') return redactText(value)
    if (Array.isArray(value)) return value.map(redact)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [redactText(name), redact(each)]))
  }
  return redact as <Value>(value: Value) => Value
}

/** The texts and numbers in a value, as text. */
export function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsIn)
}

function withLines(text: string): string[] {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim())
  return lines.length === 1 ? [text] : [text, ...lines.filter(({ length }) => length >= lineLengthMin)]
}

/** What decoding makes of a secret, which may itself look encoded. URLs replace backslashes and lone surrogates. */
function forms(secret: string): string[] {
  const found = [secret]
  for (let text = decode(secret)?.text; text !== undefined && found.length <= roundsMax; text = decode(text)?.text)
    found.push(text)
  return [...found, secret.replaceAll('\\', '/'), secret.toWellFormed()]
}

/** Returns a function that finds the places of the strings in a text, which may overlap. */
function createSearch(strings: readonly string[]): (text: string) => Span[] {
  // With the longest first, an alternation matches the longest string at each position.
  const sorted = [...strings].sort((a, b) => b.length - a.length)
  const patterns: RegExp[] = []
  for (let from = 0; from < sorted.length; from += patternStringsMax) {
    const alternatives = sorted.slice(from, from + patternStringsMax).map(escapePattern)
    // The lookahead also finds matches that overlap.
    patterns.push(new RegExp(`(?=(${alternatives.join('|')}))`, 'g'))
  }
  const lengthMin = sorted.at(-1)?.length ?? 0
  const radius = 2 * (sorted[0]?.length ?? 0) + 200
  const findPlain = (text: string) => patterns.flatMap((pattern) => mergeSpans(findSpans(text, pattern)))
  const findAlso = (text: string, others: (part: string) => Span[]): Span[] => {
    const spans = [...findPlain(text), ...others(text)]
    let shown: Decoded | undefined = { text, starts: undefined, places: [] }
    for (let round = 0; round < roundsMax && shown; round += 1) {
      const decoded = decode(shown.text, shown.starts)
      for (const [from, to] of decoded ? windows(decoded, radius) : []) {
        const part = decoded?.text.slice(from, to) ?? ''
        for (const [start, end] of [...findPlain(part), ...others(part)])
          spans.push([decoded?.starts?.[from + start] ?? 0, decoded?.starts?.[from + end] ?? 0])
      }
      shown = decoded
    }
    return spans
  }
  const isSecret = (text: string) => findAlso(text, () => []).length > 0
  return (text) => findAlso(text, (part) => [...encodedSpans(part, lengthMin, isSecret)])
}

/** Not `matchAll`, which clones the pattern for each text. */
function* findSpans(text: string, pattern: RegExp): Generator<Span> {
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const [, secret = ''] = match
    yield [match.index, match.index + secret.length]
    // The lookahead consumes nothing.
    pattern.lastIndex = match.index + 1
  }
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** Merges spans that overlap. They must be sorted by their start. */
function mergeSpans(spans: Iterable<Span>): Span[] {
  const merged: Span[] = []
  for (const [start, end] of spans) {
    const last = merged.at(-1)
    if (last && start < last[1]) last[1] = Math.max(last[1], end)
    else merged.push([start, end])
  }
  return merged
}

// Decodes the escapes of URLs, forms, JSON, JavaScript and HTML, whichever a text has, and knows where each character was.

/** Escapes within escapes, such as JSON in a URL in HTML. */
const roundsMax = 3

interface Decoded {
  text: string
  /** Where each character, and the end, is in the original text; `undefined` if it is the original. */
  starts: Uint32Array | undefined
  /** The places of decoded escapes. */
  places: number[]
}

const escapes = new RegExp(
  [
    // A character in UTF-8 (RFC 3986, section 2.1).
    '%[0-7][\\da-f]|%[cd][\\da-f]%[89ab][\\da-f]|%e[\\da-f](?:%[89ab][\\da-f]){2}|%f[0-7](?:%[89ab][\\da-f]){3}',
    // A space in forms.
    '\\+',
    '\\\\(?:u\\{[\\da-f]{1,6}\\}|u[\\da-f]{4}|x[\\da-f]{2}|[^])',
    '&(?:#\\d{1,7}|#x[\\da-f]{1,6}|amp|lt|gt|quot|apos|nbsp);',
    '\\r\\n?',
  ].join('|'),
  'gi',
)
const controls: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', 0: '\0' }
const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

function decodeEscape(found: string): string {
  const rest = found.slice(1).toLowerCase()
  switch (found[0]) {
    case '%':
      return Buffer.from(rest.replaceAll('%', ''), 'hex').toString()
    case '+':
      return ' '
    case '\r':
      return '\n'
    case '&': {
      const name = rest.slice(0, -1)
      return name[0] === '#' ? fromCodePoint(name.slice(1).replace('x', '0x')) : (entities[name] ?? found)
    }
    default:
      if (rest.length > 1) return fromCodePoint(`0x${rest.replace(/[ux{}]/g, '')}`)
      return controls[found[1] ?? ''] ?? found.slice(1)
  }
}

function fromCodePoint(number: string): string {
  return Number(number) <= 0x10ffff ? String.fromCodePoint(Number(number)) : '\ufffd'
}

/** @returns `undefined` if there is nothing to decode. @param origin where each character of `text` was. */
function decode(text: string, origin?: Uint32Array): Decoded | undefined {
  escapes.lastIndex = 0
  let match = escapes.exec(text)
  if (!match) return undefined
  const starts = new Uint32Array(text.length + 1)
  const places: number[] = []
  let decoded = ''
  let from = 0
  const keep = (to: number) => {
    for (let index = from; index <= to; index += 1)
      starts[decoded.length + index - from] = origin ? (origin[index] ?? 0) : index
    decoded += text.slice(from, to)
  }
  for (; match; match = escapes.exec(text)) {
    keep(match.index)
    places.push(decoded.length)
    const character = decodeEscape(match[0])
    starts.fill(starts[decoded.length] ?? 0, decoded.length, decoded.length + character.length)
    decoded += character
    from = escapes.lastIndex
  }
  keep(text.length)
  return { text: decoded, starts, places }
}

/** The parts of a decoded text that differ from the text before: the others have been searched. */
function windows({ text, places }: Decoded, radius: number): Span[] {
  return mergeSpans(places.map((place): Span => [Math.max(0, place - radius), Math.min(text.length, place + radius)]))
}

// Base64 and hexadecimal: encodings without escapes, whose whole text is masked if a secret is anywhere in it.

const encodings = [
  // Base64 or base64url (RFC 4648), in one line or several. Characters before it may belong to the same run: four of
  // them encode three bytes.
  { name: 'base64', pattern: /[\w+/-]+(?:\r?\n[\w+/-]+)*={0,2}/g, offsets: [0, 1, 2, 3] },
  { name: 'hex', pattern: /[\da-f]{8,}/gi, offsets: [0, 1] },
] as const

function* encodedSpans(text: string, lengthMin: number, isSecret: (decoded: string) => boolean): Generator<Span> {
  // Most words and numbers decode to bytes that are no text: the search for secrets takes longer than this one.
  const readable = new RegExp(`[^\\0-\\x08\\x0e-\\x1f\\ufffd]{${lengthMin},}`, 'g')
  for (const { name, pattern, offsets } of encodings) {
    for (const { 0: run, index } of text.matchAll(pattern)) {
      if (run.length * 3 < lengthMin * 4) continue
      const found = offsets.some((offset) => {
        const decoded = Buffer.from(run.slice(offset), name).toString()
        return decoded.match(readable)?.some(isSecret)
      })
      if (found) yield [index, index + run.length]
    }
  }
}
