/** Validation of variables and outputs: errors, defaults and secrets. */
import { expect, test } from 'vitest'
import type { Secrets } from '../../../src/domain/workflows/secrets.ts'
import { type JsonSchema, WorkflowError } from '../../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../../src/domain/workflows/workflows.ts'
import { workflow } from '../../support/domain.ts'

const mask = '********'

function checkVariables(variables: JsonSchema, value: Record<string, unknown>, earlier?: Secrets) {
  return new Workflows([workflow({ variables })]).checkVariables('anything', value, earlier)
}

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more })
const secret = { type: 'string', writeOnly: true }

test('workflows are sorted and found by ID', () => {
  const workflows = new Workflows([workflow({ id: 'b' }), workflow({ id: 'a' }), workflow({ id: 'B' })])
  expect(workflows.list().map(({ id }) => id)).toEqual(['B', 'a', 'b'])
  expect(workflows.get('a')).toEqual(workflow({ id: 'a' }))
  expect(workflows.get('c')).toBeUndefined()
})

test.each<[string, JsonSchema, Record<string, unknown>, object]>([
  ['a missing member', object({}, { required: ['a'] }), {}, { pointer: '/a', detail: 'is required' }],
  [
    'a missing nested member whose name a pointer escapes',
    object({ 'x/y': object({}, { required: ['~z'] }) }),
    { 'x/y': {} },
    { pointer: '/x~1y/~0z', detail: 'is required' },
  ],
  [
    'an unknown member',
    object({ a: {} }, { additionalProperties: false }),
    { a: 1, b: 2 },
    { pointer: '/b', detail: 'is not in the schema' },
  ],
  [
    'an unevaluated member',
    { type: 'object', allOf: [object({ a: {} })], unevaluatedProperties: false },
    { a: 1, b: 2 },
    { pointer: '/b', detail: 'is not in the schema' },
  ],
  ['a wrong type', object({ a: { type: 'integer' } }), { a: 1.5 }, { pointer: '/a', detail: 'must be integer' }],
  [
    'an array element',
    object({ a: { type: 'array', items: { type: 'string' } } }),
    { a: ['x', 7] },
    { pointer: '/a/1', detail: 'must be string' },
  ],
  [
    'a value outside of an enum',
    object({ a: { enum: ['x', 7] } }),
    { a: 'y' },
    { pointer: '/a', detail: 'must be equal to one of the allowed values: "x", 7' },
  ],
  [
    'a wrong format',
    object({ a: { type: 'string', format: 'uri' } }),
    { a: 'x' },
    { pointer: '/a', detail: 'must match format "uri"' },
  ],
  [
    'too few members',
    { type: 'object', minProperties: 1 },
    {},
    { pointer: '', detail: 'must NOT have fewer than 1 properties' },
  ],
])('%s is reported with pointer and reason', (_, schema, value, error) => {
  expect(checkVariables(schema, value)).toEqual({ errors: [error] })
})

test('a member that every object inherits is sent only if it is in the body', () => {
  const properties = { constructor: { type: 'string' }, toString: { type: 'string' } }
  expect(checkVariables(object(properties), {})).toEqual({ masked: {}, secrets: {} })
  const missing = { errors: [{ pointer: '/constructor', detail: 'is required' }] }
  expect(checkVariables(object(properties, { required: ['constructor'] }), {})).toEqual(missing)
})

test('up to twenty errors are reported', () => {
  const schema = object({ a: { type: 'string' }, b: { type: 'string' } }, { required: ['c'] })
  expect(checkVariables(schema, { a: 1, b: 2 })).toMatchObject({
    errors: [{ pointer: '/c' }, { pointer: '/a' }, { pointer: '/b' }],
  })
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`m${index}`, 1]))
  const checked = checkVariables(object({}, { additionalProperties: false }), many)
  expect('errors' in checked && checked.errors).toHaveLength(20)
})

