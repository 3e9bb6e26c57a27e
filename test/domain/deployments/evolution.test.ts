/** What each kind of change of a workflow's schemas means for its callers. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { compareWorkflows, nextMajor, raisesMajor } from '../../../src/domain/deployments/evolution.ts'
import type { JsonSchema } from '../../../src/domain/workflows/workflow.ts'

type Schema = unknown
/** What breaks when the change is made in variables, or in the output. */
type Breaks = 'both' | 'variables' | 'output' | 'none'

const text = { type: 'string' }
const number = { type: 'number' }
const list = (more: object) => ({ type: 'array', ...more })
const closed = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
})
const open = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const one = { a: text }
const two = { a: text, b: number }

const kinds: [title: string, before: Schema, after: Schema, breaks: Breaks][] = [
  ['another type', text, number, 'both'],
  ['integer to number', { type: 'integer' }, number, 'output'],
  ['number to integer', number, { type: 'integer' }, 'variables'],
  ['a type to any value', text, {}, 'output'],
  ['any value to a type', {}, text, 'variables'],
  ['any value to none', {}, false, 'variables'],
  ['null is allowed', text, { type: ['string', 'null'] }, 'output'],
  ['null is no longer allowed', { type: ['string', 'null'] }, text, 'variables'],
  ['one of two types is replaced', { type: ['string', 'number'] }, { type: ['string', 'boolean'] }, 'both'],
  ['a value is added', { enum: ['a', 'b'] }, { enum: ['a', 'b', 'c'] }, 'output'],
  ['a value is removed', { enum: ['a', 'b'] }, { enum: ['a'] }, 'variables'],
  ['a value is replaced', { enum: ['a', 'b'] }, { enum: ['a', 'c'] }, 'both'],
  ['a constant is replaced', { const: 'a' }, { const: 'b' }, 'both'],
  ['values are no longer limited', { enum: ['a'], ...text }, text, 'output'],
  ['values become limited', text, { enum: ['a'], ...text }, 'variables'],
  ['a minimum is added', number, { ...number, minimum: 1 }, 'variables'],
  ['a minimum is raised', { ...number, minimum: 1 }, { ...number, minimum: 2 }, 'variables'],
  ['a minimum is lowered', { ...number, minimum: 1 }, { ...number, minimum: 0 }, 'output'],
  ['a minimum is removed', { ...number, minimum: 1 }, number, 'output'],
  ['a maximum is added', number, { ...number, maximum: 5 }, 'variables'],
  ['a maximum is lowered', { ...number, maximum: 5 }, { ...number, maximum: 4 }, 'variables'],
  ['a maximum is raised', { ...number, maximum: 5 }, { ...number, maximum: 6 }, 'output'],
  ['a maximum is removed', { ...number, maximum: 5 }, number, 'output'],
  ['an exclusive minimum is raised', { exclusiveMinimum: 1 }, { exclusiveMinimum: 2 }, 'variables'],
  ['an exclusive minimum is lowered', { exclusiveMinimum: 1 }, { exclusiveMinimum: 0 }, 'output'],
  ['an exclusive maximum is raised', { exclusiveMaximum: 1 }, { exclusiveMaximum: 2 }, 'output'],
  ['an exclusive maximum is lowered', { exclusiveMaximum: 1 }, { exclusiveMaximum: 0 }, 'variables'],
  ['a factor is added', number, { ...number, multipleOf: 2 }, 'variables'],
  ['a factor is changed', { ...number, multipleOf: 2 }, { ...number, multipleOf: 3 }, 'both'],
  ['a factor is removed', { ...number, multipleOf: 2 }, number, 'output'],
  ['a minimum length is added', text, { ...text, minLength: 2 }, 'variables'],
  ['a minimum length is raised', { ...text, minLength: 1 }, { ...text, minLength: 2 }, 'variables'],
  ['a minimum length is lowered', { ...text, minLength: 2 }, { ...text, minLength: 1 }, 'output'],
  ['a minimum length is removed', { ...text, minLength: 2 }, text, 'output'],
  ['a maximum length is added', text, { ...text, maxLength: 2 }, 'variables'],
  ['a maximum length is lowered', { ...text, maxLength: 2 }, { ...text, maxLength: 1 }, 'variables'],
  ['a maximum length is raised', { ...text, maxLength: 1 }, { ...text, maxLength: 2 }, 'output'],
  ['a maximum length is removed', { ...text, maxLength: 2 }, text, 'output'],
  ['a pattern is added', text, { ...text, pattern: '^a' }, 'variables'],
  ['a pattern is changed', { ...text, pattern: '^a' }, { ...text, pattern: '^b' }, 'both'],
  ['a pattern is removed', { ...text, pattern: '^a' }, text, 'output'],
  ['a format is added', text, { ...text, format: 'date' }, 'variables'],
  ['a format is changed', { ...text, format: 'date' }, { ...text, format: 'email' }, 'both'],
  ['a format is removed', { ...text, format: 'date' }, text, 'output'],
  ['more items are needed', list({ minItems: 1 }), list({ minItems: 2 }), 'variables'],
  ['fewer items are needed', list({ minItems: 2 }), list({ minItems: 1 }), 'output'],
  ['fewer items are allowed', list({ maxItems: 2 }), list({ maxItems: 1 }), 'variables'],
  ['more items are allowed', list({ maxItems: 1 }), list({ maxItems: 2 }), 'output'],
  ['items must differ', list({}), list({ uniqueItems: true }), 'variables'],
  ['items may be equal', list({ uniqueItems: true }), list({}), 'output'],
  ['items have another type', list({ items: text }), list({ items: number }), 'both'],
  ['items become narrower', list({ items: text }), list({ items: { ...text, maxLength: 1 } }), 'variables'],
  ['items become wider', list({ items: { ...text, maxLength: 1 } }), list({ items: text }), 'output'],
  ['items get a schema', list({}), list({ items: text }), 'variables'],
  ['items lose their schema', list({ items: text }), list({}), 'output'],
  // Of a schema without a type, the comparison knows only that it may allow anything.
  ['no items are allowed', list({ items: text }), list({ items: false }), 'both'],
  ['the first items change', list({ prefixItems: [text] }), list({ prefixItems: [number] }), 'both'],
  ['an item must be contained', list({}), list({ contains: text }), 'variables'],
  ['an optional member is added', closed(one), closed(two), 'none'],
  ['a required member is added', closed(one), closed(two, { required: ['b'] }), 'variables'],
  ['a member of any value is defined', open(one), open(two), 'variables'],
  ['a member is removed', closed(two), closed(one), 'both'],
  ['a member becomes required', closed(one), closed(one, { required: ['a'] }), 'variables'],
  ['a member becomes optional', closed(one, { required: ['a'] }), closed(one), 'output'],
  ['further members are refused', open(one), closed(one), 'variables'],
  ['further members are allowed', closed(one), open(one), 'none'],
  [
    'an optional member is added, otherwise unevaluated',
    open(one, { unevaluatedProperties: false }),
    open(two, { unevaluatedProperties: false }),
    'none',
  ],
  [
    'further members have another type',
    open({}, { additionalProperties: text }),
    open({}, { additionalProperties: number }),
    'both',
  ],
  ['more members are needed', open({}), open({}, { minProperties: 1 }), 'variables'],
  ['fewer members are allowed', open({}, { maxProperties: 2 }), open({}, { maxProperties: 1 }), 'variables'],
  ['names get a rule', open({}), open({}, { propertyNames: { maxLength: 1 } }), 'variables'],
  [
    'members by pattern change',
    open({}, { patternProperties: { '^a': text } }),
    open({}, { patternProperties: { '^a': number } }),
    'both',
  ],
  ['a member needs another', closed(two), closed(two, { dependentRequired: { a: ['b'] } }), 'variables'],
  ['a default is added', text, { ...text, default: 'a' }, 'none'],
  ['a default is changed', { ...text, default: 'a' }, { ...text, default: 'b' }, 'variables'],
  ['a default is removed', { ...text, default: 'a' }, text, 'variables'],
  ['an alternative is added', { oneOf: [text] }, { oneOf: [text, number] }, 'output'],
  ['an alternative is removed', { anyOf: [text, number] }, { anyOf: [text] }, 'variables'],
  [
    'an alternative becomes narrower',
    { anyOf: [text, number] },
    { anyOf: [{ ...text, maxLength: 1 }, number] },
    'variables',
  ],
  ['a value is excluded', text, { ...text, not: { const: 'a' } }, 'variables'],
  ['a condition is added', {}, { if: text, then: { minLength: 2 } }, 'variables'],
  ['a conjunction is added', text, { ...text, allOf: [{ maxLength: 1 }] }, 'variables'],
  [
    'its title, description and examples change',
    text,
    { ...text, title: 'New', description: 'New.', examples: ['a'] },
    'none',
  ],
  ['it is deprecated', text, { ...text, deprecated: true }, 'none'],
  ['it becomes a secret', text, { ...text, writeOnly: true }, 'output'],
  ['it is no longer a secret', { ...text, writeOnly: true }, text, 'none'],
]

