import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { makeOutput } from '../../src/simulator/example-output.ts'
import { exampleOfPattern } from '../../src/simulator/pattern-example.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { workflow } from './workflows.ts'

type Schema = Record<string, unknown>

const string = (members: Schema = {}) => ({ type: 'string', ...members })
const object = (properties: Schema, members: Schema = {}) => ({ type: 'object', properties, ...members })

test.each<[string, Schema, unknown]>([
  ['an example of the schema', object({}, { examples: [{ a: 1 }] }), { a: 1 }],
  ['the first example that is valid', { type: 'integer', examples: ['no', 7] }, 7],
  [
    'constants, defaults and enumerations',
    object({ a: { const: 2 }, b: { default: 'x' }, c: { enum: [true, 1] } }),
    { a: 2, b: 'x', c: true },
  ],
  ['examples of members', object({ a: string({ examples: ['Ada'] }) }), { a: 'Ada' }],
  [
    'members that are not required',
    object({ name: string(), n: { type: 'number' } }),
    { name: 'Example of name', n: 1 },
  ],
  ['items of arrays', { type: 'array', items: object({ n: { type: 'integer', minimum: 5 } }) }, [{ n: 5 }]],
  [
    'formats',
    object({ at: string({ format: 'date-time' }), to: string({ format: 'email' }) }),
    { at: '2026-01-31T12:00:00Z', to: 'ada@example.com' },
  ],
  [
    'the lengths of texts',
    object({ a: string({ minLength: 20 }), b: string({ maxLength: 3 }) }),
    { a: 'Example of a text te', b: 'Exa' },
  ],
  ['patterns', string({ pattern: '^[A-Z]{2}-\\d{4}(/[a-z]+)?$' }), 'AA-1111'],
  ['numbers within bounds', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.5 }, 0.25],
  ['multiples', { type: 'integer', minimum: 11, multipleOf: 5 }, 15],
  ['negative numbers', { type: 'integer', maximum: -3 }, -3],
  ['different items', { type: 'array', minItems: 3, uniqueItems: true, items: { type: 'integer' } }, [1, 2, 3]],
  ['tuples', { type: 'array', prefixItems: [{ type: 'boolean' }, { const: 2 }], items: false, minItems: 2 }, [true, 2]],
  ['references', { ...object({ a: { $ref: '#/$defs/a' } }), $defs: { a: { const: 3 } } }, { a: 3 }],
  [
    'all parts',
    { allOf: [object({ a: { const: 1 } }, { required: ['a'] }), object({ b: { const: 2 } }, { required: ['b'] })] },
    { a: 1, b: 2 },
  ],
  [
    'an alternative that fits',
    object({ a: { oneOf: [{ type: 'number' }, { type: 'number', minimum: 0 }, { const: 'x' }] } }),
    { a: 'x' },
  ],
  [
    'only required members, if others conflict',
    object({ a: { const: 1 }, b: { const: 1 } }, { maxProperties: 1, required: ['b'] }),
    { b: 1 },
  ],
  [
    'members without names',
    { type: 'object', minProperties: 2, additionalProperties: { type: 'integer' } },
    { member1: 1, member2: 1 },
  ],
  [
    'a recursive schema',
    { $defs: {}, ...object({ name: { const: 'x' }, child: { $ref: '#' } }, { required: ['name'] }) },
    { name: 'x', child: { name: 'x', child: { name: 'x', child: { name: 'x' } } } },
  ],
  ['an empty array, if its items cannot be', { type: 'array', items: false }, []],
  ['null', { type: 'null' }, null],
])('makes an output of %s', (_, output, expected) => {
  const made = workflow('made', { output })
  const value = makeOutput(made)
  expect(value).toEqual(expected)
  expect(new Workflows([made]).checkOutput('made', value)).toHaveProperty('masked')
})

test('makes no output that does not fit', () => {
  expect(makeOutput(workflow('none', { output: { not: {} } }))).toBeUndefined()
  expect(makeOutput(workflow('none', { output: object({ a: false }, { required: ['a'] }) }))).toBeUndefined()
})

test.each([
  ['^(?:red|green)$', 'red'],
  ['^[^a-z\\s]+$', '1'],
  ['^\\p{Lu}\\w*\\.x?$', 'A.'],
  ['^[\\]\\-x]{2,3}$', '--'],
  ['a|b', 'a'],
])('finds a text for the pattern %s', (pattern, text) => {
  expect(exampleOfPattern(pattern, 0, 100)).toBe(text)
  expect(text).toMatch(new RegExp(pattern, 'u'))
})

test('the length of a text decides how often a pattern repeats', () => {
  expect(exampleOfPattern('^a+b?$', 4, 10)).toBe('aaab')
  expect(exampleOfPattern('^a{5}$', 0, 4)).toBeUndefined()
})

test('each example workflow has an output', async () => {
  const snapshot = await snapshotOf(fileURLToPath(new URL('../../examples/workflows', import.meta.url)))
  const examples = new Workflows(snapshot.workflows)
  expect(examples.list().length).toBeGreaterThan(5)
  for (const example of examples.list())
    expect(examples.checkOutput(example.id, makeOutput(example)), example.id).toHaveProperty('masked')
})
