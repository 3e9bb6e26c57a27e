/** The rules of a workflow's definition, each refused with one sentence; and what is filled in. */
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

test('what a definition leaves out is filled in, and its function is left out', () => {
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

test('what a definition says is kept', () => {
  const said = {
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
  const read = parseWorkflow('example.ts', { ...said, browser: true, run: () => null })
  expect(read).toEqual({ ...said, usesBrowser: true })
  expect(parseWorkflow('example.ts', { ...definition, id: 'x'.repeat(128), retry: { maxAttempts: 2 } })).toMatchObject({
    retry: { maxAttempts: 2, backoffSeconds: 1, backoffFactor: 2 },
  })
})

const idRule = 'its id is to be 1 to 128 letters, digits, dots, underscores and hyphens'
const timeRule = 'its timeLimitSeconds is to be above 0 and at most 604800'
const limitRule = 'its concurrencyLimit is to be a whole number from 1 on'
const attemptsRule = 'its retry.maxAttempts is to be a whole number from 1 on'

test.each<[string, object]>([
  [idRule, { id: '' }],
  [idRule, { id: 'a b' }],
  [idRule, { id: 'ä' }],
  [idRule, { id: 'a/b' }],
  [idRule, { id: 'a\n' }],
  [idRule, { id: 'x'.repeat(129) }],
  [idRule, { id: 7 }],
  ['its version is to be a string', { version: 1 }],
  ['its version is to be a string', { version: '' }],
  ['its title is to be a string', { title: undefined }],
  ['its description is to be a string', { description: {} }],
  ['its variables are to be a JSON Schema with type "object"', { variables: { type: 'string' } }],
  ['its variables are to be a JSON Schema with type "object"', { variables: undefined }],
  ['its output is to be a JSON Schema', { output: undefined }],
  ['its output is to be a JSON Schema', { output: [] }],
  ['its run is to be a function', { run: 'run' }],
  [timeRule, { timeLimitSeconds: 0 }],
  [timeRule, { timeLimitSeconds: '60' }],
  [timeRule, { timeLimitSeconds: Number.NaN }],
  [timeRule, { timeLimitSeconds: Number.POSITIVE_INFINITY }],
  [timeRule, { timeLimitSeconds: 604_801 }],
  [limitRule, { concurrencyLimit: 0 }],
  [limitRule, { concurrencyLimit: 1.5 }],
  ['its retry is to be an object', { retry: 3 }],
  ['it has the member browsers, which means nothing', { browsers: true }],
  ['it has the member retry.attemptsMax, which means nothing', { retry: { attemptsMax: 3 } }],
  [attemptsRule, { retry: { maxAttempts: 0 } }],
  [attemptsRule, { retry: { maxAttempts: 1.5 } }],
  ['its retry.backoffSeconds is to be 0 or more', { retry: { backoffSeconds: -1 } }],
  ['its retry.backoffFactor is to be 1 or more', { retry: { backoffFactor: 0.5 } }],
])('%s: otherwise it is refused (%o)', (rule, change) => {
  const read = () => parseWorkflow('folder/example.ts', { ...definition, ...change })
  expect(read).toThrow(WorkflowError)
  expect(read).toThrow(new WorkflowError(`folder/example.ts is not a workflow: ${rule}.`))
})

test.each([undefined, null, 'text', [], () => definition])(
  'a default export that is no definition (%o) is refused',
  (it) => {
    expect(() => parseWorkflow('example.ts', it)).toThrow(
      'example.ts is not a workflow: its default export is to be what defineWorkflow returns.',
    )
  },
)
