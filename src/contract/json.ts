/** Parses the bytes of a JSON body by the rules that the documents state: I-JSON (RFC 7493), and bounds of our own. */
import { isUtf8 } from 'node:buffer'
import { invalidRequest, Problem } from './problem.ts'

/** How many objects and arrays may stand inside each other, the outermost included. */
export const jsonDepthMax = 64

const byteOrderMark = '\uFEFF'

interface Refusal {
  pointer: string
  detail: string
}

/** The parsed body, or `undefined` when there is nothing in it. Throws a Problem that never quotes the body's values. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw refused({ pointer: '', detail: 'must be UTF-8' })
  const decoded = bytes.toString('utf8')
  // RFC 8259, section 8.1 allows a parser to ignore it.
  const text = decoded.startsWith(byteOrderMark) ? decoded.slice(1) : decoded
  if (text === '') return undefined
  const value = parse(text)
  const members = { count: 0 }
  const refusal = inspect(value, 1, members)
  if (refusal) throw refused(refusal)
  if (members.count !== countMembers(text))
    throw refused({ pointer: '', detail: 'must not have two members of the same name' })
  return value
}

/** A 400 that names one place in the body. */
export function refused(error: Refusal): Problem {
  return new Problem(invalidRequest([error]).problem)
}

/** Escapes a member's name for use in a JSON Pointer (RFC 6901, section 3). */
export function pointerStep(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // V8 quotes the text in some of its messages. Only these end with a position, and what they quote cannot be there.
    const position = /at position [0-9]+ \(line [0-9]+ column [0-9]+\)$/.exec((error as Error).message)?.[0]
    throw refused({ pointer: '', detail: position ? `is not JSON: error ${position}` : 'is not JSON' })
  }
}

/** Looks at every value once; recursion is safe because it ends at `jsonDepthMax`. */
function inspect(value: unknown, depth: number, members: { count: number }): Refusal | undefined {
  if (typeof value === 'string') return inspectText(value)
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : { pointer: '', detail: 'must be within the range of a double' }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > jsonDepthMax) return { pointer: '', detail: `must not be nested more than ${jsonDepthMax} levels deep` }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const refusal = inspect(value[index], depth + 1, members)
      if (refusal) return { ...refusal, pointer: `/${index}${refusal.pointer}` }
    }
    return undefined
  }
  for (const name of Object.keys(value)) {
    members.count++
    const member = (value as Record<string, unknown>)[name]
    const refusal = inspectName(name, member) ?? inspect(member, depth + 1, members)
    if (refusal) return { ...refusal, pointer: pointerStep(name) + refusal.pointer }
  }
  return undefined
}

function inspectText(text: string): Refusal | undefined {
  if (text.includes('\0')) return { pointer: '', detail: 'must not contain U+0000' }
  if (!text.isWellFormed()) return { pointer: '', detail: 'must not contain a lone surrogate' }
  return undefined
}

/** Members by which prototypes are polluted where objects are merged; `--disable-proto` stops only the first. */
function inspectName(name: string, member: unknown): Refusal | undefined {
  if (name === '__proto__') return { pointer: '', detail: 'is not allowed' }
  const holder = name === 'constructor' && typeof member === 'object' && member !== null
  if (holder && Object.hasOwn(member, 'prototype')) return { pointer: '', detail: 'must not have a member prototype' }
  const refusal = inspectText(name)
  return refusal && { pointer: '', detail: refusal.detail.replace('must', 'is a name that must') }
}

/**
 * How many members the text of valid JSON has: each has one colon outside of strings. `JSON.parse` keeps the last of
 * several members of one name, so it then has fewer.
 */
function countMembers(text: string): number {
  let count = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 0x5c) index++
      else if (code === 0x22) inString = false
    } else if (code === 0x22) inString = true
    else if (code === 0x3a) count++
  }
  return count
}
