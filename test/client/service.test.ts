/** The client with the real service: its lists, its runs to their end, and both documents. */
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

const nobody = crypto.randomUUID()

/** The clients of an account of the test's own, and what they have asked for. */
async function newCaller() {
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

type Caller = Awaited<ReturnType<typeof newCaller>>

async function hold({ execution }: Caller) {
  const file = join(service.dataDirectory, `release-${crypto.randomUUID()}`)
  const params = { path: { workflowId: 'hold' } }
  const { id } = unwrap(await execution.queueRemoteRun({ params, body: { variableData: { file } } }))
  return { id, release: () => writeFileSync(file, '') }
}

async function queueLater({ execution }: Caller, count: number): Promise<string[]> {
  const params = { path: { workflowId: 'greet' }, query: { delaySeconds: 3600 } }
  const ids: string[] = []
  for (let queued = 0; queued < count; queued++) {
    ids.unshift(unwrap(await execution.queueRemoteRun({ params, body: { variableData: { name: 'Ada' } } })).id)
  }
  return ids
}

describe('a list', () => {
  test('has every run over all pages, newest first, and the same by pages', async () => {
    const caller = await newCaller()
    const ids = await queueLater(caller, 5)
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
  })

  test('is fetched no further than the loop goes, and can be taken up again at a cursor', async () => {
    const caller = await newCaller()
    const ids = await queueLater(caller, 5)
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

  test('of browser contexts has them over all pages', async () => {
    const { browserContext } = await newCaller()
    for (const name of ['a', 'b', 'c']) unwrap(await browserContext.createBrowserContext({ body: { name } }))
    const names: string[] = []
    for await (const { name } of browserContext.browserContexts.list({ limit: 2 })) names.push(name)
    expect(names).toEqual(['c', 'b', 'a'])
  })

  test('throws what goes wrong, with the members at fault', async () => {
    const { execution } = await newCaller()
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
  test('is waited for to its end, by its events and not by asking again and again', async () => {
    const caller = await newCaller()
    const { id, release } = await hold(caller)
    const waiting = caller.execution.runs.wait(id, { timeoutSeconds: 30 })
    await until('it is followed', () => caller.paths.some((path) => path.endsWith('/events')))
    release()
    expect(unwrap(await waiting)).toMatchObject({ id, status: 'succeeded', output: 'released' })
    const path = `GET /v1/execution/runs/${id}`
    expect(caller.paths.slice(1)).toEqual([path, `${path}/events`, path])
    expect(unwrap(await caller.execution.runs.wait(id))).toMatchObject({ status: 'succeeded' })
    expect(caller.paths).toHaveLength(5)
  })

  test('that does not end in time is an error of the type timeout, and goes on', async () => {
    const caller = await newCaller()
    const { id, release } = await hold(caller)
    const { error } = await caller.execution.runs.wait(id, { timeoutSeconds: 0.2 })
    expect(error).toMatchObject({ status: 0, type: problemTypes.timeout })
    expect(error?.detail).toBe(`Run ${id} has not finished within 0.2 s. It goes on.`)
    const aborting = caller.execution.runs.wait(id, { signal: AbortSignal.timeout(200) })
    expect((await aborting).error?.type).toBe(problemTypes.aborted)
    release()
    expect(unwrap(await caller.execution.runs.wait(id)).status).toBe('succeeded')
  })

  test('that there is none of cannot be waited for, nor followed', async () => {
    const { execution } = await newCaller()
    expect((await execution.runs.wait(nobody)).error).toMatchObject({ status: 404, type: '/docs/errors#not-found' })
    const following = async () => {
      for await (const _ of execution.runs.events(nobody));
    }
    await expect(following()).rejects.toMatchObject({ status: 404 })
  })

  test('is followed from its first event to its last, or from after a known one', async () => {
    const caller = await newCaller()
    const { id, release } = await hold(caller)
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

  test('is queued and waited for with one request when it is quick, and once for an Idempotency-Key', async () => {
    const caller = await newCaller()
    const queue = () => caller.execution.runs.queueAndWait('greet', { name: 'Ada' }, { idempotencyKey: 'once' })
    const first = unwrap(await queue())
    expect(first).toMatchObject({ status: 'succeeded', output: { greeting: 'Hello, Ada!' } })
    expect(unwrap(await queue()).id).toBe(first.id)
    expect(caller.paths).toEqual(Array(2).fill('PUT /v1/execution/queue-remote/greet'))
    const { error } = await caller.execution.runs.queueAndWait('greet', { name: '' }, { priority: 3 })
    expect(error).toMatchObject({ status: 400, errors: [{ pointer: '/variableData/name' }] })
    const late = { delaySeconds: 3600, timeoutSeconds: 0.2 }
    expect((await caller.execution.runs.queueAndWait('greet', { name: 'Ada' }, late)).error).toMatchObject({
      type: problemTypes.timeout,
      runId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      detail: expect.stringMatching(/^Run [0-9a-f-]{36} has not finished within 0\.2 s\. It goes on\.$/),
    })
  })
})

test('the service and both clients go by the same documents', async () => {
  const { execution, browserContext, drifts } = await newCaller()
  const answers = [await execution.listWorkflows(), await browserContext.listBrowserContexts()]
  for (const { response } of answers) expect(response.headers.get('X-Document-Hash')).toMatch(/^[0-9a-f]{16}$/)
  expect(drifts).toEqual([])
})
