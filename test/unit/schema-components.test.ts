/** JSON Schemas as components of OpenAPI documents, and the names of workflows there. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { requireDescribable, workflowsDocument } from '../../src/domain/workflows/workflows-document.ts'
import {
  outputComponents,
  toComponents,
  variableComponents,
  waitOperationId,
  workflowNames,
} from '../../src/openapi/schema-components.ts'
import { workflow } from '../support/snapshots.ts'

type Schema = Record<string, unknown>

/** A schema with each way to refer to another, and values with their validity. */
const schemas: Record<string, { schema: Schema; names: string[]; valid: unknown[]; invalid: unknown[] }> = {
  'references to $defs, also recursive': {
    schema: {
      $ref: '#/$defs/tree',
      $defs: { tree: { type: 'object', required: ['leaf'], properties: { leaf: {}, next: { $ref: '#/$defs/tree' } } } },
    },
    names: ['X', 'X_tree'],
    valid: [{ leaf: 1, next: { leaf: 2 } }],
    invalid: [{ leaf: 1, next: {} }],
  },
  'a reference to the root': {
    schema: { type: 'object', properties: { next: { $ref: '#' } }, additionalProperties: false },
    names: ['X'],
    valid: [{ next: { next: {} } }],
    invalid: [{ next: { other: 1 } }],
  },
  'anchors, $id and references between resources': {
    schema: {
      $id: 'https://example.com/root',
      properties: { a: { $ref: '#short' }, b: { $ref: 'part' }, c: { $ref: '/part#/properties/inner' } },
      $defs: {
        short: { $anchor: 'short', type: 'string', maxLength: 2 },
        part: {
          $id: 'part',
          type: 'object',
          properties: { inner: { type: 'integer' }, same: { $ref: '#/properties/inner' } },
        },
      },
    },
    names: ['X', 'X_short', 'X_part', 'X_defs_part_properties_inner'],
    valid: [{ a: 'ab', b: { inner: 1, same: 2 }, c: 3 }],
    invalid: [{ a: 'abc' }, { b: { same: 'x' } }, { c: 'x' }],
  },
  'keywords next to a reference': {
    schema: {
      properties: {
        a: { $ref: '#/$defs/text', minLength: 2, description: 'A' },
        b: { $ref: '#/$defs/text', title: 'B' },
      },
      $defs: { text: { type: 'string' } },
    },
    names: ['X', 'X_text'],
    valid: [{ a: 'ab', b: '' }],
    invalid: [{ a: 'a' }, { a: 12 }, { b: 1 }],
  },
  'names that components may not have, or that collide': {
    schema: {
      anyOf: [{ $ref: '#/$defs/a%20b' }, { $ref: '#/$defs/a-b' }, { $ref: '#/$defs/no' }],
      $defs: { 'a b': { const: 1 }, 'a-b': { const: 2 }, no: false },
    },
    names: ['X', 'X_a_b', 'X_a_b_2', 'X_no'],
    valid: [1, 2],
    invalid: [3],
  },
  'data that looks like a schema': {
    schema: { properties: { a: { const: { $ref: '#/nowhere', $defs: 1 } }, $ref: { type: 'string' } } },
    names: ['X'],
    valid: [{ a: { $ref: '#/nowhere', $defs: 1 }, $ref: 'x' }],
    invalid: [{ a: {} }, { $ref: 1 }],
  },
}

test.each(Object.entries(schemas))('%s: the components accept the same values', (_, { schema, names, ...values }) => {
  const components = toComponents(schema, 'X')
  expect([...components.keys()]).toEqual(names)
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_]+$/)
  const document = { components: { schemas: Object.fromEntries(components) } }
  const ajv = new Ajv2020({ strict: false })
  ajv.addSchema(document, 'document')
  const validate = ajv.compile({ $ref: 'document#/components/schemas/X' })
  const original = new Ajv2020({ strict: false }).compile(schema)
  for (const valid of values.valid) expect([original(valid), validate(valid)]).toEqual([true, true])
  for (const invalid of values.invalid) expect([original(invalid), validate(invalid)]).toEqual([false, false])
  const text = JSON.stringify([...components.values()].map(({ properties, ...others }) => others))
  expect(text).not.toMatch(/"\$(id|defs|anchor)":/)
})

test.each([
  [{ properties: { a: { $dynamicRef: '#x' } } }, '/properties/a/$dynamicRef', 'OpenAPI has no $dynamicRef. Use $ref.'],
  [
    { properties: { a: { dependencies: { b: ['c'] } } } },
    '/properties/a/dependencies',
    'OpenAPI has no dependencies. Use dependentRequired or dependentSchemas.',
  ],
  [
    { items: { $ref: 'https://example.com/other' } },
    '/items/$ref',
    'The schema has no https://example.com/other: define it in $defs.',
  ],
  [{ allOf: [{ $ref: '#/const' }], const: {} }, '/allOf/0/$ref', 'The schema has no #/const: define it in $defs.'],
])('%j is refused with the place', (output, pointer, message) => {
  const place = `${pointer} in the output schema of workflow "anything"`
  expect(() => requireDescribable(workflow({ output }))).toThrow(
    `The API's document cannot express ${place}: ${message}`,
  )
})

test('a member with a default is not required of callers', () => {
  const properties = { a: { type: 'string' }, b: { type: 'string', default: 'x' } }
  const variables = { type: 'object', required: ['a', 'b'], properties }
  const [schema] = variableComponents(workflow({ variables })).values()
  expect(schema).toEqual({ type: 'object', required: ['a'], properties })
})

