/** JSON that somebody has written into a form: read as the Execution API reads it, and shown again without its secrets. */

import { parseJson } from '../../../contract/json.ts'
import { Problem } from '../../../contract/problem.ts'
import { mask } from '../../../domain/workflows/secrets.ts'
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { bodyBytesMax } from '../../../openapi/served-operations.ts'
import { isMembers } from './schema.ts'

export type ReadJson = { value: unknown } | { misfits: VariableError[] }

/** What is wrong with the text is told without quoting it. */
export function readJson(text: string): ReadJson {
  if (text.includes(putInAgain))
    return { misfits: [{ pointer: '', detail: `has ${putInAgain} where a secret belongs` }] }
  const bytes = Buffer.from(text)
  // With what surrounds it in a request.
  if (bytes.length > bodyBytesMax - 1024)
    return { misfits: [{ pointer: '', detail: `must have less than ${bodyBytesMax} bytes` }] }
  try {
    return { value: parseJson(bytes) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const told = error.problem.errors ?? []
    return {
      misfits: told.flatMap((each) => ('pointer' in each ? [{ pointer: each.pointer, detail: each.detail }] : [])),
    }
  }
}

/** Stands where a secret was that somebody has put in, and that is not shown again. */
export const putInAgain = '<put it in again>'

/** Where a schema has secrets: below members of these names, or also where their names are not known. */
export interface SecretPlaces {
  names: Set<string>
  anywhere: boolean
}

export function secretPlaces(schema: JsonSchema): SecretPlaces {
  const places: SecretPlaces = { names: new Set(), anywhere: false }
  const look = (value: unknown, name: string | undefined) => {
    if (Array.isArray(value)) for (const each of value) look(each, name)
    if (!isMembers(value)) return
    if (value.writeOnly === true && name === undefined) places.anywhere = true
    else if (value.writeOnly === true) places.names.add(name as string)
    for (const [keyword, each] of Object.entries(value)) {
      if (keyword === 'properties' && isMembers(each))
        for (const [member, its] of Object.entries(each)) look(its, member)
      // A definition is meant wherever something refers to it.
      else look(each, keyword === '$defs' || keyword === 'definitions' ? undefined : name)
    }
  }
  look(schema, undefined)
  return places
}

/** The text with `putInAgain` for each secret; `undefined` when it cannot be told where secrets are. */
export function withoutSecrets(text: string, { names, anywhere }: SecretPlaces): string | undefined {
  if (anywhere) return text.trim() === '' ? text : undefined
  if (names.size === 0) return text
  const read = readJson(text)
  if ('misfits' in read) return withoutSecretsInText(text, names)
  const hide = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(hide)
    if (!isMembers(value)) return value
    const hidden = (name: string, member: unknown) => (names.has(name) && !isMask(member) ? putInAgain : hide(member))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, hidden(name, member)]))
  }
  return JSON.stringify(hide(read.value), null, 2)
}

/** The mask of an earlier run's secret is none. */
function isMask(value: unknown): boolean {
  return value === mask || (Array.isArray(value) && value.every((each) => each === mask))
}

/** For text that is not JSON: what stands after a secret's name is hidden, and rather too much of it. */
function withoutSecretsInText(text: string, names: Set<string>): string {
  const words = [...names].flatMap((name) => [name, JSON.stringify(name).slice(1, -1)])
  return [...new Set(words)].reduce((shown, word) => {
    const name = word.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    const literal = '"(?:[^"\\\\\\n]|\\\\.)*"?|[[{][^]*|[^\\s,}\\]]+'
    const pattern = new RegExp(`(${name}(?:["']\\s*[:=]?|\\s*[:=])\\s*)(?:${literal})`, 'g')
    return shown.replaceAll(pattern, (_, before: string) => `${before}${JSON.stringify(putInAgain)}`)
  }, text)
}
