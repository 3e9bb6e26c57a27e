/** What a caller's schema costs is bounded, whatever its form: a check by its work, large schemas by a thread. */
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkWorkflows } from '../../../src/domain/workflows/check-workflows.ts'
import { findCompiled } from '../../../src/domain/workflows/compiled-schemas.ts'
import { exampleOf } from '../../../src/domain/workflows/example-values.ts'
import { type JsonSchema, parseWorkflow } from '../../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../../src/domain/workflows/workflows.ts'

function workflow(variables: JsonSchema) {
  return parseWorkflow('w.ts', { id: 'w', version: '1.0.0', title: 'W', variables, output: {}, run: () => null })
}

function errorsOf(variables: JsonSchema, value: Record<string, unknown>) {
  const checked = new Workflows([workflow(variables)]).checkVariables('w', value)
  return 'errors' in checked ? checked.errors : []
}

const tooMuch = {
  pointer: '',
  detail: 'takes too much work to check against the schema: send fewer values, or levels, in one request',
}

/** A value `{x: {x: …}}`. */
function nested(levels: number, leaf: unknown = {}): Record<string, unknown> {
  let value = leaf
  for (let level = 0; level < levels; level++) value = { x: value }
  return value as Record<string, unknown>
}

const branch = (name: string) => ({ allOf: [{ properties: { x: { $ref: '#/$defs/a' } } }, { required: [name] }] })
const recursive = {
  type: 'object',
  $ref: '#/$defs/a',
  $defs: { a: { type: 'object', anyOf: [branch('p'), branch('q')] } },
}

/** Each definition refers to the next one twice. */
function chain(refer: (next: JsonSchema) => JsonSchema, length = 24): JsonSchema {
  const $defs: Record<string, JsonSchema> = { [`d${length}`]: { type: 'string' } }
  for (let at = 0; at < length; at++) $defs[`d${at}`] = refer({ $ref: `#/$defs/d${at + 1}` })
  return { type: 'object', $defs, properties: { value: { $ref: '#/$defs/d0' } } }
}

test('alternatives that multiply with each level end at the limit of work', () => {
  expect(errorsOf(recursive, nested(4))).not.toContainEqual(tooMuch)
  expect(errorsOf(recursive, nested(24))).toEqual([tooMuch])
  expect(
    errorsOf(
      chain((next) => ({ anyOf: [next, next] })),
      { value: 1 },
    ),
  ).toEqual([tooMuch])
  const twice = chain((next) => ({ allOf: [next, next] }))
  expect(errorsOf(twice, { value: 'a' })).toEqual([tooMuch])
})

test('small bodies cannot make many defaults, or repeat long constants', () => {
  const members = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`m${index}`, { default: [] }]))
  const list = { type: 'object', properties: { list: { type: 'array', items: { properties: members } } } }
  expect(errorsOf(list, { list: Array.from({ length: 20_000 }, () => ({})) })).toEqual([tooMuch])
  const values = Array.from({ length: 1000 }, (_, index) => `v${index}`)
  const constants = { type: 'object', properties: { list: { type: 'array', items: { enum: values } } } }
  expect(errorsOf(constants, { list: Array.from({ length: 20_000 }, () => 'v999') })).toEqual([tooMuch])
})

test('a text that is long for its pattern ends at the limit of work', () => {
  const email = String.raw`^[\w%+.-]+@[\d.A-Za-z-]+\.[A-Za-z]{2,}$`
  const schema = { type: 'object', properties: { value: { type: 'string', pattern: email } } }
  expect(errorsOf(schema, { value: 'ada@example.com' })).toEqual([])
  expect(errorsOf(schema, { value: `a@${'a.'.repeat(1000)}` })).toEqual([tooMuch])
})

test('large ordinary values and recursive alternatives are within the limit', () => {
  const item = { type: 'object', required: ['id'], properties: { id: { type: 'integer' }, note: { type: 'string' } } }
  const lines = {
    type: 'object',
    $defs: { item },
    properties: { list: { type: 'array', items: { $ref: '#/$defs/item' } } },
  }
  expect(errorsOf(lines, { list: Array.from({ length: 80_000 }, (_, id) => ({ id })) })).toEqual([])
  const operands = { left: { $ref: '#/$defs/tree' }, right: { $ref: '#/$defs/tree' } }
  const node = (kind: string, properties: object) => {
    return {
      type: 'object',
      properties: { kind: { const: kind }, ...properties },
      required: ['kind', ...Object.keys(properties)],
    }
  }
  const tree = { anyOf: [node('add', operands), node('multiply', operands), node('number', { n: { type: 'number' } })] }
  const schema = { type: 'object', $defs: { tree }, properties: { value: { $ref: '#/$defs/tree' } } }
  let value: object = { kind: 'number', n: 1 }
  for (let level = 0; level < 8; level++) value = { kind: level % 2 ? 'add' : 'multiply', left: value, right: value }
  expect(errorsOf(schema, { value })).toEqual([])
})

