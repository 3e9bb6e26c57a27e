/** The mock's runs are runs of the workflows that it was started with. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { describe, expect, test } from 'vitest'
import { exampleVariables } from '../../src/domain/workflows/example-values.ts'
import { validKey } from '../../src/tools/mock/mock-keys.ts'
import { expectDocumented, expectProblem, operationOf } from '../operations/document.ts'
import { testedWorkflows, useMock } from './use-mock.ts'

const { call, clock, urls } = useMock()
const [queue, getRun, follow] = [operationOf('queueRemoteRun'), operationOf('getRun'), operationOf('streamRunEvents')]
const workflows = await testedWorkflows()
const unknownRun = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

const greeting = { name: 'Ada', token: 'a-long-secret' }

const queueGreet = (query = '', headers = {}) => {
  const body = { variableData: greeting }
  return call(queue, { path: { workflowId: 'greet' }, body, headers, ...(query && { query }) })
}

test('lists exactly the workflows of the directory, and describes each', async () => {
  const { data } = JSON.parse((await call(operationOf('listWorkflows'))).text)
  expect(data.map(({ id }: { id: string }) => id)).toEqual(workflows.list().map(({ id }) => id))
  const { text } = await call(operationOf('getWorkflow'), { path: { workflowId: 'greet' } })
  expect(JSON.parse(text).variablesSchema).toEqual(workflows.get('greet')?.variables)
})

test('the served document has an operation for each workflow', async () => {
  const { paths } = JSON.parse((await call(operationOf('getWorkflowsDocument'))).text)
  for (const { id } of workflows.list()) expect(paths).toHaveProperty([`/v1/execution/queue-remote/${id}`])
})

test.each(workflows.list())('an awaited run of $id has an output that its schema allows', async ({ id, variables }) => {
  const secret = 'token' in Object(variables.properties) && { token: greeting.token }
  const body = { variableData: { ...exampleVariables(variables), ...secret } }
  const response = await call(queue, { path: { workflowId: id }, body, headers: { Prefer: 'wait=10' } })
  expectDocumented(queue, response)
  const run = JSON.parse(response.text)
  expect(run).toMatchObject({ workflowId: id, status: 'succeeded' })
  expect(workflows.checkOutput(id, run.output)).not.toHaveProperty('errors')
})

test('an unknown workflow gets a 404', async () => {
  const response = await call(queue, { path: { workflowId: 'none-such' } })
  expect(response.status).toBe(404)
})

test('invalid variables get a 400 that names them', async () => {
  const response = await call(queue, { body: { variableData: { top: 0 } } })
  expectProblem(queue, response, {
    ...{ kind: 'invalid-request', title: 'Invalid request', status: 400 },
    errors: [
      { pointer: '/variableData/path', detail: 'is required' },
      { pointer: '/variableData/top', detail: 'must be >= 1' },
    ],
  })
})

describe('an answer', () => {
  const complete = operationOf('completeWait')
  const answer = (name: string, value: unknown, runId = unknownRun) =>
    call(complete, { path: { runId, name }, body: { value } })

  test('is returned as the answer to the declared wait', async () => {
    const response = await answer('discount', 20)
    expectDocumented(complete, response)
    const { schema } = workflows.get('approve')?.waits?.discount ?? {}
    const wait = { runId: unknownRun, workflowId: 'approve', name: 'discount', status: 'completed', value: 20, schema }
    expect(JSON.parse(response.text)).toMatchObject(wait)
  })

  test('that does not fit the declared schema gets a 400 that names the place', async () => {
    const response = await answer('approval', { approved: 'yes' })
    expectProblem(complete, response, {
      ...{ kind: 'invalid-request', title: 'Invalid request', status: 400 },
      errors: [{ pointer: '/value/approved', detail: 'must be boolean' }],
    })
  })
})

test('examples of runs become runs of the workflow that is asked for', async () => {
  const { text } = await call(operationOf('listRuns'), { query: 'workflowId=greet' })
  const [run] = JSON.parse(text).data
  expect(run.workflowId).toBe('greet')
  expect(workflows.checkOutput('greet', run.output)).not.toHaveProperty('errors')
})

test('a queued run has the variables of its request, with secrets masked, and its options', async () => {
  const queued = JSON.parse((await queueGreet('priority=3&delaySeconds=60&expiresInSeconds=90&tag=a')).text)
  const after = (seconds: number) => new Date(Date.parse(queued.createdAt) + seconds * 1000).toISOString()
  expect(queued).toMatchObject({
    ...{ workflowId: 'greet', status: 'queued', waitingFor: 'delay', priority: 3, tags: ['a'], output: null },
    ...{ availableAt: after(60), expiresAt: after(90), variableData: { name: 'Ada', token: '********' } },
  })
})

test('a rerun has the variables and options of its request, if its workflow takes them', async () => {
  const rerun = async (variableData: object) =>
    JSON.parse(
      (await call(operationOf('rerunRun'), { path: { runId: unknownRun }, query: 'tag=b', body: { variableData } }))
        .text,
    )
  expect(await rerun({ path: 'docs' })).toMatchObject({
    rerunOf: unknownRun,
    tags: ['b'],
    variableData: { path: 'docs' },
  })
  expect((await rerun({ top: 0 })).variableData).not.toMatchObject({ top: 0 })
})

test('what was queued is not remembered: another run of the ID is the example', async () => {
  const { id } = JSON.parse((await queueGreet('tag=mine')).text)
  const { text } = await call(getRun, { path: { runId: id } })
  expect(JSON.parse(text)).toMatchObject({ id, tags: [] })
})

test('an MCP client is led to the simulator', async () => {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', urls().executionUrl))
  // The SDK declares an optional member without exactOptionalPropertyTypes.
  await expect(client.connect(transport as Transport)).rejects.toThrow(/The simulator has one: .*mock --simulate/)
})

test.each([
  ['queuedRun', { status: 'queued', waitingFor: 'worker' }],
  ['waitingRun', { status: 'queued', waitingFor: 'concurrencyLimit' }],
  ['runningRun', { status: 'running', progress: { percent: 40 } }],
  ['failedRun', { status: 'failed', reason: 'workflowFailed', attempts: 3 }],
  ['timedOutRun', { status: 'timedOut', reason: 'timeLimit' }],
  ['cancelledRun', { status: 'cancelled' }],
  ['expiredRun', { status: 'expired', reason: 'notStartedInTime' }],
])('Prefer: example=%s responds with that scenario', async (example, members) => {
  const response = await call(getRun, { path: { runId: unknownRun }, headers: { Prefer: `example=${example}` } })
  expect(JSON.parse(response.text)).toMatchObject(members)
})

test('an example of an event stream is sent at its own pace', async () => {
  const before = clock.now()
  await call(follow, { path: { runId: unknownRun }, headers: { Prefer: 'example=longRun' } }, validKey.value)
  expect(clock.now() - before).toBe(6000)
})

test('made-up runs have times of the last weeks and small counts, and are equal for the same seed', async () => {
  const made = async () =>
    (await call(operationOf('listRuns'), { headers: { Prefer: 'dynamic=true, seed=7' }, query: 'limit=5' })).text
  const text = await made()
  expect(await made()).toBe(text)
  for (const { createdAt, attempts } of JSON.parse(text).data) {
    expect(Math.abs(Date.now() - Date.parse(createdAt))).toBeLessThan(16 * 24 * 3600 * 1000)
    expect(attempts).toBeLessThanOrEqual(20)
  }
})