test('only the first error of a large value is reported, which bounds the memory', () => {
  const required = Array.from({ length: 20 }, (_, number) => `member${number}`)
  const rows = { type: 'array', items: { type: 'object', required } }
  const workflows = new Workflows([workflow({ variables: { type: 'object', properties: { rows } } })])
  // Every object lacks 20 members. Collecting these six million errors exhausted the memory.
  const variables = { rows: Array.from({ length: 300_000 }, () => ({})) }
  expect(workflows.checkVariables('anything', variables)).toEqual({
    errors: [{ pointer: '/rows/0/member0', detail: 'is required' }],
  })
})

test('defaults are filled in at any depth', () => {
  const schema = object({ top: { type: 'integer', default: 5 }, in: object({ x: { default: [1] } }) })
  expect(checkVariables(schema, { in: {} })).toEqual({ masked: { top: 5, in: { x: [1] } }, secrets: {} })
  // Callers do not share default values.
  expect(checkVariables(schema, { top: 7 })).toEqual({ masked: { top: 7 }, secrets: {} })
})

test.each<[string, JsonSchema, Record<string, unknown>, Record<string, unknown>]>([
  ['a property', object({ a: secret }), { a: 's', b: 1 }, { '/a': 's' }],
  ['a nested property', object({ a: object({ b: secret }) }), { a: { b: 's', c: 1 } }, { '/a/b': 's' }],
  ['items', object({ a: { type: 'array', items: secret } }), { a: ['s', 't'] }, { '/a/0': 's', '/a/1': 't' }],
  [
    'prefixItems',
    object({ a: { type: 'array', prefixItems: [{}, secret], minItems: 2, items: false } }),
    { a: ['x', 's'] },
    { '/a/1': 's' },
  ],
  ['a $ref', object({ a: { $ref: '#/$defs/s' } }, { $defs: { s: secret } }), { a: 's' }, { '/a': 's' }],
  [
    'a recursive $ref',
    object({ a: { $ref: '#/$defs/s' } }, { $defs: { s: object({ secret, next: { $ref: '#/$defs/s' } }) } }),
    { a: { secret: 's', next: { secret: 't', next: {} } } },
    { '/a/secret': 's', '/a/next/secret': 't' },
  ],
  ['allOf', { type: 'object', allOf: [object({ a: secret })] }, { a: 's' }, { '/a': 's' }],
  ['the first of anyOf', { type: 'object', anyOf: [object({ a: secret }), object({})] }, { a: 's' }, { '/a': 's' }],
  ['the last of anyOf', { type: 'object', anyOf: [object({}), object({ a: secret })] }, { a: 's' }, { '/a': 's' }],
  [
    'the last of anyOf without additional properties',
    {
      ...object({ a: {} }),
      anyOf: [{}, object({ a: secret })],
      additionalProperties: false,
      unevaluatedProperties: false,
    },
    { a: 's' },
    { '/a': 's' },
  ],
  [
    'oneOf',
    { type: 'object', oneOf: [object({ a: { type: 'number' } }), object({ a: secret })] },
    { a: 's' },
    { '/a': 's' },
  ],
  [
    'then',
    { type: 'object', if: object({ kind: { const: 'x' } }), then: object({ a: secret }) },
    { kind: 'x', a: 's' },
    { '/a': 's' },
  ],
  [
    'patternProperties',
    { type: 'object', patternProperties: { '^secret': secret } },
    { secretA: 's', b: 1 },
    { '/secretA': 's' },
  ],
  ['additionalProperties', object({ a: {} }, { additionalProperties: secret }), { a: 1, b: 's' }, { '/b': 's' }],
  [
    'dependentSchemas',
    { type: 'object', dependentSchemas: { a: object({ b: secret }) } },
    { a: 1, b: 's' },
    { '/b': 's' },
  ],
  ['a default', object({ a: { ...secret, default: 'from the schema' } }), {}, { '/a': 'from the schema' }],
  ['a number', object({ a: { type: 'number', writeOnly: true } }), { a: 1234 }, { '/a': 1234 }],
  ['a whole object', object({ a: { type: 'object', writeOnly: true } }), { a: { b: 1 } }, { '/a': { b: 1 } }],
  ['a name that a pointer escapes', object({ 'a/b~': secret }), { 'a/b~': 's' }, { '/a~1b~0': 's' }],
])('a secret is found through %s', (_, schema, value, secrets) => {
  const before = structuredClone(value)
  const checked = checkVariables(schema, value)
  expect(checked).toMatchObject({ secrets })
  const { masked } = checked as { masked: Record<string, unknown> }
  expect(JSON.stringify(masked)).toContain(mask)
  for (const each of Object.values(secrets)) expect(JSON.stringify(masked)).not.toContain(JSON.stringify(each))
  expect(Object.keys(masked)).toEqual(expect.arrayContaining(Object.keys(before)))
})

