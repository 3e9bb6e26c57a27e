import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runWorkflow } from 'execution-service/testing'
import greet from './greet.ts'

test('greets by name', async () => {
  const run = await runWorkflow(greet, { variables: { name: 'Ada' } })
  assert.equal(run.error, null)
  assert.deepEqual(run.output, { text: 'Hello, Ada!', characters: 11 })
  assert.deepEqual(run.logs, [{ level: 'info', message: 'The greeting is "Hello, Ada!".' }])
})

test('repeats a failed step', async () => {
  let calls = 0
  const compose = () => {
    calls += 1
    if (calls === 1) throw new Error('Not this time.')
    return 'Good morning!'
  }
  const run = await runWorkflow(greet, { variables: { name: 'Ada' }, steps: { compose }, retry: true })
  assert.deepEqual([run.status, run.attempts], ['succeeded', 2])
})

test('refuses an empty name', async () => {
  await assert.rejects(runWorkflow(greet, { variables: { name: '' } }), {
    errors: [{ pointer: '/variableData/name', detail: 'must NOT have fewer than 1 characters' }],
  })
})
