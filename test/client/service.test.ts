/** The client against the real service: pagination, following and waiting for runs, and document hashes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowserContextClient, createExecutionClient, problemTypes, unwrap } from '../../src/client/index.ts'
import { startTestService, type TestService, until } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.stop())

const unknownRunId = crypto.randomUUID()

/** Creates an account with clients that record their requests. */
async function createCaller() {
  const { key: apiKey } = await service.createAccount()
  const paths: string[] = []
  const recording = (request: Request) => {
    paths.push(`${request.method} ${new URL(request.url).pathname}${new URL(request.url).search}`)
    return fetch(request)
  }
  const drifts: unknown[] = []
  const options = { apiKey, fetch: recording, onDrift: (drift: unknown) => drifts.push(drift) }
  return {
    paths,
    drifts,
    execution: createExecutionClient({ baseUrl: service.executionUrl, ...options }),
    browserContext: createBrowserContextClient({ baseUrl: service.browserContextUrl, ...options }),
  }
}

type Caller = Awaited<ReturnType<typeof createCaller>>

async function queueHeldRun({ execution }: Caller) {
  const file = join(service.dataDirectory, `release-${crypto.randomUUID()}`)
  const params = { path: { workflowId: 'hold' } }
  const { id } = unwrap(await execution.queueRemoteRun({ params, body: { variableData: { file } } }))
  return { id, release: () => writeFileSync(file, '') }
}

async function queueDelayedRuns({ execution }: Caller, count: number): Promise<string[]> {
  const params = { path: { workflowId: 'greet' }, query: { delaySeconds: 3600 } }
  const ids: string[] = []
  for (let queued = 0; queued < count; queued++) {
    ids.unshift(unwrap(await execution.queueRemoteRun({ params, body: { variableData: { name: 'Ada' } } })).id)
  }
  return ids
}

describe('a list', () => {
  test('returns every run over all pages, newest first', async () => {
    const caller = await createCaller()
    const ids = await queueDelayedRuns(caller, 5)
    caller.paths.length = 0
    const list = caller.execution.runs.list({ limit: 2, status: 'queued' })
    const seen: string[] = []
    for await (const { id } of list) seen.push(id)
    expect(seen).toEqual(ids)
    expect(caller.paths).toHaveLength(3)
    const sizes: number[] = []
    for await (const { data } of list.pages()) sizes.push(data.length)
    expect(sizes).toEqual([2, 2, 1])
    for await (const _ of caller.execution.runs.list({ status: 'failed' })) throw new Error('No run has failed.')
    for await (const _ of caller.execution.runs.list({ tag: 'none' })) throw new Error('No run has this tag.')
  })

  test('fetches no more pages than the loop needs, and resumes at a cursor', async () => {
    const caller = await createCaller()
    const ids = await queueDelayedRuns(caller, 5)
    caller.paths.length = 0
    let cursor = ''
    for await (const { nextCursor } of caller.execution.runs.list({ limit: 2 }).pages()) {
      cursor = nextCursor ?? ''
      break
    }
    for await (const _ of caller.execution.runs.list({ limit: 2 })) break
    expect(caller.paths).toHaveLength(2)
    const seen: string[] = []
    for await (const { id } of caller.execution.runs.list({ limit: 2, cursor })) seen.push(id)
    expect(seen).toEqual(ids.slice(2))
  })

  test('returns every browser context over all pages', async () => {
    const { browserContext } = await createCaller()
    for (const name of ['a', 'b', 'c']) unwrap(await browserContext.createBrowserContext({ body: { name } }))
    const names: string[] = []
    for await (const { name } of browserContext.browserContexts.list({ limit: 2 })) names.push(name)
    expect(names).toEqual(['c', 'b', 'a'])
  })

  test('throws a ProblemError with the invalid parameters', async () => {
    const { execution } = await createCaller()
    const reading = async () => {
      for await (const _ of execution.runs.list({ limit: 1000 }));
    }
    await expect(reading()).rejects.toMatchObject({
      name: 'ProblemError',
      status: 400,
      errors: [{ parameter: 'limit', detail: expect.any(String) }],
      message: expect.stringMatching(/^400: .+\n {2}limit: /),
    })
  })
})