test('`writeOnly: false` does not mark a secret', () => {
  const schema = object({ a: { type: 'string', writeOnly: false }, b: secret })
  expect(checkVariables(schema, { a: 'x' })).toEqual({ masked: { a: 'x' }, secrets: {} })
})

test('checks do not share secrets', () => {
  const workflows = new Workflows([workflow({ variables: object({ a: secret }) }), workflow({ id: 'other' })])
  workflows.checkVariables('anything', { a: 's' })
  expect(workflows.checkVariables('other', { a: 's' })).toEqual({ masked: { a: 's' }, secrets: {} })
  workflows.checkVariables('anything', { a: 7 })
  expect(workflows.checkVariables('anything', {})).toEqual({ masked: {}, secrets: {} })
})

const detail = 'is the mask of a secret, not its value'

test.each<[string, JsonSchema, Record<string, unknown>, string[]]>([
  ['a secret', object({ a: secret }), { a: mask }, ['/a']],
  [
    'some of several',
    object({ a: secret, b: secret, c: object({ d: secret }) }),
    { a: mask, b: 's', c: { d: mask } },
    ['/a', '/c/d'],
  ],
  ['a secret of greater length', object({ a: { ...secret, minLength: 20 } }), { a: mask }, ['/a']],
  ['a secret object', object({ a: { type: 'object', writeOnly: true, required: ['b'] } }), { a: mask }, ['/a']],
  ['an array element', object({ a: { type: 'array', items: secret } }), { a: ['s', mask] }, ['/a/1']],
])('a mask submitted for %s is reported once', (_, schema, value, pointers) => {
  expect(checkVariables(schema, value)).toEqual({ errors: pointers.map((pointer) => ({ pointer, detail })) })
})

test('a mask is reported with other errors, and is an ordinary value outside of secrets', () => {
  const schema = object({ a: secret, b: { type: 'string' }, c: { type: 'integer' } })
  expect(checkVariables(schema, { a: mask, b: mask, c: 'x' })).toEqual({
    errors: [
      { pointer: '/a', detail },
      { pointer: '/c', detail: 'must be integer' },
    ],
  })
  expect(checkVariables(schema, { b: mask })).toEqual({ masked: { b: mask }, secrets: {} })
})

test('an earlier secret replaces its mask before validation', () => {
  const schema = object({ a: secret, b: { type: 'object', writeOnly: true, required: ['c'] }, d: secret })
  const earlier = { '/a': 's', '/b': { c: 1 }, '/d': 't' }
  const value = { a: mask, b: mask, d: 'another' }
  const secrets = { '/a': 's', '/b': { c: 1 }, '/d': 'another' }
  expect(checkVariables(schema, value, earlier)).toEqual({ masked: { a: mask, b: mask, d: mask }, secrets })
  expect(value).toEqual({ a: mask, b: mask, d: 'another' })
  expect(checkVariables(schema, { a: 'new' }, earlier)).toEqual({ masked: { a: mask }, secrets: { '/a': 'new' } })
  const errors = [{ pointer: '/a', detail }]
  expect(checkVariables(schema, { a: mask, b: mask }, { '/b': { c: 1 } })).toEqual({ errors })
})

test.each<[string, JsonSchema]>([
  ['no longer marks as a secret', object({ a: { type: 'object' } })],
  ['no longer has', object({})],
  ['has with another type', object({ a: { type: 'string', writeOnly: true } })],
  [
    'has with other members',
    object({ a: { type: 'object', writeOnly: true, additionalProperties: false, properties: { x: {} } } }),
  ],
])('an earlier secret that the schema %s is not revealed', (_, schema) => {
  const checked = checkVariables(schema, { a: mask, b: 1 }, { '/a': { canary: 'canary' } })
  expect(checked).toEqual({ errors: [{ pointer: '/a', detail }] })
})

