/** The rules and defaults of a workflow's definition. */
import { expect, test } from 'vitest'
import { requireFastSchemas } from '../../../src/domain/workflows/check-workflows.ts'
import { parseWorkflow, WorkflowError, WorkflowSchemaError } from '../../../src/domain/workflows/workflow.ts'

const definition = {
  id: 'example',
  version: '1.0.0',
  title: 'Example',
  variables: { type: 'object' },
  output: {},
  run: () => null,
}

test('defaults are filled in', () => {
  expect(parseWorkflow('example.ts', definition)).toEqual({
    id: 'example',
    version: '1.0.0',
    title: 'Example',
    description: null,
    variables: { type: 'object' },
    output: {},
    retry: { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 },
    timeLimitSeconds: 60,
    usesBrowser: false,
    evidence: 'onFailure',
    deprecated: false,
  })
})

test('the members of a definition are kept', () => {
  const members = {
    id: 'A.b_c-9',
    version: '2',
    title: 'T',
    description: 'D',
    variables: { type: 'object', properties: {} },
    output: { type: 'string' },
    retry: { maxAttempts: 3, backoffSeconds: 0, backoffFactor: 1 },
    timeLimitSeconds: 0.5,
    concurrency: { limit: 1, per: 'workflow' },
    evidence: 'always',
  } as const
  const read = parseWorkflow('example.ts', { ...members, browser: true, run: () => null })
  expect(read).toEqual({ ...members, usesBrowser: true, deprecated: false })
  expect(parseWorkflow('example.ts', { ...definition, id: 'x'.repeat(128), retry: { maxAttempts: 2 } })).toMatchObject({
    retry: { maxAttempts: 2, backoffSeconds: 1, backoffFactor: 2 },
  })
})

const idRule = 'id must be 1 to 128 letters, digits, dots, underscores and hyphens, and not only one or two dots'
const versionRule = 'version must be a string of 1 to 100 characters, without U+0000'
const titleRule = 'title must be a string of 1 to 200 characters, without U+0000'
const timeRule = 'timeLimitSeconds must be greater than 0 and at most 604800'
const limitRule = 'concurrency.limit must be an integer of at least 1 and at most 1000000000'
const evidenceRule = "evidence must be 'onFailure', 'always' or 'off'"
type Refused = [rule: string, definition: object]
const backoffRule = 'retry.backoffSeconds must be at least 0 and at most 31536000, which is a year'
const factorRule = 'retry.backoffFactor must be at least 1 and at most 1000'
const attemptsRule = 'retry.maxAttempts must be an integer of at least 1 and at most 1000000'

