/** Deriving form fields from a workflow's JSON Schema. */
import { describe, expect, test } from 'vitest'
import { hasFieldForAll, variableFields } from '../../src/surfaces/dashboard/workflows/variable-fields.ts'

type Json = Record<string, unknown>

function object(properties: Json, more: Json = {}): Json {
  return { type: 'object', properties, ...more }
}

/** Returns the kind of the field of a schema with one member. */
function kindOf(schema: unknown, more: Json = {}) {
  return variableFields(object({ it: schema }, more))[0]?.kind
}

describe('the field of a schema', () => {
  test.each([
    [{ type: 'string' }, { type: 'text', input: 'text', isLong: false }],
    [
      { type: 'string', maxLength: 5000 },
      { type: 'text', input: 'text', isLong: true },
    ],
    [
      { type: 'string', format: 'email' },
      { type: 'text', input: 'email', isLong: false },
    ],
    [
      { type: 'string', format: 'uri', maxLength: 2000 },
      { type: 'text', input: 'url', isLong: false },
    ],
    [
      { type: 'string', format: 'date' },
      { type: 'text', input: 'date', isLong: false },
    ],
    [
      { type: 'string', format: 'toString' },
      { type: 'text', input: 'text', isLong: false },
    ],
    [{ type: 'string', format: 'date-time' }, { type: 'moment' }],
    [
      { type: 'number', minimum: 0.5, maximum: 2 },
      { type: 'number', isWhole: false, min: 0.5, max: 2 },
    ],
    [{ type: 'integer' }, { type: 'number', isWhole: true, step: 1 }],
    [
      { type: 'integer', minimum: 0.5, exclusiveMaximum: 10 },
      { type: 'number', isWhole: true, min: 1, max: 9, step: 1 },
    ],
    [
      { type: 'integer', minimum: 1, multipleOf: 5 },
      { type: 'number', isWhole: true, min: 5, step: 5 },
    ],
    [{ type: 'boolean', default: true }, { type: 'checkbox' }],
    [{ type: 'boolean' }, { type: 'choice', values: [true, false] }],
    [{ enum: ['a', 1, null] }, { type: 'choice', values: ['a', 1, null] }],
    [{ const: { a: 1 } }, { type: 'choice', values: [{ a: 1 }] }],
    [{ anyOf: [{ const: 'a' }, { const: 'b' }] }, { type: 'choice', values: ['a', 'b'] }],
    [{ type: 'null' }, { type: 'choice', values: [null] }],
    [{ type: 'array', items: { type: 'string' } }, { type: 'lines' }],
    [{ type: 'array', items: { type: 'integer' } }, { type: 'json' }],
    [{ type: 'array', prefixItems: [{}], items: { type: 'string' } }, { type: 'json' }],
    [{ type: 'object' }, { type: 'json' }],
    [{ type: ['string', 'integer'] }, { type: 'json' }],
    [{ type: ['string', 'null'] }, { type: 'text', input: 'text', isLong: false }],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, { type: 'json' }],
    [{ $ref: '#/$defs/nothing' }, { type: 'json' }],
    [{}, { type: 'json' }],
    [true, { type: 'json' }],
    ['nonsense', { type: 'json' }],
    [
      { type: 'string', enum: [], const: undefined },
      { type: 'choice', values: [undefined] },
    ],
  ])('%j', (schema, kind) => {
    expect(kindOf(schema)).toEqual(kind)
  })

  test('a required boolean is a checkbox', () => {
    expect(kindOf({ type: 'boolean' }, { required: ['it'] })).toEqual({ type: 'checkbox' })
  })

  test('references are resolved, and circular references end', () => {
    const $defs = { secret: { type: 'string', writeOnly: true }, loop: { $ref: '#/$defs/loop' }, 'a/b~c': { const: 1 } }
    const schema = object(
      { token: { $ref: '#/$defs/secret' }, loop: { $ref: '#/$defs/loop' }, one: { $ref: '#/$defs/a~1b~0c' } },
      { $defs },
    )
    const [token, loop, one] = variableFields(schema)
    expect(token).toMatchObject({ isSecret: true, kind: { type: 'text' } })
    expect(loop).toMatchObject({ kind: { type: 'json' } })
    expect(one).toMatchObject({ kind: { type: 'choice', values: [1] } })
  })

  test('a required member without a schema has a field', () => {
    expect(variableFields({ type: 'object', required: ['it'] })).toMatchObject([{ name: 'it', kind: { type: 'json' } }])
  })

  test('a schema without properties has no fields, and is covered only when it allows none', () => {
    expect(variableFields({ type: 'object' })).toEqual([])
    expect(hasFieldForAll({ type: 'object' })).toBe(false)
    expect(hasFieldForAll({ type: 'object', additionalProperties: false })).toBe(true)
    expect(hasFieldForAll({ type: 'object', properties: 'nonsense', required: 'nonsense' })).toBe(false)
  })
})