test('an earlier secret in an object that is now a secret stays secret', () => {
  const schema = object({ a: { type: 'object', writeOnly: true } })
  const checked = checkVariables(schema, { a: { b: mask, c: 1 } }, { '/a/b': 's' })
  expect(checked).toEqual({ masked: { a: mask }, secrets: { '/a': { b: 's', c: 1 } } })
})

test('an output is validated, and its secrets are masked', () => {
  const output = object({ token: secret, words: { type: 'integer' } }, { required: ['words'] })
  const workflows = new Workflows([
    workflow({ output }),
    workflow({ id: 'token', output: secret }),
    workflow({ id: 'any' }),
  ])
  expect(workflows.checkOutput('anything', { words: 3 })).toEqual({ masked: { words: 3 } })
  expect(workflows.checkOutput('anything', { words: 3, token: 's' })).toEqual({ masked: { words: 3, token: mask } })
  const errors = [{ pointer: '/words', detail: 'must be integer' }]
  expect(workflows.checkOutput('anything', { words: 'three' })).toEqual({ errors })
  expect(workflows.checkOutput('anything', null)).toEqual({ errors: [{ pointer: '', detail: 'must be object' }] })
  expect(workflows.checkOutput('token', 's')).toEqual({ masked: mask })
  for (const value of [null, 0, '', [], false]) expect(workflows.checkOutput('any', value)).toEqual({ masked: value })
})

test('an answer is validated by the schema of its wait, gets its defaults, and its secrets are masked', () => {
  const approval = object({ approved: { type: 'boolean' }, note: { type: 'string', default: '' }, pin: secret })
  const waits = {
    approval: { schema: { ...approval, required: ['approved'] }, title: null, description: null },
    code: { schema: secret, title: null, description: null },
  }
  const workflows = new Workflows([workflow({ waits })])
  const check = (name: string, value: unknown) => workflows.checkAnswer('anything', name, value)
  expect(check('approval', { approved: true })).toEqual({
    value: { approved: true, note: '' },
    masked: { approved: true, note: '' },
    secrets: {},
  })
  expect(check('approval', { approved: false, note: 'n', pin: '1234' })).toEqual({
    value: { approved: false, note: 'n', pin: '1234' },
    masked: { approved: false, note: 'n', pin: mask },
    secrets: { '/value/pin': '1234' },
  })
  expect(check('code', '1234')).toEqual({ value: '1234', masked: mask, secrets: { '/value': '1234' } })
  const copied = (pointer: string) => ({ errors: [{ pointer, detail: 'is the mask of a secret, not its value' }] })
  expect(check('code', mask)).toEqual(copied(''))
  expect(check('approval', { approved: true, pin: mask })).toEqual(copied('/pin'))
  expect(check('approval', { approved: 'yes' })).toEqual({
    errors: [{ pointer: '/approved', detail: 'must be boolean' }],
  })
  expect(check('approval', {})).toEqual({ errors: [{ pointer: '/approved', detail: 'is required' }] })
  for (const name of ['other', 'constructor']) expect(check(name, {})).toBeUndefined()
})

test.each<[string, Parameters<typeof workflow>[0]]>([
  ['waits.approval', { waits: { approval: { schema: { type: 'bolean' }, title: null, description: null } } }],
  ['variables', { variables: { type: 'object', properties: { a: { type: 'strnig' } } } }],
  ['variables', { variables: { type: 'object', properties: { a: { $ref: '#/$defs/missing' } } } }],
  ['output', { output: { minimum: 'five' } }],
  ['output', { output: { patern: 'x' } }],
])('an invalid %s schema is rejected with one sentence', (member, change) => {
  const load = () => new Workflows([workflow(change)]).compile()
  expect(load).toThrow(WorkflowError)
  expect(load).toThrow(new RegExp(`^The ${member} schema of workflow "anything" is invalid: [^\\n]+\\.$`))
})
