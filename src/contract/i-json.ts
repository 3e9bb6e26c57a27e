/** Parses JSON by the rules of I-JSON (RFC 7493), with additional limits. */
import { isUtf8 } from 'node:buffer'
import { toPointer } from '../openapi/json-pointer.ts'
import { invalidBody } from './problem.ts'

/** Maximum nesting of objects and arrays, the outermost included. */
export const jsonDepthMax = 64

/**
 * Maximum number of values in a body: members, items and the body itself; an empty object or array counts as two. Parsing
 * the 1.7 million empty objects that fit into 5 MiB blocks the process for a third of a second.
 */
const jsonValuesMax = 250_000

const byteOrderMark = '\uFEFF'

/** Parses the bytes; `undefined` when they are empty. @throws {Problem} that never quotes values of the body. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw invalidBody('', 'must be UTF-8')
  const decoded = bytes.toString('utf8')
  // RFC 8259, section 8.1 lets a parser ignore it.
  const text = decoded.startsWith(byteOrderMark) ? decoded.slice(1) : decoded
  if (text === '') return undefined
  const { members, values, inexactAt } = scan(bytes)
  if (values > jsonValuesMax) throw invalidBody('', `must not have more than ${jsonValuesMax} values`)
  const value = parseText(text)
  // In valid UTF-8, JSON has a lone surrogate or U+0000 only as an escape. Skipping strings when there is no escape
  // saves a third of the time for 5 MiB of cookies.
  const inspection = { members: 0, hasUnicodeEscapes: text.includes('\\u') }
  const error = inspect(value, 1, inspection)
  if (error) throw invalidBody(error.pointer, error.detail)
  if (inspection.members !== members) throw invalidBody('', 'must not have two members of the same name')
  if (inexactAt !== undefined)
    throw invalidBody(pointerAt(bytes, inexactAt), 'is an integer that a double cannot hold: send it as a string')
  return value
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // V8 quotes the text in some messages. Only messages without a quotation end with a position.
    const position = /at position [0-9]+ \(line [0-9]+ column [0-9]+\)$/.exec((error as Error).message)?.[0]
    throw invalidBody('', position ? `is not JSON: error ${position}` : 'is not JSON')
  }
}

/**
 * Whether the text is an integer that `Number` would change. Two such integers would be the same value, for example under
 * one Idempotency-Key (RFC 7493, section 2.2).
 */
export function isInexactInteger(text: string): boolean {
  if (!/^-?[0-9]{16,}$/.test(text)) return false
  const value = Number(text)
  return Number.isFinite(value) && !Number.isSafeInteger(value) && BigInt(value) !== BigInt(text)
}

interface Inspection {
  /** Members counted so far. */
  members: number
  hasUnicodeEscapes: boolean
}

type JsonError = { pointer: string; detail: string }

/** What the rules for bodies refuse in a value that did not come as one; `undefined` if nothing. */
export function findJsonError(value: unknown): JsonError | undefined {
  return inspect(value, 1, { members: 0, hasUnicodeEscapes: true })
}

/** Visits every value once. Recursion is safe because it ends at `jsonDepthMax`. */
function inspect(value: unknown, depth: number, inspection: Inspection): JsonError | undefined {
  if (typeof value === 'string') return inspection.hasUnicodeEscapes ? inspectText(value) : undefined
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : { pointer: '', detail: 'must be within the range of a double' }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > jsonDepthMax) return { pointer: '', detail: `must not be nested more than ${jsonDepthMax} levels deep` }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const error = inspect(value[index], depth + 1, inspection)
      if (error) return { ...error, pointer: `/${index}${error.pointer}` }
    }
    return undefined
  }
  for (const name of Object.keys(value)) {
    inspection.members++
    const member = (value as Record<string, unknown>)[name]
    const error = inspectName(name, member, inspection) ?? inspect(member, depth + 1, inspection)
    if (error) return { ...error, pointer: toPointer([name]) + error.pointer }
  }
  return undefined
}

function inspectText(text: string): JsonError | undefined {
  if (text.includes('\0')) return { pointer: '', detail: 'must not contain U+0000' }
  if (!text.isWellFormed()) return { pointer: '', detail: 'must not contain a lone surrogate' }
  return undefined
}

