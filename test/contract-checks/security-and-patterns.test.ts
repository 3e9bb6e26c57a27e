/** Findings of the security lint, the name check and the pattern check in modified documents. */
import { beforeAll, describe, expect, test } from 'vitest'
import { requestPointers } from '../../src/openapi/document.ts'
import type { Finding } from '../../src/tools/contract-checks/checked-contract.ts'
import {
  checkNames,
  checkNestedLists,
  checkPatterns,
  findUnusedExceptions,
  listCodePatterns,
  listDocumentPatterns,
} from '../../src/tools/contract-checks/document-checks.ts'
import { checkSecurity, exceptions } from '../../src/tools/contract-checks/security.ts'
import {
  cancel,
  modify,
  type Part,
  parameterOf,
  queue,
  readCurrent,
  run,
  runs,
  schemaOf,
} from './modified-documents.ts'

function modified(change: (copy: Part) => void) {
  return { name: 'execution.v1', current: modify(readCurrent(), change) } as const
}

const insecure: [title: string, change: (copy: Part) => void, rule: string, location: RegExp][] = [
  [
    'an operation without 429',
    (it) => delete it.paths[run].get.responses['429'],
    'rate-limit-responses-429',
    /getRun: /,
  ],
  [
    'a response without RateLimit',
    (it) => delete it.paths[run].get.responses['200'].headers.RateLimit,
    'rate-limit`',
    /getRun: .*\/200/,
  ],
  [
    'a 429 without Retry-After',
    (it) => delete it.components.responses.TooManyRequests.headers['Retry-After'],
    'rate-limit-retry-after',
    /429/,
  ],
  [
    'an operation without 401',
    (it) => delete it.paths[runs].get.responses['401'],
    'define-error-responses-401',
    /listRuns: /,
  ],
  [
    'an operation without 500',
    (it) => delete it.paths[cancel].post.responses['500'],
    'define-error-responses-500',
    /cancelRun: /,
  ],
  [
    'an operation without 400',
    (it) => delete it.paths[cancel].post.responses['400'],
    'define-error-validation',
    /cancelRun: /,
  ],
  ['an operation without a key', (it) => (it.paths[queue].put.security = []), 'write-restricted', /queueRemoteRun: /],
  ['a numeric id', (it) => (it.components.schemas.Uuid.type = 'integer'), 'no-numeric-ids', /\/parameters\/0\/schema/],
  [
    'a key in the URL',
    (it) =>
      it.paths[runs].get.parameters.push({ name: 'apiKey', in: 'query', schema: { type: 'string', maxLength: 1 } }),
    'no-credentials-in-url',
    /listRuns: /,
  ],
  [
    'text without a limit',
    (it) => delete parameterOf(it, 'Prefer').schema.maxLength,
    'string-limit',
    /parameters\/Prefer/,
  ],
  ['a number without a limit', (it) => delete parameterOf(it, 'Priority').schema.maximum, 'integer-limit', /Priority/],
  ['a list without a limit', (it) => delete schemaOf(it, 'RunPage').properties.data.maxItems, 'array-limit', /RunPage/],
  ['a server without TLS', (it) => (it.servers[0].url = 'http://example.com'), 'no-server-http', /\/servers\/0\/url/],
]

describe('the security lint', () => {
  let findings: Finding[]
  // All changes at once: a run takes a second on a busy machine.
  beforeAll(async () => {
    const contract = modified((copy) => {
      for (const [, change] of insecure) change(copy)
      Object.assign(copy.components?.schemas?.ArtifactName ?? {}, { maxLength: 100 })
    })
    findings = (await checkSecurity([contract])).findings
  })

  test.each(insecure)('finds %s', (_, __, rule, location) => {
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'error',
        location: expect.stringMatching(location),
        fix: expect.stringContaining(`:2023-${rule}`),
      }),
    )
  })

  test('finds an unused exception', () => {
    const unused = Object.keys(exceptions).find((it) => it.includes('ArtifactName'))
    expect(findings.map(({ message }) => message)).toContainEqual(expect.stringContaining(unused as string))
  })
})

test.each<[title: string, kind: string, name: string, message: string]>([
  ['a schema with the name of a global type', 'schemas', 'Record', '`Record` is a global of TypeScript.'],
  ['a schema with the name of a global of browsers', 'schemas', 'File', '`File` is a global of TypeScript.'],
  ['a parameter with the name of a schema', 'parameters', 'Run', '`parameters/Run` has the name of `schemas/Run`.'],
  [
    'a response with the name of a schema in another case',
    'responses',
    'RUNPAGE',
    '`responses/RUNPAGE` has the name of `schemas/RunPage`.',
  ],
])('%s, which breaks generated clients, is found', (_, kind, name, message) => {
  const contract = modified((it) => (it.components[kind][name] = {}))
  expect(checkNames([contract]).findings).toEqual([
    expect.objectContaining({
      severity: 'error',
      message,
      location: `openapi/execution.v1.yaml, /components/${kind}/${name}`,
    }),
  ])
})

test('a list inside the items of a long list, which exhausts the memory of generators, is found', () => {
  const contract = modified((it) => {
    const { StoredStep, ClaimedRun } = it.components.schemas
    ClaimedRun.properties.steps.items = StoredStep
  })
  expect(checkNestedLists([contract])).toEqual([
    expect.objectContaining({
      severity: 'error',
      message: 'Nested lists have up to 400000000 items.',
      location:
        'openapi/execution.v1.yaml, /components/schemas/ClaimedRun/properties/steps/items/properties/maskedSecrets',
    }),
  ])
})

test('patterns of the documents and of the code that handles requests are checked', () => {
  const patterns = [...listDocumentPatterns(modified(() => {})), ...listCodePatterns('.')]
  expect(patterns).toContainEqual(expect.objectContaining({ pattern: '^[!-~]+$', flags: 'u' }))
  expect(patterns).toContainEqual({
    pattern: '^bearer +([^ ]+)$',
    flags: 'i',
    location: expect.stringMatching(/^src\/contract\/credential\.ts:\d+$/),
  })
  expect(findUnusedExceptions([])).not.toEqual([])
})

test.each(['^(a+)+$', '^(a|a)*$', '^([a-z]+)*@', '^a*a*$', '[a-z]+!'])(
  'the pattern %s, which enables denial of service, is found',
  (pattern) => {
    const contract = modified((it) => (parameterOf(it, 'IdempotencyKey').schema.pattern = pattern))
    expect(checkPatterns(listDocumentPatterns(contract)).findings).toMatchObject([
      {
        severity: 'error',
        message: expect.stringContaining(`\`${pattern}\``),
        location: expect.stringContaining('/components/parameters/IdempotencyKey/schema/pattern'),
      },
    ])
  },
)

test('an unsafe pattern in the variables of an example workflow is found', () => {
  const contract = modified((it) => {
    it.components.examples.CountWords.value.variablesSchema.properties.path.pattern = '^(a+)+$'
  })
  expect(checkPatterns(listDocumentPatterns(contract)).findings).toHaveLength(1)
})

test('the target of a reference constrains requests as a whole, even if a part of it was reached before', () => {
  const pointers = requestPointers({
    paths: {
      '/a': { post: { requestBody: { $ref: '#/components/b/Part' }, parameters: [{ $ref: '#/components/b/All' }] } },
    },
    components: { b: { Part: { $ref: '#/components/b/All/properties/x' }, All: { properties: { x: {}, y: {} } } } },
  })
  expect(pointers).toContain('/components/b/All/properties/y')
})