test('secrets of an output are described as their mask', () => {
  const secret = { type: 'object', writeOnly: true, description: 'A secret.' }
  const output = { properties: { a: secret, b: { allOf: [secret, { minProperties: 1 }] }, c: { type: 'string' } } }
  const [schema] = outputComponents(workflow({ output }), '********').values()
  const masked = { type: 'string', const: '********' }
  expect(schema?.properties).toEqual({ a: { description: 'A secret.', ...masked }, b: masked, c: { type: 'string' } })
})

test('operationIds are readable, and differ for all ids', () => {
  expect(workflowNames('count-words')).toEqual({ operationId: 'queueCountWords', component: 'CountWords' })
  const ids = ['count-words', 'count_words', 'count.words', 'countWords', 'Count-Words', 'count--words', 'countwords']
  const others = ['step-2', 'step2', 'remote-run', 'remote', 'remoterun', '2', '-', '...', 'a'.repeat(128)]
  const names = [...ids, ...others].map((id) => workflowNames(id).operationId)
  expect(new Set(names).size).toBe(names.length)
  expect(names.filter((name) => !/^queue[A-Za-z0-9_]+$/.test(name))).toEqual([])
  // Operations of v1 have these names, or may have them later.
  expect(names.filter((name) => /^queueRemote[^_]*$/.test(name))).toEqual(['queueRemoterun'])
})

test('operationIds of waits are identifiers, and differ for all names, also for generators that ignore "_"', () => {
  const names = ['approval', 'managerApproval', 'managerapproval', 'manager-approval', 'manager approval', 'Approval']
  const ids = [...names, '{name}', '!', '9', 'größe', 'a/b', 'wait'].map(waitOperationId)
  expect(ids.slice(0, 2)).toEqual(['completeWaitApproval', 'completeWaitManagerApproval'])
  expect(ids.filter((id) => !/^[A-Za-z]\w*$/.test(id))).toEqual([])
  expect(new Set([...ids, 'completeWait'].map((id) => id.replaceAll('_', ''))).size).toBe(ids.length + 1)
})

test('names of components are identifiers, and differ also for generators that write them in their own case', () => {
  const names = ['run', 'run variables', 'a b', 'a-b', 'aB', '日本', 'output.run']
  const properties = Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/${encodeURIComponent(name)}` }]))
  const schema = { type: 'object', properties, $defs: Object.fromEntries(names.map((name) => [name, {}])) }
  const ids = ['check', 'check-output', 'check-variables', 'check-output-run', 'scheduled', 'queued', 'run', 'check_1']
  const workflows = ids.map((id) => workflow({ id, variables: schema, output: schema }))
  const { bytes } = workflowsDocument(new Workflows(workflows), 'https://example.com')
  const { components } = JSON.parse(Buffer.from(bytes).toString())
  const all = Object.keys(components.schemas)
  expect(all.filter((name) => /^Check_Output/.test(name))).toHaveLength(1 + names.length)
  expect(all.filter((name) => !/^[A-Za-z]\w*$/.test(name))).toEqual([])
  const plain = all.map((name) => name.replaceAll('_', '').toLowerCase())
  expect(plain.filter((name, index) => plain.indexOf(name) !== index)).toEqual([])
})

test('no text or pattern of a workflow ends a comment, and patterns and data mean the same', () => {
  const text = { title: 'End */', description: '**/ */ ${x}', $comment: '*/' }
  const path = { ...text, type: 'string', pattern: '^[*/]*/x\\*/$' }
  const variables = { ...text, type: 'object', properties: { path, end: { const: '*/', ...text } } }
  const { bytes } = workflowsDocument(
    new Workflows([workflow({ id: 'end', title: 'T */', description: 'D */', variables, output: variables })]),
    'https://example.com',
  )
  const document = JSON.parse(Buffer.from(bytes).toString())
  const { End_Variables, End_Output } = document.components.schemas
  const described = JSON.stringify([document.paths['/v1/execution/queue-remote/end'], End_Variables, End_Output])
  expect(described.replaceAll('"const":"*/"', '')).not.toContain('*/')
  expect(End_Variables.title).toBe('End *\\/')
  expect(described).not.toContain('${')
  const [original, served] = [variables, End_Variables].map((it) => new Ajv2020({ strict: false }).compile(it))
  for (const value of [{ path: '/*/x*/', end: '*/' }, { path: '/x*/' }, { path: '*\\/x*/' }, { end: '*\\/' }])
    expect([value, served?.(value)]).toEqual([value, original?.(value)])
  expect(served?.({ path: '/*/x*/', end: '*/' })).toBe(true)
})

test('a closed tuple is described by its length, and accepts the same values', () => {
  const prefixItems = [{ type: 'string' }, { type: 'number' }]
  for (const [others, maxItems] of [
    [{}, 2],
    [{ maxItems: 1 }, 1],
    [{ minItems: 2, maxItems: 9 }, 2],
  ] as const) {
    const schema = { type: 'array', prefixItems, items: false, ...others }
    const [described] = toComponents(schema, 'Value').values()
    expect(described).toEqual({ type: 'array', prefixItems, ...others, maxItems })
    const [original, served] = [schema, described as object].map((it) => new Ajv2020({ strict: false }).compile(it))
    for (const value of [[], ['a'], ['a', 1], ['a', 1, 1], [1]]) expect(served?.(value)).toBe(original?.(value))
  }
  const open = { prefixItems, items: { type: 'number' } }
  expect(toComponents(open, 'Value').get('Value')).toEqual(open)
})
