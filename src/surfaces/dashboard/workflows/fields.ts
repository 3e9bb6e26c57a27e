/** The fields of the form that queues a run, made from the JSON Schema of a workflow's variables. */
import type { JsonSchema } from '../../../domain/workflows/workflow.ts'
import { isMembers, type Members, memberSchemas, resolved } from './schema.ts'

/** How a member is put in. */
export type Kind =
  | { type: 'text'; input: 'text' | 'email' | 'url' | 'date'; isLong: boolean }
  /** A moment, put in as UTC. */
  | { type: 'moment' }
  | { type: 'number'; isWhole: boolean; min?: number; max?: number; step?: number }
  /** True or false, and always sent. */
  | { type: 'checkbox' }
  | { type: 'choice'; values: readonly unknown[] }
  /** An array of strings, one in each line. */
  | { type: 'lines' }
  | { type: 'json' }

export interface VariableField {
  /** The member's. */
  name: string
  title: string
  description: string | undefined
  kind: Kind
  required: boolean
  /** Never shown. */
  isSecret: boolean
  default: unknown
  /** What is meant when nothing is put in; when that is nothing, the member is left out. */
  whenEmpty: { value: unknown } | undefined
}

/** What the field of a member is called in the form. Names may have any characters, line breaks included. */
export function inputName(member: string): string {
  return `variable-${encodeURIComponent(member.toWellFormed())}`
}

/** A field for each member that the schema names; one for each that it only requires. */
export function fieldsOf(schema: JsonSchema): VariableField[] {
  return (
    memberSchemas(schema)
      // No caller can send it.
      .filter(({ name }) => name !== '__proto__')
      .map((member) => fieldOf(member.name, resolved(member.schema, schema), member.required))
  )
}

/** Whether the fields have a place for everything that the schema is likely about. */
export function hasFieldForAll(schema: JsonSchema): boolean {
  return fieldsOf(schema).length > 0 || schema.additionalProperties === false
}

function fieldOf(name: string, given: unknown, required: boolean): VariableField {
  const schema = isMembers(given) ? given : {}
  const { type, isNullable } = typeOf(schema)
  const isSecret = schema.writeOnly === true || (isMembers(schema.items) && schema.items.writeOnly === true)
  const isSent = (required || typeof schema.default === 'boolean') && !isNullable && !isSecret
  const kind = kindOf(schema, type, { isSent, isNullable })
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

/** The one type of a member; `undefined` when it has several. One that may also be null has one. */
function typeOf({ type }: Members): { type: unknown; isNullable: boolean } {
  if (!Array.isArray(type)) return { type, isNullable: false }
  const others = type.filter((each) => each !== 'null')
  const isNullable = others.length < type.length
  if (others.length === 0) return { type: 'null', isNullable: false }
  return { type: others.length === 1 ? others[0] : undefined, isNullable }
}

/** @param is whether the member is sent in any case, and whether it may be null. */
function kindOf(schema: Members, type: unknown, is: { isSent: boolean; isNullable: boolean }): Kind {
  const values = valuesOf(schema)
  if (values) return { type: 'choice', values }
  if (type === 'string') return textKind(schema)
  if (type === 'integer' || type === 'number') return numberKind(schema, type === 'integer')
  if (type === 'boolean' && is.isSent) return { type: 'checkbox' }
  if (type === 'boolean') return { type: 'choice', values: is.isNullable ? [true, false, null] : [true, false] }
  if (type === 'null') return { type: 'choice', values: [null] }
  const { items } = schema
  const isLines = type === 'array' && isMembers(items) && items.type === 'string' && schema.prefixItems === undefined
  return { type: isLines ? 'lines' : 'json' }
}

/** The values of an enumeration, also of one that is written as a union of constants. */
function valuesOf(schema: Members): unknown[] | undefined {
  if ('const' in schema) return [schema.const]
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum
  const parts = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(parts) || parts.length === 0) return undefined
  return parts.every((part) => isMembers(part) && 'const' in part) ? parts.map((part) => part.const) : undefined
}

/** Longer texts than this are put in in several lines. */
const lineLengthMax = 200

const inputs = { email: 'email', uri: 'url', date: 'date' } as const

function textKind(schema: Members): Kind {
  const { format, maxLength, contentMediaType } = schema
  if (format === 'date-time') return { type: 'moment' }
  const input = Object.hasOwn(inputs, String(format)) ? inputs[format as keyof typeof inputs] : 'text'
  const isLong = Number(maxLength) > lineLengthMax || contentMediaType !== undefined
  return { type: 'text', input, isLong: input === 'text' && isLong }
}

/** Browsers count steps from the least number, JSON Schema counts them from 0. */
function numberKind(schema: Members, isWhole: boolean): Kind {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const least = numberOr(minimum, Number.NEGATIVE_INFINITY)
  const most = numberOr(maximum, Number.POSITIVE_INFINITY)
  if (!isWhole) return { type: 'number', isWhole, ...bounds(least, most) }
  const min = Math.max(Math.ceil(least), Math.floor(numberOr(exclusiveMinimum, Number.NEGATIVE_INFINITY)) + 1)
  const max = Math.min(Math.floor(most), Math.ceil(numberOr(exclusiveMaximum, Number.POSITIVE_INFINITY)) - 1)
  const multiple = numberOr(multipleOf, 1)
  const step = Number.isInteger(multiple) && multiple > 0 && Number.isFinite(min) ? multiple : 1
  return { type: 'number', isWhole, ...bounds(Math.ceil(min / step) * step, max), step }
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

function bounds(min: number, max: number): { min?: number; max?: number } {
  return { ...(Number.isFinite(min) && { min }), ...(Number.isFinite(max) && { max }) }
}
