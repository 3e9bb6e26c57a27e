/** Lists with unusual pages, and queueAndWait when the wait fails, against a scripted server. */
import { expect, test } from 'vitest'
import { createExecutionClient, problemTypes } from '../../src/client/index.ts'
import { type Act, collect, hang, problem, respond, startScriptedServer } from './scripted-server.ts'

const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
const queued = { id, finishedAt: null }

async function queueAndWait(
  test: Parameters<typeof startScriptedServer>[0],
  timeoutSeconds: number | undefined,
  acts: Act[],
) {
  const server = await startScriptedServer(test, ...acts)
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
] as const)('queueAndWait asks for a response within its time limit: %j s, %s', async ([seconds, expected], test) => {
  const { prefer, error } = await queueAndWait(test, seconds, [problem('not-found')])
  expect(prefer).toBe(expected)
  expect(error).not.toHaveProperty('runId')
})

test('when queueAndWait times out, the error has the run id', async (test) => {
  const { error } = await queueAndWait(test, 1, [respond(202, queued), respond(200, queued), hang])
  expect(error).toMatchObject({ type: problemTypes.timeout, runId: id })
  expect(error?.detail).toBe(`Run ${id} did not finish within 1 s. It continues.`)
})

test('when the queued run cannot be followed, the error has the run id', async (test) => {
  const { error } = await queueAndWait(test, 5, [respond(202, queued), respond(200, queued), problem('internal-error')])
  expect(error).toMatchObject({ status: 500, runId: id })
})

test('a page without nextCursor is the last one', async (test) => {
  const server = await startScriptedServer(test, respond(200, { data: [{ id: 'a run' }] }))
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key' })
  const ids: string[] = []
  for await (const { id } of client.runs.list()) {
    if (ids.push(id) === 5) break
  }
  expect(ids).toEqual(['a run'])
})

test('a list whose pages form a loop throws', async (test) => {
  const pages = ['b', 'c', 'b', 'c'].map((nextCursor) => respond(200, { data: [{ id: 'a run' }], nextCursor }))
  const server = await startScriptedServer(test, ...pages, respond(200, { data: [], nextCursor: null }))
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key' })
  const expected = { type: problemTypes.unexpectedResponse, status: 200 }
  await expect(collect(client.runs.list())).rejects.toMatchObject(expected)
  expect(server.requests.map(({ path }) => new URL(path, server.url).search)).toEqual(['', '?cursor=b', '?cursor=c'])
})
