import assert from 'node:assert/strict'
import { test } from 'node:test'
import { after, runWorkflow } from 'execution-service/testing'
import approve from './approve.ts'

const variables = { request: 'A new chair' }

test('is approved an hour after an answer, which may take days', async () => {
  const run = await runWorkflow(approve, { variables, clock: 'fake', answers: { approval: after(3 * 86_400, true) } })
  assert.deepEqual(run.output, { approved: true })
  assert.deepEqual(
    run.waits.map(({ name, seconds }) => [name, seconds]),
    [
      ['approval', 3 * 86_400],
      ['withdrawal', 3600],
    ],
  )
})

test('is not approved without an answer', async () => {
  const run = await runWorkflow(approve, { variables, answers: { approval: undefined } })
  assert.deepEqual(run.output, { approved: false })
})
