/** Examples of variables and outputs, which are made when workflows are deployed. */
import { expect, test } from 'vitest'
import { checkWorkflows } from '../../../src/domain/workflows/check-workflows.ts'
import { workflow } from '../../support/snapshots.ts'

type Schema = Record<string, unknown>

function examplesOf(variables: Schema, output: Schema = {}) {
  const checked = workflow({ variables: { type: 'object', ...variables }, output })
  checkWorkflows([checked])
  return checked.examples
}

const path = { type: 'string', examples: ['README.md'] }

test('are those of the schema, as the run shows them too', () => {
  const properties = { path, top: { type: 'integer', default: 5 }, token: { type: 'string', writeOnly: true } }
  const examples = [
    { path: 'a', token: 'secret' },
    { path: 'b', top: 1 },
  ]
  expect(examplesOf({ properties, examples })?.variables).toEqual([
    { value: examples[0], masked: { path: 'a', token: '********', top: 5 } },
    { value: examples[1], masked: { path: 'b', top: 1 } },
  ])
})

test('are made of the members, if these are valid', () => {
  expect(examplesOf({ required: ['path'], properties: { path, other: { type: 'string' } } })?.variables).toEqual([
    { value: { path: 'README.md' }, masked: { path: 'README.md' } },
  ])
  const pattern = { type: 'string', pattern: '^[0-9]{4}$' }
  const made = examplesOf({ required: ['code'], properties: { code: pattern } }, pattern)
  expect(made).toEqual({ variables: [], outputs: [] })
})

test('an example that the schema refuses is an error with its place', () => {
  const variables = { required: ['path'], properties: { path }, examples: [{ path: 'a' }, { path: 1 }] }
  expect(() => examplesOf(variables)).toThrow(
    'The example at /examples/1 in the variables schema of workflow "anything" does not match it: /path must be string.',
  )
})

test('each answer that a workflow waits for has an example, if it is valid', () => {
  const wait = (schema: Schema) => ({ schema, title: null, description: null })
  const approval = { type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' } } }
  const code = { type: 'string', pattern: '^[0-9]{4}$' }
  const checked = workflow({ waits: { approval: wait(approval), code: wait(code), name: wait({ type: 'string' }) } })
  checkWorkflows([checked])
  expect(checked.examples?.answers).toEqual({ approval: { approved: false }, name: '<name>' })
})