test.each<[string, JsonSchema]>([
  ['/$defs/a/anyOf/0/$ref', { $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }, { type: 'string' }] } } }],
  ['/allOf/0/$ref', { allOf: [{ $ref: '#' }] }],
  ['/$defs/b/if/$ref', { $defs: { a: { not: { $ref: '#/$defs/b' } }, b: { if: { $ref: '#/$defs/a' } } } }],
])('a schema that refers to itself for the same value is refused: %s', (place, schema) => {
  const check = () => checkWorkflows([workflow({ type: 'object', ...schema })])
  expect(check).toThrow(
    `${place} refers to a schema that it is part of, for the same value, so that no check would end.`,
  )
})

test('more schemas, members or levels than can be compiled are refused', () => {
  const check = (properties: JsonSchema) => () => checkWorkflows([workflow({ type: 'object', properties })])
  const members = (count: number, schema: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}`, schema]))
  expect(check(members(1001, {}))).toThrow('/properties has 1001 members, and may have 1000')
  expect(check(members(900, { properties: members(5, {}) }))).toThrow('has more than 5000 schemas in it')
  expect(check({ x: nestedSchema(120) })).toThrow('is below 200 levels')
})

function nestedSchema(levels: number): JsonSchema {
  let schema: JsonSchema = {}
  for (let level = 0; level < levels; level++) schema = { properties: { x: schema } }
  return schema
}

test('a large schema is compiled once, in a thread, while this one serves', async () => {
  const member = { type: 'object', properties: { a: { type: 'string', writeOnly: true }, b: { multipleOf: 0.01 } } }
  const properties = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`m${index}`, member]))
  const large = workflow({ type: 'object', properties, additionalProperties: false })
  let isDone = false
  const compiling = new Workflows([large]).compileLarge('account').then((workflows) => {
    isDone = true
    return workflows
  })
  let turns = 0
  while (!isDone) {
    await nextTick()
    turns += 1
  }
  expect(turns).toBeGreaterThan(10)
  const workflows = await compiling
  const compiled = findCompiled(large.variables)
  expect(findCompiled(structuredClone(large.variables))).toBe(compiled)
  expect(workflows.checkVariables('w', { m149: { a: 's', b: 19.99 } })).toEqual({
    masked: { m149: { a: '********', b: 19.99 } },
    secrets: { '/m149/a': 's' },
  })
  const { errors } = workflows.checkVariables('w', { m0: { a: 1, b: 0.001 }, other: 1 }) as { errors: unknown[] }
  expect(errors).toEqual([
    { pointer: '/other', detail: 'is not in the schema' },
    { pointer: '/m0/a', detail: 'must be string' },
    { pointer: '/m0/b', detail: 'must be multiple of 0.01' },
  ])
})

test('members that require each other make a bounded example', () => {
  const names = Array.from({ length: 100 }, (_, index) => `m${index}`)
  const properties = Object.fromEntries(names.map((name) => [name, { $ref: '#' }]))
  const example = JSON.stringify(exampleOf('value', { type: 'object', properties, required: names }))
  expect(example.length).toBeLessThan(500_000)
})

test('multiples are decided by decimal arithmetic', () => {
  const schema = { type: 'object', properties: { x: { type: 'number', multipleOf: 0.01 } } }
  const refused = (x: number) => errorsOf(schema, { x }).length > 0
  expect([4.35, 19.99, 0.07, 8.69, 2.34, 143.48, 1.1, 100.1, -4.35, 0, 1e20, 7].filter(refused)).toEqual([])
  expect([0.005, 1.001, 1e-7, 4.3500001].filter((x) => !refused(x))).toEqual([])
})

test('equal items are found among objects too', () => {
  const schema = { type: 'object', properties: { list: { type: 'array', uniqueItems: true } } }
  const equal = [{ pointer: '/list', detail: 'must NOT have duplicate items (items ## 1 and 0 are identical)' }]
  expect(
    errorsOf(schema, {
      list: [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    }),
  ).toEqual(equal)
  expect(errorsOf(schema, { list: [1, '1', true, 'true', null, 'null', [1], ['1'], '[1]', { a: [] }] })).toEqual([])
})

test('variables with more secrets than a worker can be told of are refused', () => {
  const schema = { type: 'object', properties: { list: { type: 'array', items: { type: 'string', writeOnly: true } } } }
  const list = Array.from({ length: 20_000 }, (_, index) => `s${index}`)
  expect(errorsOf(schema, { list })).toEqual([])
  expect(errorsOf(schema, { list: [...list, 's'] })).toEqual([
    { pointer: '', detail: 'has more than 20000 secret values' },
  ])
})
