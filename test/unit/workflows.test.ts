/** The checks of variables and outputs against their schemas: misfits by pointer, defaults, secrets wherever they are. */
import { expect, test } from 'vitest'
import type { Secrets } from '../../src/domain/workflows/secrets.ts'
import { type JsonSchema, WorkflowError } from '../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { workflow } from '../support/domain.ts'

const mask = '********'

function checkVariables(variables: JsonSchema, value: Record<string, unknown>, earlier?: Secrets) {
  return new Workflows([workflow({ variables })]).checkVariables('anything', value, earlier)
}

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more })
const secret = { type: 'string', writeOnly: true }

test('workflows are listed by id, and found by it', () => {
  const workflows = new Workflows([workflow({ id: 'b' }), workflow({ id: 'a' }), workflow({ id: 'B' })])
  expect(workflows.list().map(({ id }) => id)).toEqual(['B', 'a', 'b'])
  expect(workflows.get('a')).toEqual(workflow({ id: 'a' }))
  expect(workflows.get('c')).toBeUndefined()
})

test.each<[string, JsonSchema, Record<string, unknown>, object]>([
  ['a missing member', object({}, { required: ['a'] }), {}, { pointer: '/a', detail: 'is required' }],
  [
    'a missing member deep inside, of a name that a pointer escapes',
    object({ 'x/y': object({}, { required: ['~z'] }) }),
    { 'x/y': {} },
    { pointer: '/x~1y/~0z', detail: 'is required' },
  ],
  [
    'a member that is not named',
    object({ a: {} }, { additionalProperties: false }),
    { a: 1, b: 2 },
    { pointer: '/b', detail: 'is not a member that the schema names' },
  ],
  [
    'a member that is not evaluated',
    { type: 'object', allOf: [object({ a: {} })], unevaluatedProperties: false },
    { a: 1, b: 2 },
    { pointer: '/b', detail: 'is not a member that the schema names' },
  ],
  ['a wrong type', object({ a: { type: 'integer' } }), { a: 1.5 }, { pointer: '/a', detail: 'must be integer' }],
  [
    'an element of an array',
    object({ a: { type: 'array', items: { type: 'string' } } }),
    { a: ['x', 7] },
    { pointer: '/a/1', detail: 'must be string' },
  ],
  [
    'a value that is not among those allowed',
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
])('%s is named by its pointer, with the reason', (_, schema, value, misfit) => {
  expect(checkVariables(schema, value)).toEqual({ errors: [misfit] })
})

test('every misfit is named, up to twenty', () => {
  const schema = object({ a: { type: 'string' }, b: { type: 'string' } }, { required: ['c'] })
  expect(checkVariables(schema, { a: 1, b: 2 })).toMatchObject({
    errors: [{ pointer: '/c' }, { pointer: '/a' }, { pointer: '/b' }],
  })
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`m${index}`, 1]))
  const checked = checkVariables(object({}, { additionalProperties: false }), many)
  expect('errors' in checked && checked.errors).toHaveLength(20)
})

test('of what is large, the first misfit alone is named, since all of them would fill the memory', () => {
  const required = Array.from({ length: 20 }, (_, number) => `member${number}`)
  const rows = { type: 'array', items: { type: 'object', required } }
  const workflows = new Workflows([workflow({ variables: { type: 'object', properties: { rows } } })])
  // Every object lacks 20 members: six million misfits, which ended the process when all were gathered.
  const variables = { rows: Array.from({ length: 300_000 }, () => ({})) }
  expect(workflows.checkVariables('anything', variables)).toEqual({
    errors: [{ pointer: '/rows/0/member0', detail: 'is required' }],
  })
})

test('defaults are filled in, also inside what is there', () => {
  const schema = object({ top: { type: 'integer', default: 5 }, in: object({ x: { default: [1] } }) })
  expect(checkVariables(schema, { in: {} })).toEqual({ masked: { top: 5, in: { x: [1] } }, secrets: {} })
  // What one caller was given is not shared with the next.
  expect(checkVariables(schema, { top: 7 })).toEqual({ masked: { top: 7 }, secrets: {} })
})

