/** The published client works with the mock. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createExecutionClient } from '../../src/client/index.ts'
import { startMock } from '../../src/tools/mock/mock.ts'
import { mockKeys, validKey } from '../../src/tools/mock/mock-keys.ts'
import { jumpingClock, testedWorkflows } from './use-mock.ts'

test('the client queues, awaits, follows and lists runs, and receives errors as values', async (context) => {
  const log = pino({ level: 'silent' })
  const [workflows, clock] = [await testedWorkflows(), jumpingClock()]
  const mock = await startMock({ host: '127.0.0.1', executionPort: 0, browserContextPort: 0, log, workflows, clock })
  context.onTestFinished(() => mock.stop())
  const client = createExecutionClient({ baseUrl: mock.executionUrl, apiKey: validKey.value })
  const queued = await client.queueRemoteRun({
    params: { path: { workflowId: 'count-words' } },
    body: { variableData: { path: 'README.md' } },
  })
  const runId = queued.data?.id ?? ''
  expect((await client.runs.wait(runId)).data?.status).toBe('succeeded')
  const events = []
  for await (const event of client.runs.events(runId)) events.push(event)
  expect(events).not.toEqual([])
  const runs = []
  for await (const run of client.runs.list()) runs.push(run)
  expect(runs).toHaveLength(1)
  for (const { value, status } of mockKeys.filter((key) => key.status !== 200)) {
    const failing = createExecutionClient({ baseUrl: mock.executionUrl, apiKey: value, retries: 0 })
    expect((await failing.listRuns()).error?.status).toBe(status)
  }
})
