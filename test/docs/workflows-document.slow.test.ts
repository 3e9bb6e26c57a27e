/** Redocly and openapi-typescript accept the document with the operations of workflows, whatever their schemas are. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'
import ts from 'typescript'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildSnapshot } from '../../src/domain/deployments/build-snapshot.ts'
import type { Workflow } from '../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { workflowsDocument } from '../../src/domain/workflows/workflows-document.ts'
import { workflow } from '../support/snapshots.ts'

const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
const config = `
telemetry: off
apis:
  workflows@v1:
    root: openapi.json
    extends: [recommended-strict]
    rules:
      no-invalid-media-type-examples: error
      no-invalid-parameter-examples: error
      no-invalid-schema-examples: error
      operation-operationId: error
`

/** Members whose schemas have each keyword of JSON Schema 2020-12 that the service accepts. */
const unusual = {
  anything: true,
  nothing: false,
  tuple: { type: 'array', prefixItems: [{ type: 'string' }, true], items: false, minItems: 2 },
  list: {
    type: 'array',
    contains: { type: 'integer' },
    minContains: 1,
    maxContains: 3,
    uniqueItems: true,
    maxItems: 9,
  },
  rest: { type: 'array', contains: { type: 'null' }, unevaluatedItems: { type: 'string' } },
  map: {
    type: 'object',
    propertyNames: { maxLength: 9 },
    patternProperties: { '^x-': {} },
    additionalProperties: false,
  },
  dependent: {
    type: 'object',
    properties: { a: {}, b: {} },
    dependentRequired: { a: ['b'] },
    dependentSchemas: { b: { minProperties: 2 } },
  },
  conditional: { if: { type: 'string' }, then: { minLength: 1 }, else: { type: 'number' } },
  composed: {
    type: 'object',
    allOf: [{ properties: { a: { type: 'string' } } }, { $ref: '#/$defs/point' }],
    unevaluatedProperties: false,
  },
  choice: {
    oneOf: [
      { type: 'string', format: 'uri' },
      { type: ['integer', 'null'], multipleOf: 5 },
    ],
  },
  either: { anyOf: [{ const: { deep: [1, null] } }, { enum: ['a', 1, null, false] }], not: { const: 'b' } },
  optional: { type: 'string', nullable: true },
  encoded: { type: 'string', contentEncoding: 'base64', contentMediaType: 'application/json', contentSchema: {} },
  old: { type: 'string', deprecated: true, readOnly: true, $comment: 'Not for callers.' },
  self: { $ref: '#' },
  titled: { $ref: '#/$defs/point', title: 'A point' },
}
const $defs = { point: { type: 'object', properties: { x: { type: 'number', default: 0 } } } }
const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: unusual, $defs }

const workflows: Record<string, () => Promise<Workflow[]> | Workflow[]> = {
  'the examples': async () => (await buildSnapshot('examples/workflows')).workflows,
  'the workflows of the tests': async () => (await buildSnapshot('test/operations/workflows')).workflows,
  'unusual schemas': () => [
    workflow({ id: 'Un.usual_9', variables: schema, output: schema, deprecated: true, usesBrowser: true }),
    workflow({ id: 'un-usual-9', variables: { ...schema, $id: 'https://example.com/v' }, output: true as never }),
    workflow({ id: 'remote-run', description: 'With `code`, "quotes" and\n\n| a | table |\n| --- | --- |' }),
    workflow({
      id: 'examples',
      variables: { type: 'object', properties: { a: { type: 'integer' } }, examples: [{ a: 1 }, { a: 2 }] },
      output: {
        type: 'object',
        required: ['s'],
        properties: { s: { type: 'string', writeOnly: true, minLength: 20 } },
      },
    }),
    workflow({
      id: 'asks',
      waits: {
        approval: { title: 'Ends */ it?', description: 'With `code` and ${x}', schema },
        Approval: { title: null, description: null, schema: { type: 'string', writeOnly: true, default: 'a' } },
        'a {name}/of? #many\n parts': { title: null, description: null, schema: true as never },
        wait: { title: null, description: null, schema: {} },
      },
    }),
    workflow({ id: 'asks-too', waits: { approval: { title: null, description: null, schema: { type: 'boolean' } } } }),
  ],
}

describe.each(Object.entries(workflows))('%s', (_, read) => {
  let document: string

  beforeAll(async () => {
    const { bytes } = workflowsDocument(new Workflows(await read()), 'https://runs.acme.test')
    document = Buffer.from(bytes).toString()
  })

  test('satisfy the strict rules of Redocly', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'workflows-document-'))
    try {
      await writeFile(join(directory, 'openapi.json'), document)
      await writeFile(join(directory, 'redocly.yaml'), config)
      const options = { cwd: directory, env: { PATH: process.env.PATH } }
      const lint = promisify(execFile)(process.execPath, [redocly, 'lint', '--format', 'stylish'], options)
      expect(await lint.catch((error) => error)).toMatchObject({ stderr: expect.stringContaining('is valid') })
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('become types that compile', async () => {
    const types = astToString(await openapiTypescript(JSON.parse(document) as OpenAPI3))
    const { diagnostics = [] } = ts.transpileModule(types, { reportDiagnostics: true })
    expect(diagnostics).toEqual([])
    expect(types).toMatch(/_Variables"\]/)
  })
})
