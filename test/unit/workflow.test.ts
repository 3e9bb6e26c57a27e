/** The rules and defaults of a workflow's definition. */
import { expect, test } from 'vitest'
import { parseWorkflow, WorkflowError } from '../../src/domain/workflows/workflow.ts'

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
    concurrencyLimit: null,
    usesBrowser: false,
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
    concurrencyLimit: 1,
  }
  const read = parseWorkflow('example.ts', { ...members, browser: true, run: () => null })
  expect(read).toEqual({ ...members, usesBrowser: true })
  expect(parseWorkflow('example.ts', { ...definition, id: 'x'.repeat(128), retry: { maxAttempts: 2 } })).toMatchObject({
    retry: { maxAttempts: 2, backoffSeconds: 1, backoffFactor: 2 },
  })
})

const idRule = 'id must be 1 to 128 letters, digits, dots, underscores and hyphens'
const timeRule = 'timeLimitSeconds must be greater than 0 and at most 604800'
const limitRule = 'concurrencyLimit must be an integer of at least 1'
const attemptsRule = 'retry.maxAttempts must be an integer of at least 1'

test.each<[string, object]>([
  [idRule, { id: '' }],
  [idRule, { id: 'a b' }],
  [idRule, { id: 'ä' }],
  [idRule, { id: 'a/b' }],
  [idRule, { id: 'a\n' }],
  [idRule, { id: 'x'.repeat(129) }],
  [idRule, { id: 7 }],
  ['version must be a non-empty string', { version: 1 }],
  ['version must be a non-empty string', { version: '' }],
  ['title must be a non-empty string', { title: undefined }],
  ['description must be a string', { description: {} }],
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
  [limitRule, { concurrencyLimit: 0 }],
  [limitRule, { concurrencyLimit: 1.5 }],
  ['retry must be an object', { retry: 3 }],
  ['browsers is not an option of defineWorkflow', { browsers: true }],
  ['retry.attemptsMax is not an option of defineWorkflow', { retry: { attemptsMax: 3 } }],
  [attemptsRule, { retry: { maxAttempts: 0 } }],
  [attemptsRule, { retry: { maxAttempts: 1.5 } }],
  ['retry.backoffSeconds must be at least 0', { retry: { backoffSeconds: -1 } }],
  ['retry.backoffFactor must be at least 1', { retry: { backoffFactor: 0.5 } }],
])('%s (%o)', (rule, change) => {
  const read = () => parseWorkflow('folder/example.ts', { ...definition, ...change })
  expect(read).toThrow(WorkflowError)
  expect(read).toThrow(new WorkflowError(`folder/example.ts is not a valid workflow: ${rule}.`))
})

test.each([undefined, null, 'text', [], () => definition])(
  'a default export that is not a definition (%o) is rejected',
  (value) => {
    expect(() => parseWorkflow('example.ts', value)).toThrow(
      'example.ts is not a valid workflow: its default export must be the result of defineWorkflow.',
    )
  },
)
