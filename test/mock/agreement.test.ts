/** A response of the mock agrees with its request, although the mock stores nothing. */
import { describe, expect, test } from 'vitest'
import { expectDocumented, operationOf } from '../operations/document.ts'
import type { Filled } from '../operations/requests.ts'
import { useMock } from './use-mock.ts'

const { call, clock } = useMock()
const id = '0198f2c5-7a10-7c3e-9d51-00000000abcd'

async function bodyOf(operationId: Parameters<typeof operationOf>[0], filled: Filled = {}) {
  const operation = operationOf(operationId)
  const response = await call(operation, filled)
  expectDocumented(operation, response)
  return JSON.parse(response.text)
}

test.each([
  ['getRun', { runId: id }, { id }],
  ['cancelRun', { runId: id }, { id }],
  ['getSchedule', { scheduleId: id }, { id }],
  ['triggerSchedule', { scheduleId: id }, { scheduleId: id }],
  ['getWebhookEndpoint', { endpointId: id }, { id }],
  ['getBrowserContext', { browserContextId: id }, { id }],
  ['rerunRun', { runId: id }, { rerunOf: id }],
] as const)('%s answers with the id of the path', async (operationId, path, expected) => {
  expect(await bodyOf(operationId, { path })).toMatchObject(expected)
})

test.each(['queuedRun', 'failedRun', 'timedOutRun'])('the example %s of a run has the id of the path', async (name) => {
  const run = await bodyOf('getRun', { path: { runId: id }, headers: { Prefer: `example=${name}` } })
  expect(run.id).toBe(id)
})

describe('a list of runs', () => {
  const list = async (query: string) => (await bodyOf('listRuns', { query })).data

  test.each(['queued', 'running', 'succeeded', 'failed', 'timedOut', 'cancelled', 'expired'])(
    'of the status %s has only such runs',
    async (status) => {
      const statuses = (await list(`status=${status}`)).map((run: { status: string }) => run.status)
      expect(new Set(statuses)).toEqual(new Set([status]))
    },
  )

  test.each([
    ['tag=abc', { tags: ['abc'] }],
    ['workflowId=greet', { workflowId: 'greet' }],
    [`parentRunId=${id}`, { parentRunId: id }],
  ])('asked for with %s has only such runs', async (query, expected) => {
    const runs = await list(query)
    expect(runs).not.toEqual([])
    for (const run of runs) expect(run).toMatchObject(expected)
  })

  test.each(['workflowId=none-such', 'createdAfter=2999-01-01T00:00:00Z', 'createdBefore=1999-01-01T00:00:00Z'])(
    'is empty if nothing fits %s',
    async (query) => {
      expect(await list(query)).toEqual([])
    },
  )

  test('has no more than its limit, in its order', async () => {
    expect(await list('limit=1')).toHaveLength(1)
    const times = (await list('order=oldestFirst')).map(({ createdAt }: { createdAt: string }) => createdAt)
    expect(times).toEqual(times.toSorted())
  })

  test('that failed with a word in their error have it', async () => {
    const [first] = await list('status=failed')
    const [word] = /\w{4,}/.exec(first.error.message) ?? []
    expect(await list(`errorWord=${word}`)).not.toEqual([])
    expect(await list('errorWord=nowhere')).toEqual([])
  })
})

test('a batch queues each of its runs', async () => {
  const runs = [
    { workflowId: 'greet', variableData: { name: 'Ada', token: 'a-long-secret' }, tags: ['a'], priority: 3 },
    { workflowId: 'count-words', variableData: { path: 'README.md' }, delaySeconds: 60 },
    { workflowId: 'greet', variableData: { name: 'Bo', token: 'a-long-secret' } },
  ]
  const { data } = await bodyOf('queueRemoteRunBatch', { body: { runs } })
  expect(data).toMatchObject([
    { workflowId: 'greet', variableData: { name: 'Ada' }, tags: ['a'], priority: 3, waitingFor: 'worker' },
    { workflowId: 'count-words', variableData: { path: 'README.md' }, tags: [], waitingFor: 'delay' },
    { workflowId: 'greet', variableData: { name: 'Bo' } },
  ])
  expect(new Set(data.map(({ id }: { id: string }) => id)).size).toBe(3)
})

test('what is created has the members of its request, and expires when it asks for', async () => {
  const context = await bodyOf('createBrowserContext', { body: { name: 'shop of Ada' } })
  expect(context).toMatchObject({ name: 'shop of Ada' })
  expect((await bodyOf('listBrowserContexts', { query: 'name=shop' })).data).toMatchObject([{ name: 'shop' }])
  const token = await bodyOf('createRunToken', { body: { runId: id, expiresInSeconds: 600 } })
  expect(token.expiresAt).toBe(new Date(clock.now() + 600_000).toISOString())
  const setting = await bodyOf('putSetting', { path: { name: 'LIMITS' }, body: { value: { max: 3 } } })
  expect(setting).toMatchObject({ name: 'LIMITS', value: { max: 3 } })
})