test.each<[string, JsonSchema, Record<string, unknown>, Record<string, unknown>]>([
  ['a property', object({ a: secret }), { a: 's', b: 1 }, { '/a': 's' }],
  ['a nested property', object({ a: object({ b: secret }) }), { a: { b: 's', c: 1 } }, { '/a/b': 's' }],
  ['items', object({ a: { type: 'array', items: secret } }), { a: ['s', 't'] }, { '/a/0': 's', '/a/1': 't' }],
  [
    'an item in its place',
    object({ a: { type: 'array', prefixItems: [{}, secret], minItems: 2, items: false } }),
    { a: ['x', 's'] },
    { '/a/1': 's' },
  ],
  ['a $ref', object({ a: { $ref: '#/$defs/s' } }, { $defs: { s: secret } }), { a: 's' }, { '/a': 's' }],
  [
    'a $ref to a schema that refers to itself',
    object({ a: { $ref: '#/$defs/s' } }, { $defs: { s: object({ secret, next: { $ref: '#/$defs/s' } }) } }),
    { a: { secret: 's', next: { secret: 't', next: {} } } },
    { '/a/secret': 's', '/a/next/secret': 't' },
  ],
  ['allOf', { type: 'object', allOf: [object({ a: secret })] }, { a: 's' }, { '/a': 's' }],
  ['the first of anyOf', { type: 'object', anyOf: [object({ a: secret }), object({})] }, { a: 's' }, { '/a': 's' }],
  ['the last of anyOf', { type: 'object', anyOf: [object({}), object({ a: secret })] }, { a: 's' }, { '/a': 's' }],
  [
    'the last of anyOf where nothing else is allowed',
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
    'a pattern of names',
    { type: 'object', patternProperties: { '^secret': secret } },
    { secretA: 's', b: 1 },
    { '/secretA': 's' },
  ],
  ['all other members', object({ a: {} }, { additionalProperties: secret }), { a: 1, b: 's' }, { '/b': 's' }],
  [
    'a dependent schema',
    { type: 'object', dependentSchemas: { a: object({ b: secret }) } },
    { a: 1, b: 's' },
    { '/b': 's' },
  ],
  ['a default', object({ a: { ...secret, default: 'from the schema' } }), {}, { '/a': 'from the schema' }],
  ['a number', object({ a: { type: 'number', writeOnly: true } }), { a: 1234 }, { '/a': 1234 }],
  ['an object whole', object({ a: { type: 'object', writeOnly: true } }), { a: { b: 1 } }, { '/a': { b: 1 } }],
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

test('a member is no secret because another value of it would be, or because it is marked as none', () => {
  const schema = object({ a: { type: 'string', writeOnly: false }, b: secret })
  expect(checkVariables(schema, { a: 'x' })).toEqual({ masked: { a: 'x' }, secrets: {} })
})

test('the secrets of one check are not those of the next', () => {
  const workflows = new Workflows([workflow({ variables: object({ a: secret }) }), workflow({ id: 'other' })])
  workflows.checkVariables('anything', { a: 's' })
  expect(workflows.checkVariables('other', { a: 's' })).toEqual({ masked: { a: 's' }, secrets: {} })
  workflows.checkVariables('anything', { a: 7 })
  expect(workflows.checkVariables('anything', {})).toEqual({ masked: {}, secrets: {} })
})

const isMask = 'is the mask of a secret, not its value'

test.each<[string, JsonSchema, Record<string, unknown>, string[]]>([
  ['a secret', object({ a: secret }), { a: mask }, ['/a']],
  [
    'some of several',
    object({ a: secret, b: secret, c: object({ d: secret }) }),
    { a: mask, b: 's', c: { d: mask } },
    ['/a', '/c/d'],
  ],
  ['a secret that is longer', object({ a: { ...secret, minLength: 20 } }), { a: mask }, ['/a']],
  [
    'a secret that is no text',
    object({ a: { type: 'object', writeOnly: true, required: ['b'] } }),
    { a: mask },
    ['/a'],
  ],
  ['an element', object({ a: { type: 'array', items: secret } }), { a: ['s', mask] }, ['/a/1']],
])('a mask in the place of %s is a misfit, said once', (_, schema, value, pointers) => {
  expect(checkVariables(schema, value)).toEqual({ errors: pointers.map((pointer) => ({ pointer, detail: isMask })) })
})

test('a mask is named beside what else does not fit, and means nothing where no secret belongs', () => {
  const schema = object({ a: secret, b: { type: 'string' }, c: { type: 'integer' } })
  expect(checkVariables(schema, { a: mask, b: mask, c: 'x' })).toEqual({
    errors: [
      { pointer: '/a', detail: isMask },
      { pointer: '/c', detail: 'must be integer' },
    ],
  })
  expect(checkVariables(schema, { b: mask })).toEqual({ masked: { b: mask }, secrets: {} })
})

test('an earlier secret is put where its mask stands, before the check', () => {
  const schema = object({ a: secret, b: { type: 'object', writeOnly: true, required: ['c'] }, d: secret })
  const earlier = { '/a': 's', '/b': { c: 1 }, '/d': 't' }
  const value = { a: mask, b: mask, d: 'another' }
  const secrets = { '/a': 's', '/b': { c: 1 }, '/d': 'another' }
  expect(checkVariables(schema, value, earlier)).toEqual({ masked: { a: mask, b: mask, d: mask }, secrets })
  expect(value).toEqual({ a: mask, b: mask, d: 'another' })
  expect(checkVariables(schema, { a: 'new' }, earlier)).toEqual({ masked: { a: mask }, secrets: { '/a': 'new' } })
  const errors = [{ pointer: '/a', detail: isMask }]
  expect(checkVariables(schema, { a: mask, b: mask }, { '/b': { c: 1 } })).toEqual({ errors })
})

test.each<[string, JsonSchema]>([
  ['does not call a secret any more', object({ a: { type: 'object' } })],
  ['does not know any more', object({})],
  ['takes in another form', object({ a: { type: 'string', writeOnly: true } })],
  [
    'takes with other members',
    object({ a: { type: 'object', writeOnly: true, additionalProperties: false, properties: { x: {} } } }),
  ],
])('an earlier secret that the schema %s is not told of, nor its parts', (_, schema) => {
  const checked = checkVariables(schema, { a: mask, b: 1 }, { '/a': { canary: 'canary' } })
  expect(checked).toEqual({ errors: [{ pointer: '/a', detail: isMask }] })
})

test('an earlier secret within what is a secret as a whole by now stays one', () => {
  const schema = object({ a: { type: 'object', writeOnly: true } })
  const checked = checkVariables(schema, { a: { b: mask, c: 1 } }, { '/a/b': 's' })
  expect(checked).toEqual({ masked: { a: mask }, secrets: { '/a': { b: 's', c: 1 } } })
})

test('an output is checked, and its secrets are masked for good', () => {
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

test.each<[string, Parameters<typeof workflow>[0]]>([
  ['variables', { variables: { type: 'object', properties: { a: { type: 'strnig' } } } }],
  ['variables', { variables: { type: 'object', properties: { a: { $ref: '#/$defs/missing' } } } }],
  ['output', { output: { minimum: 'five' } }],
  ['output', { output: { patern: 'x' } }],
])('a %s schema that is not valid is refused with one sentence', (member, change) => {
  const load = () => new Workflows([workflow(change)])
  expect(load).toThrow(WorkflowError)
  expect(load).toThrow(new RegExp(`^The ${member} schema of workflow "anything" is not valid: [^\\n]+\\.$`))
})
