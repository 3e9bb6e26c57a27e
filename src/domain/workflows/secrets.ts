/** Secret members of variables: extracted before storing, inserted for the workflow, masked in its output. */
import { parsePointer, valueAt } from '../../openapi/json-pointer.ts'

/** Replaces a secret. */
export const mask = '********'

/** Secret values by JSON Pointer (RFC 6901). */
export type Secrets = Record<string, unknown>

type Json = Record<string, unknown>

/** Returns a copy of `value` with the members at `pointers` masked, and their values. */
export function extractSecrets(value: Json, pointers: readonly string[]): { masked: Json; secrets: Secrets } {
  const masked = structuredClone(value)
  const secrets: Secrets = {}
  for (const pointer of [...new Set(pointers)].sort()) {
    const member = findMember(masked, pointer)
    if (!member || member.holder[member.name] === mask) continue
    secrets[pointer] = member.holder[member.name]
    member.holder[member.name] = mask
  }
  return { masked, secrets }
}

/** The inverse of `extractSecrets`. */
export function insertSecrets(masked: Json, secrets: Secrets): Json {
  const value = structuredClone(masked)
  for (const [pointer, secret] of Object.entries(secrets)) {
    const member = findMember(value, pointer)
    if (member) member.holder[member.name] = secret
  }
  return value
}

/** Replaces masks in a copy of `value` by the secrets of the same pointers, which it returns as `restored`. */
export function restoreSecrets(value: Json, secrets: Secrets): { value: Json; restored: string[] } {
  const restored = findMasked(value, Object.keys(secrets))
  if (restored.length === 0) return { value, restored }
  return { value: insertSecrets(value, Object.fromEntries(restored.map((each) => [each, secrets[each]]))), restored }
}

/** Returns those of `pointers` whose value is the mask. */
export function findMasked(value: Json, pointers: readonly string[]): string[] {
  return [...new Set(pointers)].filter((pointer) => valueAt(value, pointer) === mask)
}

/** Whether `value` has a member at `pointer` that is not masked. */
export function isShownAt(value: Json, pointer: string): boolean {
  const member = findMember(value, pointer)
  return member !== undefined && member.holder[member.name] !== mask
}

function findMember(root: Json, pointer: string): { holder: Json; name: string } | undefined {
  const name = parsePointer(pointer).at(-1)
  const holder = valueAt(root, pointer.slice(0, pointer.lastIndexOf('/')))
  if (name === undefined || typeof holder !== 'object' || holder === null) return undefined
  return Object.hasOwn(holder, name) ? { holder: holder as Json, name } : undefined
}

/** Masking shorter strings would mask letters everywhere; a secret this short protects nothing. */
const maskedLengthMin = 4

/** Strings per regular expression. The compile time grows faster than their number: 10 ms for 1,000, 2 s for 35,000. */
const patternStringsMax = 1000

/**
 * Returns a function that masks every occurrence of the secrets in the strings and member names of a JSON value, as plain
 * text, in JSON, in URLs and in Base64. The lines of a secret are masked also where each is written alone.
 * Secrets that overlap are masked as one, so that no part of them remains.
 *
 * CPU time for 1 MiB of text: 3 to 30 ms with 1,000 secrets; 0.2 to 1 s with 35,000, the most cookies of a context.
 * For 1 MiB of Base64: 0.3 s more.
 */
export function createRedactor(secrets: Secrets): <Value>(value: Value) => Value {
  const values = Object.values(secrets).flatMap(stringsIn)
  const strings = [...new Set(values.filter(({ length }) => length >= maskedLengthMin).flatMap(spellings))]
  if (strings.length === 0) return (value) => value
  // With the longest first, an alternation matches the longest string at each position.
  strings.sort((a, b) => b.length - a.length)
  const patterns: RegExp[] = []
  for (let from = 0; from < strings.length; from += patternStringsMax) {
    const alternatives = strings.slice(from, from + patternStringsMax).map(escapePattern)
    // The lookahead also finds matches that overlap.
    patterns.push(new RegExp(`(?=(${alternatives.join('|')}))`, 'g'))
  }
  const find = (text: string) => patterns.flatMap((pattern) => mergeSpans(findSpans(text, pattern)))
  const lengthMin = strings.at(-1)?.length ?? 0
  const redactText = (text: string): string => {
    const encoded = encodedSpans(text, lengthMin, (decoded) => find(decoded).length > 0)
    const spans = [...find(text), ...encoded]
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

type Span = [start: number, end: number]

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

/** Text that may be Base64 or base64url (RFC 4648), in one line or several. */
const encodedText = /[\w+/-]+(?:\r?\n[\w+/-]+)*={0,2}/g

/** The places of Base64 whose content has a secret anywhere. Such a text is masked as a whole. */
function* encodedSpans(text: string, lengthMin: number, hasSecret: (decoded: string) => boolean): Generator<Span> {
  // Most words and numbers decode to bytes that are no text: the search for secrets takes longer than this one.
  const readable = new RegExp(`[^\\0-\\x08\\x0e-\\x1f\\ufffd]{${lengthMin},}`, 'g')
  for (const { 0: run, index } of text.matchAll(encodedText)) {
    if (run.length * 3 < lengthMin * 4) continue
    // Characters before it may belong to the same run. Four of them encode three bytes.
    const isSecret = [0, 1, 2, 3].some((from) => {
      const decoded = Buffer.from(run.slice(from), 'base64').toString()
      return decoded.match(readable)?.some(hasSecret)
    })
    if (isSecret) yield [index, index + run.length]
  }
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

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** Text that JSON and URLs do not escape, such as most cookie values. */
const unescaped = /^[\w.~!*'()-]*$/

/** Shorter lines of a secret may be common text, such as a bracket. */
const lineLengthMin = 8

/** The text, and each of its lines, as it appears in plain text, JSON and URLs. */
function spellings(text: string): string[] {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim())
  if (lines.length === 1) return spell(text)
  return [text, ...lines.filter(({ length }) => length >= lineLengthMin)].flatMap(spell)
}

function spell(text: string): string[] {
  if (unescaped.test(text)) return [text]
  return [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text.toWellFormed())]
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsIn)
}