/** Wherever a schema can be: the change of the member `v`, of a definition, and of all values. */
const places: Record<string, (schema: Schema) => object> = {
  'a member': (v) => ({ type: 'object', properties: { v } }),
  'a definition': (v) => ({
    type: 'object',
    properties: { list: { type: 'array', items: { $ref: '#/$defs/V' } } },
    $defs: { V: { type: 'object', properties: { v } } },
  }),
}

const other = { type: 'object' }
const described = (variables: object, output: object) => {
  return { id: 'w', version: '1.0.0', variables: variables as JsonSchema, output: output as JsonSchema }
}

function breaksIn(member: 'variables' | 'output', before: object, after: object): boolean {
  const pair = [before, after].map((each) => (member === 'variables' ? described(each, other) : described(other, each)))
  const sentences = compareWorkflows(...(pair as [ReturnType<typeof described>, ReturnType<typeof described>]))
  const breaking = sentences.filter(({ kind }) => kind === 'breaking')
  for (const { text, reason } of breaking) {
    expect(text).toMatch(/^[A-Z`].*\.$/)
    expect(text).not.toMatch(/undefined|\{operation\}|\{response\}/)
    expect(reason).not.toBe('')
  }
  return breaking.length > 0
}

const values = [
  ...[null, true, '', 'a', 'b', 'c', 'ab', 'abc', 'ba', '2026-01-01', 'a@b.example', -1, 0, 0.5, 1, 2, 3, 4, 5, 6, 7],
  ...[[], ['a'], ['a', 'a'], ['ab'], [1], [1, 1], ['a', 'b', 'c'], [null]],
  ...[
    {},
    { a: 'x' },
    { a: 1 },
    { b: 1 },
    { b: 'x' },
    { a: 'x', b: 1 },
    { a: 'x', b: 'x' },
    { ab: 'x' },
    { ab: 1 },
    { c: 1 },
  ],
]

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)

function accepts(schema: object): (value: unknown) => boolean {
  const validate = ajv.compile(schema)
  return (v) => validate({ v })
}

test('there are at least 77 kinds of change', () => {
  expect(new Set(kinds.map(([title]) => title)).size).toBe(kinds.length)
  expect(kinds.length).toBeGreaterThanOrEqual(77)
})

describe.each(Object.entries(places))('in %s', (name, at) => {
  test.each(kinds)('%s', (_, before, after, breaks) => {
    expect(breaksIn('variables', at(before), at(after))).toBe(breaks === 'both' || breaks === 'variables')
    expect(breaksIn('output', at(before), at(after))).toBe(breaks === 'both' || breaks === 'output')
    expect(breaksIn('variables', at(after), at(after))).toBe(false)
    if (name !== 'a member') return
    const [was, is] = [accepts(at(before)), accepts(at(after))]
    const refused = values.filter((value) => was(value) && !is(value))
    // Ajv's verdict: a change that breaks nothing refuses no value that was accepted.
    if (breaks === 'none' || breaks === 'output') expect(refused).toEqual([])
    else if (!/default|defined/.test(_)) expect(refused).not.toEqual([])
  })
})

test('a change is described with its place and its effect', () => {
  const before = described({ type: 'object', properties: { path: text }, additionalProperties: false }, closed(two))
  const after = described(
    { type: 'object', required: ['lang'], properties: { path: text, lang: text }, additionalProperties: false },
    closed(one),
  )
  const sentences = compareWorkflows(before, after).filter(({ kind }) => kind === 'breaking')
  expect(sentences.map((each) => [each.text, each.reason])).toEqual([
    ['`variables` requires the new member `lang`.', 'Requests that were accepted are now rejected.'],
    ['`output` no longer has the member `b`.', 'Clients that read it find nothing.'],
  ])
})

test('recursive schemas and references that cannot be resolved are compared, too', () => {
  const tree = (leaf: object) => ({
    type: 'object',
    properties: { root: { $ref: '#/$defs/Node' } },
    $defs: {
      Node: { type: 'object', properties: { leaf, children: { type: 'array', items: { $ref: '#/$defs/Node' } } } },
    },
  })
  expect(breaksIn('variables', tree(text), tree(text))).toBe(false)
  expect(breaksIn('variables', tree(text), tree(number))).toBe(true)
  const byAnchor = (type: string) => ({
    type: 'object',
    properties: { v: { $ref: '#value' } },
    $defs: { V: { $anchor: 'value', type } },
  })
  expect(breaksIn('variables', byAnchor('string'), byAnchor('string'))).toBe(false)
  expect(breaksIn('variables', byAnchor('string'), byAnchor('number'))).toBe(true)
})

test('the major version is the first number of a version', () => {
  expect(raisesMajor('1.9.0', '2.0.0')).toBe(true)
  expect(raisesMajor('v1', 'v2')).toBe(true)
  expect(raisesMajor('1.2.0', '1.3.0')).toBe(false)
  expect(raisesMajor('2.0.0', '1.0.0')).toBe(false)
  expect(raisesMajor('draft', 'final')).toBe(false)
  expect([nextMajor('1.9.3'), nextMajor('v4'), nextMajor('draft')]).toEqual(['2.0.0', '5.0.0', '1.0.0'])
})