test.each<[string, object]>([
  [evidenceRule, { evidence: 'never' }],
  [idRule, { id: '' }],
  [idRule, { id: 'a b' }],
  [idRule, { id: 'ä' }],
  [idRule, { id: 'a/b' }],
  [idRule, { id: 'a\n' }],
  [idRule, { id: 'x'.repeat(129) }],
  [idRule, { id: 7 }],
  [idRule, { id: '..' }],
  [versionRule, { version: 1 }],
  [versionRule, { version: '' }],
  [versionRule, { version: '1\0' }],
  [titleRule, { title: undefined }],
  [titleRule, { title: '\ud800' }],
  ['description must be a string of 0 to 8192 characters, without U+0000', { description: {} }],
  ['variables must be a JSON Schema with type "object"', { variables: { type: 'string' } }],
  ['variables must be a JSON Schema with type "object"', { variables: undefined }],
  ['output must be a JSON Schema', { output: undefined }],
  ['output must be a JSON Schema', { output: [] }],
  ['run must be a function', { run: 'run' }],
  [timeRule, { timeLimitSeconds: 0 }],
  [timeRule, { timeLimitSeconds: '60' }],
  [timeRule, { timeLimitSeconds: Number.NaN }],
  [timeRule, { timeLimitSeconds: Number.POSITIVE_INFINITY }],
  [timeRule, { timeLimitSeconds: 604_801 }],
  [limitRule, { concurrency: { limit: 0 } }],
  [limitRule, { concurrency: { limit: 1.5 } }],
  ['concurrency must be an object with a limit', { concurrency: 3 }],
  [limitRule, { concurrency: { per: 'key' } }],
  ['concurrency.per must be one of workflow, account, key', { concurrency: { limit: 1, per: 'user' } }],
  ['throttle must be an object with a limit and periodSeconds', { throttle: 10 }],
  ['throttle.limit must be an integer of at least 1 and at most 10000', { throttle: { periodSeconds: 60 } }],
  [
    'throttle.periodSeconds must be an integer of at least 1 and at most 86400',
    { throttle: { limit: 1, periodSeconds: 0.5 } },
  ],
  ['throttle.per must be one of workflow, account, key', { throttle: { limit: 1, periodSeconds: 1, per: 'user' } }],
  [
    'throttle.period is not an option of defineWorkflow: the options are throttle.limit, throttle.periodSeconds, throttle.per',
    { throttle: { limit: 1, period: '1s' } },
  ],
  [
    'concurrency.max is not an option of defineWorkflow: the options are concurrency.limit, concurrency.per',
    { concurrency: { limit: 1, max: 2 } },
  ],
  ['waits must be an object of waits by their names', { waits: ['approval'] }],
  [
    'waits must have at most 100 members',
    { waits: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`w${index}`, { schema: {} }])) },
  ],
  ['waits must have names of 1 to 200 characters, and not ""', { waits: { '': { schema: {} } } }],
  ['waits must have names of 1 to 200 characters, and not ".."', { waits: { '..': { schema: {} } } }],
  [
    `waits must have names of 1 to 200 characters, and not "${'x'.repeat(201)}"`,
    { waits: { ['x'.repeat(201)]: { schema: {} } } },
  ],
  ['waits.approval must be an object with a JSON Schema as its schema', { waits: { approval: { type: 'object' } } }],
  [
    'waits.approval.timeout is not an option of defineWorkflow: the options are waits.approval.schema, waits.approval.title, waits.approval.description',
    { waits: { approval: { schema: {}, timeout: 5 } } },
  ],
  [
    'waits.approval.title must be a string of 1 to 8192 characters, without U+0000',
    { waits: { approval: { schema: {}, title: '' } } },
  ],
  [
    'waits.approval.description must be a string of 0 to 8192 characters, without U+0000',
    { waits: { approval: { schema: {}, description: 5 } } },
  ],
  ['retry must be an object', { retry: 3 }],
  [
    'browsers is not an option of defineWorkflow: the options are id, version, title, variables, output, run, description, retry, timeLimitSeconds, concurrency, throttle, browser, evidence, signsIn, signedOut, waits, secrets, settings, deprecated',
    { browsers: true },
  ],
  [
    'retry.attemptsMax is not an option of defineWorkflow: the options are retry.maxAttempts, retry.backoffSeconds, retry.backoffFactor',
    { retry: { attemptsMax: 3 } },
  ],
  [attemptsRule, { retry: { maxAttempts: 0 } }],
  [attemptsRule, { retry: { maxAttempts: 1.5 } }],
  ...[-1, 31_536_001, 9e12, 1e300].map((backoffSeconds): Refused => [backoffRule, { retry: { backoffSeconds } }]),
  ...[0.5, 1001].map((backoffFactor): Refused => [factorRule, { retry: { backoffFactor } }]),
])('%s (%o)', (rule, change) => {
  const read = () => parseWorkflow('folder/example.ts', { ...definition, ...change })
  expect(read).toThrow(WorkflowError)
  expect(read).toThrow(new WorkflowError(`folder/example.ts is not a valid workflow: ${rule}.`))
})

