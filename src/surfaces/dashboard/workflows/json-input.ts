/** JSON entered into a form: parsed by the rules of the Execution API, and shown again without its secrets. */
import { parseJson } from '../../../contract/i-json.ts'
import { Problem } from '../../../contract/problem.ts'
import { isObject } from '../../../domain/workflows/example-values.ts'
import { mask } from '../../../domain/workflows/secrets.ts'
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import type { VariableError } from '../../../domain/workflows/workflows.ts'
import { bodyBytesMax } from '../../../openapi/served-operations.ts'

/** Replaces a secret that was entered, when the form is shown again. */
export const hiddenSecret = '<enter again>'

/** What a request has around the variables, in bytes. */
const requestOverhead = 1024

/** Errors do not quote the text, which may contain secrets. */
export function parseVariables(text: string): { value: unknown } | { errors: VariableError[] } {
  const fail = (detail: string) => ({ errors: [{ pointer: '', detail }] })
  if (text.includes(hiddenSecret)) return fail(`has ${hiddenSecret} in place of a secret`)
  const bytes = Buffer.from(text)
  if (bytes.length > bodyBytesMax - requestOverhead) return fail(`must have less than ${bodyBytesMax} bytes`)
  try {
    return { value: parseJson(bytes) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const errors = error.problem.errors ?? []
    return {
      errors: errors.flatMap((each) => ('pointer' in each ? [{ pointer: each.pointer, detail: each.detail }] : [])),
    }
  }
}

/** Where a schema has secrets: below members of these names, or, with `anywhere`, at unknown places. */
export interface SecretPlaces {
  names: Set<string>
  anywhere: boolean
}

export function findSecretPlaces(schema: JsonSchema): SecretPlaces {
  const places: SecretPlaces = { names: new Set(), anywhere: false }
  const visit = (value: unknown, name: string | undefined) => {
    if (Array.isArray(value)) for (const each of value) visit(each, name)
    if (!isObject(value)) return
    if (value.writeOnly === true && name === undefined) places.anywhere = true
    else if (value.writeOnly === true) places.names.add(name as string)
    for (const [keyword, each] of Object.entries(value)) {
      if (keyword === 'properties' && isObject(each)) {
        for (const [member, schema] of Object.entries(each)) visit(schema, member)
      } else {
        // A definition's name is unrelated to the members that refer to it.
        visit(each, keyword === '$defs' || keyword === 'definitions' ? undefined : name)
      }
    }
  }
  visit(schema, undefined)
  return places
}

/** Replaces each secret by `hiddenSecret`. `undefined` when the places of secrets are unknown. */
export function hideSecrets(text: string, { names, anywhere }: SecretPlaces): string | undefined {
  if (anywhere) return text.trim() === '' ? text : undefined
  if (names.size === 0) return text
  const parsed = parseVariables(text)
  if ('errors' in parsed) return hideSecretsInInvalidJson(text, names)
  const hide = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(hide)
    if (!isObject(value)) return value
    const members = Object.entries(value)
    return Object.fromEntries(
      members.map(([name, member]) => [name, names.has(name) && !isMask(member) ? hiddenSecret : hide(member)]),
    )
  }
  return JSON.stringify(hide(parsed.value), null, 2)
}

/** Whether the value stands for the secret of an earlier run. */
function isMask(value: unknown): boolean {
  return value === mask || (Array.isArray(value) && value.every((each) => each === mask))
}

/** Hides what follows a secret's name. May hide more than the secret, never less. */
function hideSecretsInInvalidJson(text: string, names: Set<string>): string {
  const spellings = new Set([...names].flatMap((name) => [name, JSON.stringify(name).slice(1, -1)]))
  return [...spellings].reduce((shown, spelling) => {
    const name = spelling.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    const literal = '"(?:[^"\\\\\\n]|\\\\.)*"?|[[{][^]*|[^\\s,}\\]]+'
    const pattern = new RegExp(`(${name}(?:["']\\s*(?:[:=]\\s*)?|\\s*[:=]\\s*))(?:${literal})`, 'g')
    return shown.replaceAll(pattern, (_, before: string) => `${before}${JSON.stringify(hiddenSecret)}`)
  }, text)
}