/** Refuses the names that pollute prototypes where objects are merged; `--disable-proto` stops only the first. */
function inspectName(name: string, member: unknown, { hasUnicodeEscapes }: Inspection): JsonError | undefined {
  if (name === '__proto__') return { pointer: '', detail: 'is not allowed' }
  const isHolder = name === 'constructor' && typeof member === 'object' && member !== null
  if (isHolder && Object.hasOwn(member, 'prototype')) return { pointer: '', detail: 'must not have a member prototype' }
  const error = hasUnicodeEscapes ? inspectText(name) : undefined
  return error && { pointer: '', detail: error.detail.replace('must', 'is a name that must') }
}

/** 1 for each byte that a number may have after its first digit. */
const isOfNumber = new Uint8Array(256)
for (const byte of Buffer.from('+-.0123456789Ee')) isOfNumber[byte] = 1

/**
 * Counts the members and values of JSON by the punctuation outside strings. `JSON.parse` keeps only the last of several
 * members with one name, so a difference reveals duplicates. Bytes are read three times as fast as the characters of a
 * string, and no byte of a multi-byte UTF-8 character looks like ASCII (RFC 3629, section 3). Also finds the first integer
 * that is not exact.
 */
function scan(bytes: Buffer): { members: number; values: number; inexactAt: number | undefined } {
  const { length } = bytes
  let members = 0
  let values = 1
  let inexactAt: number | undefined
  for (let index = 0; index < length; index++) {
    const byte = bytes[index] as number
    if (byte === 0x3a) members++
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) values++
    else if (byte === 0x22) {
      // Inlined: as a function, V8 takes three times as long for one string of 5 MiB.
      for (index++; index < length && bytes[index] !== 0x22; index++) if (bytes[index] === 0x5c) index++
    } else if (byte >= 0x30 && byte <= 0x39) {
      const start = index
      while (isOfNumber[bytes[index + 1] as number]) index++
      // Every integer of 15 digits is exact.
      if (index - start < 15 || inexactAt !== undefined) continue
      if (isInexactInteger(bytes.toString('latin1', start, index + 1))) inexactAt = start
    }
  }
  return { members, values, inexactAt }
}

/** JSON Pointer to the number or literal at an offset of valid JSON. A reviver would take ten times as long to find it. */
function pointerAt(bytes: Buffer, offset: number): string {
  /** The indexes of the arrays around the place, and the latest string, as start and end, of the objects around it. */
  const path: (number | [number, number])[] = []
  for (let index = 0; index < offset; index++) {
    const byte = bytes[index]
    const last = path.length - 1
    if (byte === 0x5b) path.push(0)
    else if (byte === 0x7b) path.push([0, 0])
    else if (byte === 0x5d || byte === 0x7d) path.pop()
    else if (byte === 0x2c && typeof path[last] === 'number') path[last]++
    else if (byte === 0x22) {
      const start = index
      for (index++; bytes[index] !== 0x22; index++) if (bytes[index] === 0x5c) index++
      if (typeof path[last] !== 'number') path[last] = [start, index + 1]
    }
  }
  return toPointer(path.map((step) => (typeof step === 'number' ? step : JSON.parse(bytes.toString('utf8', ...step)))))
}

// JSON text that becomes part of a response as it is: parsing and formatting 1 MiB blocks the process for 20 ms.

let collected: string[] = []
/** Random, so that no other text of a response is mistaken for it. */
const placeholder = crypto.randomUUID()

export class JsonText<Value = unknown> {
  readonly #text: string

  /** @param text valid JSON that matches the document where it is sent; responses are not validated within it. */
  constructor(text: string) {
    this.#text = text
  }

  get value(): Value {
    return JSON.parse(this.#text)
  }

  /** Called by `JSON.stringify`. Use `stringify` instead, which inserts the text. */
  toJSON(): string {
    collected.push(this.#text)
    return placeholder
  }
}

/** A whole response as JSON in UTF-8, which many requests share. It must match the document; it is not validated. */
export class EncodedJson {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** Like `JSON.stringify`, with the text of each `JsonText` in its place. */
export function stringify(value: unknown): string {
  // Another caller of `JSON.stringify`, or one that threw, may have left texts of another response.
  collected = []
  const json = JSON.stringify(value)
  if (collected.length === 0) return json
  const texts = collected
  collected = []
  return json
    .split(`"${placeholder}"`)
    .map((piece, index) => piece + (texts[index] ?? ''))
    .join('')
}