test.each([undefined, null, 'text', [], () => definition])(
  'a default export that is not a definition (%o) is rejected',
  (value) => {
    expect(() => parseWorkflow('example.ts', value)).toThrow(
      'example.ts is not a valid workflow: its default export must be the result of defineWorkflow; a module that workflows import belongs in a subdirectory.',
    )
  },
)

test('the waits of a definition are kept with their schemas', () => {
  const waits = { approval: { schema: { type: 'boolean' }, title: 'Approve?' }, 'two words/ä': { schema: {} } }
  expect(parseWorkflow('example.ts', { ...definition, waits }).waits).toEqual({
    approval: { schema: { type: 'boolean' }, title: 'Approve?', description: null },
    'two words/ä': { schema: {}, title: null, description: null },
  })
  expect(parseWorkflow('example.ts', { ...definition, waits: {} })).not.toHaveProperty('waits')
})

test('the schema of an answer that can take very long to validate is refused, with its place in the definition', () => {
  const waits = { 'a/b': { schema: { type: 'object', properties: { name: { type: 'string', pattern: '(a+)+$' } } } } }
  let refusal: unknown
  try {
    requireFastSchemas(parseWorkflow('example.ts', { ...definition, waits }))
  } catch (error) {
    refusal = error
  }
  expect(refusal).toBeInstanceOf(WorkflowSchemaError)
  expect(refusal).toMatchObject({
    workflowId: 'example',
    place: '/waits/a~1b/schema/properties/name/pattern',
    message: expect.stringContaining('at /properties/name/pattern in the waits.a/b schema of workflow "example"'),
  })
})

const schemaOf = (schema: object) => ({ type: 'object', properties: { name: schema } })
const where = 'in the variables schema of workflow "example" may take very long on some input.'
const patternAdvice = 'Anchor it with ^, and let no two adjacent or nested repetitions match the same character.'

test.each<[what: string, schema: object, message: string]>([
  [
    'a pattern with exponential run time',
    { pattern: '^(a+)+$' },
    `The pattern \`^(a+)+$\` at /properties/name/pattern ${where} ${patternAdvice}`,
  ],
  [
    'a pattern with quadratic run time',
    { pattern: '\\s+$' },
    `The pattern \`\\s+$\` at /properties/name/pattern ${where} ${patternAdvice}`,
  ],
  [
    'a pattern of member names',
    { patternProperties: { '^(\\w|-)+x$': {}, '^([a-z]|[0-9a])+!$': {} } },
    `The pattern \`^([a-z]|[0-9a])+!$\` at /properties/name/patternProperties ${where} ${patternAdvice}`,
  ],
  [
    'a pattern below $defs',
    { $defs: { 'a/b': { propertyNames: { pattern: '(x*)*y' } } } },
    `The pattern \`(x*)*y\` at /properties/name/$defs/a~1b/propertyNames/pattern ${where} ${patternAdvice}`,
  ],
  [
    'a format with quadratic run time',
    { format: 'url' },
    `The format \`url\` at /properties/name/format ${where} Use \`uri\`.`,
  ],
])('a schema with %s is refused, with its place and a fix', (_, schema, message) => {
  const workflow = parseWorkflow('example.ts', { ...definition, variables: schemaOf(schema) })
  const [, pointer = ''] = / at (\S+) in the /.exec(message) ?? []
  expect(() => requireFastSchemas(workflow)).toThrow(new WorkflowSchemaError(workflow, 'variables', pointer, message))
  const inOutput = parseWorkflow('example.ts', { ...definition, output: schemaOf(schema) })
  expect(() => requireFastSchemas(inOutput)).toThrow(message.replace('the variables schema', 'the output schema'))
})

test.each([
  { pattern: '^https?://' },
  { pattern: '^[0-9a-f]{64}$' },
  { pattern: '^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$' },
  { pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$', maxLength: 64 },
  { type: 'string', format: 'uri' },
])('a schema with %j is accepted', (schema) => {
  requireFastSchemas(parseWorkflow('example.ts', { ...definition, variables: schemaOf(schema) }))
})
