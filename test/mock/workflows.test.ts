/** The mock's runs are runs of the workflows that it was started with. */
import { describe, expect, test } from 'vitest'
import { exampleVariables } from '../../src/domain/workflows/example-values.ts'
import { validKey } from '../../src/tools/mock/mock-keys.ts'
import { expectDocumented, expectProblem, operationOf } from '../operations/document.ts'
import { testedWorkflows, useMock } from './use-mock.ts'

const { call, clock } = useMock()
const [queue, getRun, follow] = [operationOf('queueRemoteRun'), operationOf('getRun'), operationOf('streamRunEvents')]
const workflows = await testedWorkflows()
const unknownRun = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

const greeting = { name: 'Ada', token: 'a-long-secret' }

const queueGreet = (query = '', headers = {}) => {
  const body = { variableData: greeting }
  return call(queue, { path: { workflowId: 'greet' }, body, headers, ...(query && { query }) })
}

async function read(runId: string) {
  const response = await call(getRun, { path: { runId } })
  expectDocumented(getRun, response)
  return JSON.parse(response.text)
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

  test('to a run of the mock gets a 404 unless the workflow of the run declares the wait', async () => {
    const queued = await call(queue, { path: { workflowId: 'approve' }, body: { variableData: {} } })
    expect((await answer('discount', 20, JSON.parse(queued.text).id)).status).toBe(200)
    const { id } = JSON.parse((await queueGreet()).text)
    expect((await answer('discount', 20, id)).status).toBe(404)
  })
})

test('examples of runs become runs of the workflow that is asked for', async () => {
  const { text } = await call(operationOf('listRuns'), { query: 'workflowId=greet' })
  const [run] = JSON.parse(text).data
  expect(run.workflowId).toBe('greet')
  expect(workflows.checkOutput('greet', run.output)).not.toHaveProperty('errors')
})

describe('a queued run', () => {
  test('keeps its variables, with secrets masked, and its options', async () => {
    const queued = JSON.parse((await queueGreet('priority=3&delaySeconds=60&tag=a')).text)
    expect(queued).toMatchObject({
      workflowId: 'greet',
      status: 'queued',
      waitingFor: 'delay',
      priority: 3,
      tags: ['a'],
    })
    expect(queued.variableData).toMatchObject({ name: 'Ada', token: '********' })
    expect(await read(queued.id)).toEqual(queued)
  })

  test('is queued, runs with progress, and succeeds as time passes', async () => {
    const { id } = JSON.parse((await queueGreet()).text)
    clock.pass(3000)
    expect(await read(id)).toMatchObject({ status: 'running', output: null, attempts: 1, progress: { percent: 40 } })
    clock.pass(3000)
    const finished = await read(id)
    expect(finished).toMatchObject({ status: 'succeeded', progress: { percent: 100 } })
    expect(finished.artifacts).toHaveLength(1)
    expect(workflows.checkOutput('greet', finished.output)).not.toHaveProperty('errors')
  })

  test('sends its events when they happen, and none after the last', async () => {
    const { id, createdAt } = JSON.parse((await queueGreet()).text)
    const { text } = await call(follow, { path: { runId: id } })
    const events = text.match(/(?<=^data: ).*/gm)?.map((data) => JSON.parse(data)) ?? []
    expect(events[0]).toMatchObject({ status: 'queued', at: createdAt })
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['status', 'step', 'log', 'progress', 'artifact']))
    expect(events.at(-1)).toMatchObject({ status: 'succeeded', at: new Date(clock.now()).toISOString() })
    const last = { 'Last-Event-ID': String(events.length) }
    expect((await call(follow, { path: { runId: id }, headers: last })).status).toBe(204)
  })

  test('can be run again once it has ended, with its options and secrets or with other variables', async () => {
    const rerun = operationOf('rerunRun')
    const { id } = JSON.parse((await queueGreet('priority=3&tag=a')).text)
    expect((await call(rerun, { path: { runId: id }, body: {} })).status).toBe(409)
    await call(operationOf('cancelRun'), { path: { runId: id } })
    const again = await call(rerun, { path: { runId: id }, body: {} })
    expectDocumented(rerun, again)
    const run = JSON.parse(again.text)
    const variableData = { name: 'Ada', token: '********' }
    expect(run).toMatchObject({
      workflowId: 'greet',
      status: 'queued',
      rerunOf: id,
      priority: 3,
      tags: ['a'],
      variableData,
    })
    expect(await read(run.id)).toMatchObject({ rerunOf: id })
    const other = { path: { runId: id }, query: 'priority=1', body: { variableData: { name: 'Grace' } } }
    expect(JSON.parse((await call(rerun, other)).text)).toMatchObject({ priority: 1, variableData: { name: 'Grace' } })
  })

  test('can start from a step of a cancelled run, which reuses the steps before it', async () => {
    const rerun = operationOf('rerunRun')
    const { id } = JSON.parse((await queueGreet()).text)
    clock.pass(3000)
    await call(operationOf('cancelRun'), { path: { runId: id } })
    const from = (runId: string, fromStep: string) => call(rerun, { path: { runId }, body: { fromStep } })
    const again = await from(id, 'process')
    expectDocumented(rerun, again)
    const { text } = await call(follow, { path: { runId: JSON.parse(again.text).id } })
    expect(text.match(/(?<="name":"prepare","state":")\w+/g)).toEqual(['reused'])
    expect(text.match(/(?<="name":"process","state":")\w+/g)).toEqual(['started', 'finished'])
    expect(text.match(/(?<="sequence":)\d+/g)?.map(Number)).toEqual(text.match(/(?<=^id: )\d+/gm)?.map(Number))
    const unknown = await from(id, 'no-such-step')
    expect(JSON.parse(unknown.text).errors).toEqual([
      { pointer: '/fromStep', detail: expect.stringContaining('the first are prepare, process') },
    ])
    expect((await from(JSON.parse(again.text).id, 'process')).text).toContain('a run that succeeded')
  })

  test('can be cancelled, which ends its events', async () => {
    const { id } = JSON.parse((await queueGreet()).text)
    clock.pass(3000)
    const cancelled = JSON.parse((await call(operationOf('cancelRun'), { path: { runId: id } })).text)
    expect(cancelled).toMatchObject({ status: 'cancelled', cancelRequested: true, reason: 'cancelRequested' })
    clock.pass(60_000)
    expect(await read(id)).toEqual(cancelled)
    expect((await call(follow, { path: { runId: id } })).text).toMatch(/"status":"cancelled".*\n\n$/)
  })
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