describe('a run', () => {
  test('is awaited by following its events, not by polling', async () => {
    const caller = await createCaller()
    const { id, release } = await queueHeldRun(caller)
    const waiting = caller.execution.runs.wait(id, { timeoutSeconds: 30 })
    await until('the run is followed', () => caller.paths.some((path) => path.endsWith('/events')))
    release()
    expect(unwrap(await waiting)).toMatchObject({ id, status: 'succeeded', output: 'released' })
    const path = `GET /v1/execution/runs/${id}`
    expect(caller.paths.slice(1)).toEqual([path, `${path}/events`, path])
    expect(unwrap(await caller.execution.runs.wait(id))).toMatchObject({ status: 'succeeded' })
    expect(caller.paths).toHaveLength(5)
  })

  test('continues when waiting for it times out or is aborted', async () => {
    const caller = await createCaller()
    const { id, release } = await queueHeldRun(caller)
    const { error } = await caller.execution.runs.wait(id, { timeoutSeconds: 0.2 })
    expect(error).toMatchObject({ status: 0, type: problemTypes.timeout })
    expect(error?.detail).toBe(`Run ${id} did not finish within 0.2 s. It continues.`)
    const aborting = caller.execution.runs.wait(id, { signal: AbortSignal.timeout(200) })
    expect((await aborting).error?.type).toBe(problemTypes.aborted)
    release()
    expect(unwrap(await caller.execution.runs.wait(id)).status).toBe('succeeded')
  })

  test('that does not exist cannot be awaited or followed', async () => {
    const { execution } = await createCaller()
    expect((await execution.runs.wait(unknownRunId)).error).toMatchObject({
      status: 404,
      type: '/docs/errors#not-found',
    })
    const following = async () => {
      for await (const _ of execution.runs.events(unknownRunId));
    }
    await expect(following()).rejects.toMatchObject({ status: 404 })
  })

  test('is followed from its first event, or after a known one, to its last', async () => {
    const caller = await createCaller()
    const { id, release } = await queueHeldRun(caller)
    const seen: string[] = []
    for await (const event of caller.execution.runs.events(id)) {
      seen.push(event.type === 'status' ? event.status : event.type === 'log' ? event.message : event.type)
      if (seen.at(-1) === 'Holding') release()
    }
    expect(seen).toEqual(['queued', 'running', 'Holding', 'Released', 'succeeded'])
    const later: number[] = []
    for await (const { sequence } of caller.execution.runs.events(id, { after: 3 })) later.push(sequence)
    expect(later).toEqual([4, 5])
    for await (const _ of caller.execution.runs.events(id, { after: 5 })) throw new Error('There is no more.')
  })

  test('that is quick takes one request, and an Idempotency-Key queues it once', async () => {
    const caller = await createCaller()
    const queue = () => caller.execution.runs.queueAndWait('greet', { name: 'Ada' }, { idempotencyKey: 'once' })
    const first = unwrap(await queue())
    expect(first).toMatchObject({ status: 'succeeded', output: { greeting: 'Hello, Ada!' } })
    expect(unwrap(await queue()).id).toBe(first.id)
    expect(caller.paths).toEqual(Array(2).fill('PUT /v1/execution/queue-remote/greet'))
    const { error } = await caller.execution.runs.queueAndWait('greet', { name: '' }, { priority: 3 })
    expect(error).toMatchObject({ status: 400, errors: [{ pointer: '/variableData/name' }] })
    const options = { delaySeconds: 3600, timeoutSeconds: 0.2 }
    expect((await caller.execution.runs.queueAndWait('greet', { name: 'Ada' }, options)).error).toMatchObject({
      type: problemTypes.timeout,
      runId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      detail: expect.stringMatching(/^Run [0-9a-f-]{36} did not finish within 0\.2 s\. It continues\.$/),
    })
  })
})

test('a list of workflows returns every workflow over all pages, sorted by id', async () => {
  const { execution, paths } = await createCaller()
  const { data } = unwrap(await execution.listWorkflows())
  paths.length = 0
  const listed: unknown[] = []
  for await (const workflow of execution.workflows.list({ limit: 2 })) listed.push(workflow)
  expect(listed).toEqual(data)
  expect(paths).toHaveLength(Math.ceil(data.length / 2))
})

test('a context is found by its name', async () => {
  const { browserContext } = await createCaller()
  const { id } = unwrap(await browserContext.createBrowserContext({ body: { name: 'Shop & Co' } }))
  await browserContext.createBrowserContext({ body: { name: 'Shop' } })
  const listed: string[] = []
  for await (const context of browserContext.browserContexts.list({ name: 'Shop & Co' })) listed.push(context.id)
  expect(listed).toEqual([id])
})

test('a storage state is read only if it has changed, and replaced only if it has not', async () => {
  const { browserContext: client } = await createCaller()
  const { id: browserContextId } = unwrap(await client.createBrowserContext())
  const path = { browserContextId }
  const read = (header = {}) => client.getStorageState({ params: { path, header } })
  const etag = (await read()).response.headers.get('ETag') ?? ''
  expect((await read({ 'If-None-Match': etag })).error).toMatchObject({ status: 304, title: 'Not modified' })
  const body = { cookies: [], origins: [] }
  const replace = () => client.putStorageState({ params: { path, header: { 'If-Match': etag } }, body })
  expect((await replace()).error).toBeUndefined()
  expect((await replace()).error).toMatchObject({ status: 412, type: '/docs/errors#version-changed' })
  expect((await read({ 'If-None-Match': etag })).data).toEqual(body)
})

test('a finished run is deleted, and an unfinished one refused', async () => {
  const caller = await createCaller()
  const [runId = ''] = await queueDelayedRuns(caller, 1)
  const params = { path: { runId } }
  expect((await caller.execution.deleteRun({ params })).error).toMatchObject({ status: 409 })
  unwrap(await caller.execution.cancelRun({ params }))
  expect((await caller.execution.deleteRun({ params })).error).toBeUndefined()
  expect((await caller.execution.getRun({ params })).error).toMatchObject({ status: 404 })
})

test('the service and both clients use the same documents', async () => {
  const { execution, browserContext, drifts } = await createCaller()
  const results = [await execution.listWorkflows(), await browserContext.listBrowserContexts()]
  for (const { response } of results) expect(response.headers.get('X-Document-Hash')).toMatch(/^[0-9a-f]{16}$/)
  expect(drifts).toEqual([])
})
