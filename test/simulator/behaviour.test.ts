/** Scenarios and faults of a simulator that runs, over HTTP. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createExecutionClient, type ExecutionClient, unwrap } from '../../src/client/index.ts'
import { type Simulator, simulate } from '../../src/simulator/simulator.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'

const throwing = runModule("throw new Error('A simulator runs no code.')")
const snapshot = writtenSnapshot({
  order: { module: throwing, output: { type: 'object', properties: { price: { type: 'number' } } } },
  refund: {
    module: throwing,
    waits: { approval: { title: 'Refund?', description: null, schema: { type: 'object' } } },
  },
})

let simulator: Simulator
let client: ExecutionClient
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), 'scenarios-'))
  const scenarios = join(directory, 'scenarios.yaml')
  writeFileSync(scenarios, 'scenarios:\n  - workflow: order\n    durationSeconds: 5\n    output: { price: 1 }\n')
  simulator = await simulate(Promise.resolve(snapshot), { now: new Date('2026-03-01T00:00:00Z'), scenarios })
  rmSync(directory, { recursive: true })
})
afterAll(() => simulator.stop())
beforeEach(async () => {
  await simulator.setFaults({})
  client = createExecutionClient({ baseUrl: simulator.executionUrl, apiKey: simulator.apiKey, retries: 0 })
})

async function queue(workflowId = 'order') {
  return unwrap(await client.queueRemoteRun({ params: { path: { workflowId } }, body: { variableData: {} } }))
}

async function getRun(runId: string) {
  return unwrap(await client.getRun({ params: { path: { runId } } }))
}

test('scenarios are read from a file, and replaced while the simulator runs', async () => {
  const first = await queue()
  await simulator.advance({ seconds: 4 })
  await simulator.setScenarios([{ workflow: 'order', durationSeconds: 1, error: { message: 'Sold out' } }])
  const second = await queue()
  await simulator.advance({ seconds: 1 })
  expect(await getRun(first.id)).toMatchObject({ status: 'succeeded', output: { price: 1 } })
  expect(await getRun(second.id)).toMatchObject({ status: 'failed', error: { name: 'Error', message: 'Sold out' } })
  await simulator.reset()
  const third = await queue()
  await simulator.advance({ seconds: 5 })
  expect(await getRun(third.id)).toMatchObject({ status: 'succeeded', output: { price: 1 } })
})

test('scenarios that do not fit are refused with their places, and change nothing', async () => {
  const refused = simulator.setScenarios([{ workflow: 'order', output: { price: 'free' } }])
  await expect(refused).rejects.toThrow(
    '/scenarios/0/output/price must be number, by the schema of the output of "order".',
  )
  const { scenarios } = await (await fetch(`${simulator.managementUrl}/simulator/scenarios`)).json()
  expect(scenarios).toEqual([{ workflow: 'order', durationSeconds: 5, output: { price: 1 } }])
})

test('a simulator does not start with scenarios that do not fit', async () => {
  const started = simulate(Promise.resolve(snapshot), { scenarios: [{ workflow: 'oder' }] })
  await expect(started).rejects.toThrow('/scenarios/0/workflow names no workflow: did you mean "order"?')
  const unread = simulate(Promise.resolve(snapshot), { scenarios: 'missing.yaml' })
  await expect(unread).rejects.toThrow(/^missing\.yaml: cannot be read: ENOENT/)
})

test('operations fail on request as documented, and others work', async () => {
  const { id } = await queue()
  await simulator.setFaults({ queueRemoteRun: { statuses: [507] }, listRuns: { statuses: [429] } })
  const queued = await client.queueRemoteRun({ params: { path: { workflowId: 'order' } }, body: { variableData: {} } })
  expect(queued.response.status).toBe(507)
  expect(queued.error).toMatchObject({ type: '/docs/errors#storage-quota-exceeded', status: 507 })
  const listed = await client.listRuns({})
  expect(listed.response.status).toBe(429)
  expect(listed.response.headers.get('retry-after')).toBe('1')
  expect(await getRun(id)).toMatchObject({ id })
})

test('a run is queued although its response is lost', async () => {
  const before = unwrap(await client.listRuns({})).data.length
  await simulator.setFaults({ queueRemoteRun: { dropConnections: 'after' } })
  await expect(queue()).rejects.toThrow()
  expect(unwrap(await client.listRuns({})).data).toHaveLength(before + 1)
})

test('a fault of an unknown operation is refused', async () => {
  await expect(simulator.setFaults({ listRun: { statuses: [503] } })).rejects.toThrow(
    '/operations/listRun is no operation: did you mean "listRuns"?',
  )
})

test('what a run does after an answer depends on the answer', async () => {
  const answers = [
    { value: { approved: false }, error: { name: 'Refused', message: 'No refund' } },
    { timedOut: true as const, actions: [{ log: 'No answer' }, { pause: 2 }], output: 'late' },
  ]
  const ask = { wait: 'approval', timeoutSeconds: 3600, answers }
  await simulator.setScenarios([{ workflow: 'refund', actions: [{ ask }, { pause: 5 }], output: 'refunded' }])
  const complete = (runId: string, approved: boolean) =>
    client.completeWait({ params: { path: { runId, name: 'approval' } }, body: { value: { approved, by: 'Ada' } } })
  const runs = await Promise.all(Array.from({ length: 5 }, () => queue('refund')))
  const [refused, accepted, unanswered, refusedBefore, acceptedBefore] = runs.map(({ id }) => id) as [
    ...[string, string, string, string, string],
  ]
  await complete(refusedBefore, false)
  await complete(acceptedBefore, true)
  await simulator.advance({ seconds: 1 })
  expect(await getRun(refusedBefore)).toMatchObject({ status: 'failed', error: { name: 'Refused' } })
  await complete(refused, false)
  await complete(accepted, true)
  await simulator.advance({ seconds: 1 })
  expect(await getRun(refused)).toMatchObject({ status: 'failed', error: { name: 'Refused', message: 'No refund' } })
  for (const runId of [accepted, acceptedBefore]) expect(await getRun(runId)).toMatchObject({ status: 'running' })
  await simulator.advance({ seconds: 5 })
  for (const runId of [accepted, acceptedBefore])
    expect(await getRun(runId)).toMatchObject({ status: 'succeeded', output: 'refunded' })
  expect(await getRun(unanswered)).toMatchObject({ waitingFor: 'answer' })
  await simulator.advance({ seconds: 3594 })
  expect(await getRun(unanswered)).toMatchObject({ status: 'running' })
  await simulator.advance({ seconds: 2 })
  expect(await getRun(unanswered)).toMatchObject({ status: 'succeeded', output: 'late' })
})
