/** What is known of a run that `runs.queueAndWait` has queued and could not wait for: on a server that holds its answers. */
import { expect, test } from 'vitest'
import { createExecutionClient, problemTypes } from '../../src/client/index.ts'
import { type Act, answer, hang, problem, scripted } from './scripted-server.ts'

const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
const queued = { id, finishedAt: null }

async function queueAndWait(test: Parameters<typeof scripted>[0], timeoutSeconds: number | undefined, acts: Act[]) {
  const server = await scripted(test, ...acts)
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key', retries: 0 })
  const { error } = await client.runs.queueAndWait('greet', { name: 'Ada' }, { timeoutSeconds })
  return { error, prefer: server.requests[0]?.headers.prefer }
}

test.for([
  [undefined, 'wait=30'],
  [600, 'wait=30'],
  [31, 'wait=30'],
  [30, 'wait=29'],
  [2.5, 'wait=1'],
  [1.9, undefined],
] as const)('the service is asked to answer before the time of %j s is over: %s', async ([seconds, expected], test) => {
  const { prefer, error } = await queueAndWait(test, seconds, [problem('not-found')])
  expect(prefer).toBe(expected)
  expect(error).not.toHaveProperty('runId')
})

test('out of time, the error names the run', async (test) => {
  const { error } = await queueAndWait(test, 1, [answer(202, queued), answer(200, queued), hang])
  expect(error).toMatchObject({ type: problemTypes.timeout, runId: id })
  expect(error?.detail).toBe(`Run ${id} has not finished within 1 s. It goes on.`)
})

test('a run that is queued and cannot be followed is named by the error', async (test) => {
  const { error } = await queueAndWait(test, 5, [answer(202, queued), answer(200, queued), problem('internal-error')])
  expect(error).toMatchObject({ status: 500, runId: id })
})
