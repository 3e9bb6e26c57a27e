/** The fields of the queue form, derived from the JSON Schema of a workflow's variables. */

import {
  isObject,
  type Members,
  memberSchemas,
  resolveSchema,
  toMembers,
} from '../../../domain/workflows/example-values.ts'
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import { fileFormat } from '../../../domain/workflows/workflows.ts'

export type FieldKind =
  | { type: 'text'; input: 'text' | 'email' | 'url' | 'date'; isLong: boolean }
  /** The id of a file, which the dashboard's script uploads. */
  | { type: 'file' }
  /** A date and time, entered in UTC. */
  | { type: 'moment' }
  | { type: 'number'; isWhole: boolean; min?: number; max?: number; step?: number }
  /** A boolean that is always submitted. */
  | { type: 'checkbox' }
  | { type: 'choice'; values: readonly unknown[] }
  /** An array of strings, one per line. */
  | { type: 'lines' }
  | { type: 'json' }

export interface VariableField {
  name: string
  title: string
  description: string | undefined
  kind: FieldKind
  required: boolean
  /** The value is never shown. */
  isSecret: boolean
  default: unknown
  /** The value of an empty field. Without one, the variable is omitted. */
  whenEmpty: { value: unknown } | undefined
}

/** Variable names may contain any characters, including line breaks and lone surrogates. */
export function inputName(variable: string): string {
  return `variable-${encodeURIComponent(variable.toWellFormed())}`
}

/** One field per member that the schema describes or requires. */
export function variableFields(schema: JsonSchema): VariableField[] {
  return (
    memberSchemas(schema)
      // JSON.parse results never have it as a plain member.
      .filter(({ name }) => name !== '__proto__')
      .map((member) => toField(member.name, resolveSchema(member.schema, schema), member.required))
  )
}

/** Whether the fields cover the variables that the schema allows. */
export function hasFieldForAll(schema: JsonSchema): boolean {
  return variableFields(schema).length > 0 || schema.additionalProperties === false
}

function toField(name: string, resolved: unknown, required: boolean): VariableField {
  const schema = toMembers(resolved)
  const { type, isNullable } = singleType(schema)
  const isSecret = schema.writeOnly === true || (isObject(schema.items) && schema.items.writeOnly === true)
  const isSent = (required || typeof schema.default === 'boolean') && !isNullable && !isSecret
  const kind = toKind(schema, type, { isSent, isNullable })
  const isTyped = kind.type !== 'json' && kind.type !== 'choice'
  const empty = isNullable && isTyped ? { value: null } : kind.type === 'lines' ? { value: [] } : undefined
  return {
    name,
    title: typeof schema.title === 'string' && schema.title !== '' ? schema.title : name,
    description: typeof schema.description === 'string' ? schema.description : undefined,
    kind,
    required,
    isSecret,
    default: schema.default,
    whenEmpty: required && !isSecret ? empty : undefined,
  }
}

/** The schema's only type besides `null`; `undefined` when it has several. */
function singleType({ type }: Members): { type: unknown; isNullable: boolean } {
  if (!Array.isArray(type)) return { type, isNullable: false }
  const others = type.filter((each) => each !== 'null')
  if (others.length === 0) return { type: 'null', isNullable: false }
  return { type: others.length === 1 ? others[0] : undefined, isNullable: others.length < type.length }
}

function toKind(schema: Members, type: unknown, member: { isSent: boolean; isNullable: boolean }): FieldKind {
  const values = enumValues(schema)
  if (values) return { type: 'choice', values }
  if (type === 'string') return textKind(schema)
  if (type === 'integer' || type === 'number') return numberKind(schema, type === 'integer')
  if (type === 'boolean' && member.isSent) return { type: 'checkbox' }
  if (type === 'boolean') return { type: 'choice', values: member.isNullable ? [true, false, null] : [true, false] }
  if (type === 'null') return { type: 'choice', values: [null] }
  const { items } = schema
  const isLines = type === 'array' && isObject(items) && items.type === 'string' && schema.prefixItems === undefined
  return { type: isLines ? 'lines' : 'json' }
}

/** The values of an enumeration, or of a union of constants. */
function enumValues(schema: Members): unknown[] | undefined {
  if ('const' in schema) return [schema.const]
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum
  const subschemas = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(subschemas) || subschemas.length === 0) return undefined
  const areConstants = subschemas.every((each) => isObject(each) && 'const' in each)
  return areConstants ? subschemas.map((each) => each.const) : undefined
}

/** Characters. Longer texts get a text area. */
const lineLengthMax = 200

const formatInputs = { email: 'email', uri: 'url', date: 'date' } as const

function textKind(schema: Members): FieldKind {
  const { format, maxLength, contentMediaType } = schema
  if (format === 'date-time') return { type: 'moment' }
  if (format === fileFormat) return { type: 'file' }
  const input = Object.hasOwn(formatInputs, String(format)) ? formatInputs[format as keyof typeof formatInputs] : 'text'
  const isLong = Number(maxLength) > lineLengthMax || contentMediaType !== undefined
  return { type: 'text', input, isLong: input === 'text' && isLong }
}

/** HTML counts steps from `min`, JSON Schema counts multiples from 0: `min` is rounded up to a multiple. */
function numberKind(schema: Members, isWhole: boolean): FieldKind {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const lower = numberOr(minimum, Number.NEGATIVE_INFINITY)
  const upper = numberOr(maximum, Number.POSITIVE_INFINITY)
  if (!isWhole) return { type: 'number', isWhole, ...finiteBounds(lower, upper) }
  const min = Math.max(Math.ceil(lower), Math.floor(numberOr(exclusiveMinimum, Number.NEGATIVE_INFINITY)) + 1)
  const max = Math.min(Math.floor(upper), Math.ceil(numberOr(exclusiveMaximum, Number.POSITIVE_INFINITY)) - 1)
  const multiple = numberOr(multipleOf, 1)
  const step = Number.isInteger(multiple) && multiple > 0 && Number.isFinite(min) ? multiple : 1
  return { type: 'number', isWhole, ...finiteBounds(Math.ceil(min / step) * step, max), step }
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback
}

function finiteBounds(min: number, max: number): { min?: number; max?: number } {
  return { ...(Number.isFinite(min) && { min }), ...(Number.isFinite(max) && { max }) }
}
