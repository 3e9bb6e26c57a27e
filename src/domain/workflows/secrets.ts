/** Secret members of variables: taken out before they are stored, put back for the workflow, masked in what it says. */
import { parsePointer } from '../../openapi/json-pointer.ts'
import { type Span, wordLengthMin, wordSearch } from './word-search.ts'

/** Stands where a secret is. */
export const mask = '********'

/** Secret values by JSON Pointer (RFC 6901). */
export type Secrets = Record<string, unknown>

type Json = Record<string, unknown>

/** A copy of `value` in which each member that `pointers` name is masked, and what stood there. */
export function extractSecrets(value: Json, pointers: readonly string[]): { masked: Json; secrets: Secrets } {
  const masked = structuredClone(value)
  const secrets: Secrets = {}
  for (const pointer of [...new Set(pointers)].sort()) {
    const place = placeOf(masked, pointer)
    if (!place || place.holder[place.key] === mask) continue
    secrets[pointer] = place.holder[place.key]
    place.holder[place.key] = mask
  }
  return { masked, secrets }
}

/** The inverse of takeSecrets. */
export function insertSecrets(masked: Json, secrets: Secrets): Json {
  const value = structuredClone(masked)
  for (const [pointer, secret] of Object.entries(secrets)) {
    const place = placeOf(value, pointer)
    if (place) place.holder[place.key] = secret
  }
  return value
}

/** A copy of `value` in which each secret stands where its mask did, and where that was; `value` itself where it was not. */
export function restoreSecrets(value: Json, secrets: Secrets): { value: Json; restored: string[] } {
  const restored = findMasked(value, Object.keys(secrets))
  if (restored.length === 0) return { value, restored }
  const meant = Object.fromEntries(restored.map((pointer) => [pointer, secrets[pointer]]))
  return { value: insertSecrets(value, meant), restored }
}

/** Those of `pointers` at which the mask stands. */
export function findMasked(value: Json, pointers: readonly string[]): string[] {
  return [...new Set(pointers)].filter((pointer) => {
    const place = placeOf(value, pointer)
    return place?.holder[place.key] === mask
  })
}

/** Whether anything but the mask can be seen at `pointer`. */
export function isShownAt(value: Json, pointer: string): boolean {
  const place = placeOf(value, pointer)
  return place !== undefined && place.holder[place.key] !== mask
}

function placeOf(root: Json, pointer: string): { holder: Json; key: string } | undefined {
  const keys = parsePointer(pointer)
  const last = keys.pop()
  if (last === undefined) return undefined
  let holder: unknown = root
  for (const key of keys) {
    if (typeof holder !== 'object' || holder === null) return undefined
    holder = (holder as Json)[key]
  }
  if (typeof holder !== 'object' || holder === null) return undefined
  return Object.hasOwn(holder, last) ? { holder: holder as Json, key: last } : undefined
}

/** Shorter ones would mask letters all over; a secret that short protects nothing. */
const maskedLengthMin = wordLengthMin

/** Up to so many words, it is quicker to ask for each whether it is there at all: 1 µs in 8 KB, of which a scan takes 40. */
const fewWords = 16

/** A function that masks every occurrence of a secret in the strings of a JSON value. */
export function createRedactor(secrets: Secrets): <Value>(value: Value) => Value {
  const values = Object.values(secrets)
    .flatMap(stringsOf)
    .filter((word) => word.length >= maskedLengthMin)
  const words = values.flatMap(spellingsOf)
  if (words.length === 0) return (value) => value
  const spansOf = wordSearch(words)
  const few = words.length <= fewWords
  const redactText = (text: string) => {
    if (few && !words.some((word) => text.includes(word))) return text
    return masked(text, spansOf(text))
  }
  const redact = (value: unknown): unknown => {
    if (typeof value === 'string') return redactText(value)
    if (Array.isArray(value)) return value.map(redact)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [redactText(key), redact(each)]))
  }
  return redact as <Value>(value: Value) => Value
}

/** Secrets that overlap are masked as one, so that no part of any is left. */
function masked(text: string, spans: readonly Span[]): string {
  let [result, shown] = ['', 0]
  for (const [start, end] of spans) {
    result += text.slice(shown, start) + mask
    shown = end
  }
  return result + text.slice(shown)
}

/** Text that stands as it is in JSON and in URLs, as most values of cookies do. */
const plain = /^[\w.~!*'()-]*$/

/** The word as it stands in text, in JSON, and in a URL: the ways in which it usually gets into a message. */
function spellingsOf(word: string): string[] {
  if (plain.test(word)) return [word]
  return [word, JSON.stringify(word).slice(1, -1), encodeURIComponent(word.toWellFormed())]
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsOf)
}
