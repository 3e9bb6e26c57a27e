/** Which calls the client repeats after which failures, how long it waits, and what ends it: against a server that fails. */
import { getEventListeners } from 'node:events'
import { describe, expect, type TestContext, test } from 'vitest'
import {
  type ClientOptions,
  createBrowserContextClient,
  createExecutionClient,
  problemTypes,
} from '../../src/client/index.ts'
import { waitSeconds } from '../../src/client/retry.ts'
import { until } from '../support/service.ts'
import { type Act, answer, drop, hang, late, problem, scripted, stream } from './scripted-server.ts'

async function clients(test: TestContext, acts: Act[], options: Partial<ClientOptions> = {}) {
  const server = await scripted(test, ...acts)
  const all = { baseUrl: server.url, apiKey: 'a-key', retryWaitSeconds: 0.01, ...options }
  return { server, execution: createExecutionClient(all), browserContext: createBrowserContextClient(all) }
}

const params = { path: { runId: '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07' } }
const queueing = { params: { path: { workflowId: 'greet' } }, body: { variableData: { name: 'Ada' } } }
const run = answer(200, { id: 'a run' })

// At the same time, because most of their time they wait.
describe.concurrent('a call', () => {
  test.for<[what: string, failure: Act]>([
    ['a broken connection', drop],
    ['a body that breaks off', (response) => response.writeHead(200).write('{"id":', () => response.destroy())],
    ['a 408', problem('request-timeout')],
    ['a 429', problem('rate-limited')],
    ['a 502', answer(502, 'Bad Gateway')],
    ['a 503', problem('unavailable')],
    ['a 504', answer(504)],
  ])('what changes nothing when it is repeated is tried again after %s', async ([, failure], test) => {
    const { server, execution } = await clients(test, [failure, failure, run])
    expect((await execution.getRun({ params })).data).toEqual({ id: 'a run' })
    expect((await execution.cancelRun({ params })).error).toBeUndefined()
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET', 'POST'])
  })

  test('a cancellation is repeated, because its document says that this changes nothing', async (test) => {
    const { server, execution } = await clients(test, [drop, problem('unavailable'), run])
    expect((await execution.cancelRun({ params })).data).toEqual({ id: 'a run' })
    expect(server.requests).toHaveLength(3)
  })

  test('a run is queued with an Idempotency-Key, the same for all tries, and with another the next time', async (test) => {
    const { server, execution } = await clients(test, [drop, answer(504), run])
    for (let calls = 0; calls < 2; calls++) expect((await execution.queueRemoteRun(queueing)).error).toBeUndefined()
    const keys = server.requests.map(({ headers }) => headers['idempotency-key'])
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys).toEqual([keys[0], keys[0], keys[0], expect.not.stringContaining(String(keys[0]))])
    expect(server.requests[2]).toMatchObject({ method: 'PUT', body: '{"variableData":{"name":"Ada"}}' })
  })

  test("the caller's own Idempotency-Key is the one that is sent", async (test) => {
    const { server, execution } = await clients(test, [drop, run])
    const header = { 'Idempotency-Key': 'invoice-42' }
    await execution.queueRemoteRun({ ...queueing, params: { ...queueing.params, header } })
    await execution.queueRemoteRun({ ...queueing, headers: header })
    expect(server.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(3).fill('invoice-42'))
  })

  test.for<[what: string, failure: Act, tries: number]>([
    ['a broken connection', drop, 1],
    ['no answer in time', hang, 1],
    ['a 502', answer(502, 'Bad Gateway'), 1],
    ['a 504', answer(504), 1],
    ['a 503 that is not of the service', answer(503, 'No upstream'), 1],
    ['a 408', problem('request-timeout'), 1],
    ['a 503, which may follow a commit', problem('unavailable'), 1],
    ['a 429 that is not of the service', answer(429, 'Slow down'), 1],
    ['a 429, before which nothing was stored', problem('rate-limited'), 2],
  ])('what may have been stored is not sent again: a creation after %s', async ([, failure, tries], test) => {
    const limits = failure === hang ? { timeoutSeconds: 1 } : {}
    const { server, browserContext } = await clients(test, [failure, answer(201, { id: 'new' })], limits)
    const { data, error } = await browserContext.createBrowserContext({ body: { name: 'Shop' } })
    expect([data?.id, error === undefined]).toEqual(tries === 2 ? ['new', true] : [undefined, false])
    expect(server.requests).toHaveLength(tries)
  })

  test.for(['invalid-request', 'not-found', 'idempotency-conflict', 'internal-error'] as const)(
    'what another try would not change is not tried again: %s',
    async (kind, test) => {
      const { server, execution } = await clients(test, [problem(kind)])
      expect((await execution.getRun({ params })).error?.type).toBe(`/docs/errors#${kind}`)
      expect(server.requests).toHaveLength(1)
    },
  )

  test('the number of tries is an option of the client and of a call', async (test) => {
    const { server, execution } = await clients(test, [problem('unavailable')], { retries: 1 })
    expect((await execution.getRun({ params })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(2)
    expect((await execution.getRun({ params, retries: 0 })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(3)
  })

  /** By one look at the clock: between two, the second may turn. */
  const inOneSecond = () => {
    const now = Date.now()
    return { 'Retry-After': new Date(now + 1000).toUTCString(), Date: new Date(now).toUTCString() }
  }

  test.for<[form: string, headers: () => Record<string, string>, seconds: number]>([
    ['in seconds', () => ({ 'Retry-After': '1' }), 1],
    ['as a date', inOneSecond, 1],
  ])('Retry-After is honoured %s', async ([, headers, seconds], test) => {
    const { execution } = await clients(test, [(response) => problem('rate-limited', headers())(response), run])
    const startedAt = performance.now()
    expect((await execution.getRun({ params })).error).toBeUndefined()
    expect((performance.now() - startedAt) / 1000).toBeGreaterThan(seconds * 0.95)
  })

  test('a Retry-After of more than the longest wait ends the call, and the error says how much it was', async (test) => {
    const { server, execution } = await clients(test, [problem('rate-limited', { 'Retry-After': '120' })])
    const { error } = await execution.getRun({ params })
    expect(error).toMatchObject({ status: 429, retryAfterSeconds: 120 })
    expect(server.requests).toHaveLength(1)
  })

  test('waits double, are shortened by up to half at random, and are never longer than the longest', () => {
    const limits = { retries: 9, retryWaitSeconds: 1, retryWaitSecondsMax: 5, timeoutSeconds: 1, totalSeconds: 1 }
    const failure = { status: 503, type: '', title: '', detail: '' }
    const longest = [1, 2, 4, 5, 5]
    for (const [index, most] of longest.entries()) {
      const waits = Array.from({ length: 200 }, () => waitSeconds(index + 1, failure, limits) ?? 0)
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(most / 2)
      expect(Math.max(...waits)).toBeLessThanOrEqual(most)
      expect(new Set(waits).size).toBeGreaterThan(100)
    }
  })

  test('a try that is not answered in time is given up, and another made', async (test) => {
    const { server, execution } = await clients(test, [hang, run], { timeoutSeconds: 1 })
    expect((await execution.getRun({ params })).data).toEqual({ id: 'a run' })
    await until('the first is closed', () => server.abandoned >= 1)
  })

  test('who prefers to wait is waited for that much longer', async (test) => {
    const { server, execution } = await clients(test, [late(1500, run)], { timeoutSeconds: 1, retries: 0 })
    const header = { Prefer: 'respond-async, wait=5' }
    expect(
      (await execution.queueRemoteRun({ ...queueing, params: { ...queueing.params, header } })).error,
    ).toBeUndefined()
    expect((await execution.queueRemoteRun(queueing)).error?.type).toBe(problemTypes.timeout)
    expect(server.requests).toHaveLength(2)
  })

  test('who prefers to wait for longer than the service does is not waited for any longer than that', async (test) => {
    // The 30 s of the service's own are taken off here, so that nobody waits for them.
    const { execution } = await clients(test, [hang], { timeoutSeconds: -29.8, retries: 0 })
    const { error } = await execution.queueRemoteRun({ ...queueing, headers: { Prefer: 'wait=999999' } })
    expect(error).toMatchObject({ type: problemTypes.timeout })
  })

  test('a fetch of the caller that knows no AbortSignal is not waited for after the time limit', async (test) => {
    const deaf = () => new Promise<Response>(() => {})
    const { execution } = await clients(test, [run], { fetch: deaf, timeoutSeconds: 0.1, retries: 0 })
    expect((await execution.getRun({ params })).error?.type).toBe(problemTypes.timeout)
    const endless = async () => new Response(new ReadableStream())
    expect((await execution.getRun({ params, fetch: endless })).error?.type).toBe(problemTypes.timeout)
  })

  test.for<[how: string, finish: (stream: ReadableStream) => Promise<unknown>]>([
    ['read to its end', (stream) => new Response(stream).text()],
    ['cancelled', (stream) => stream.cancel()],
  ])("a stream lets go of the caller's AbortSignal when it is %s", async ([, finish], test) => {
    const { execution } = await clients(test, [stream('early', (response) => response.end())])
    const { signal } = new AbortController()
    for (let streams = 0; streams < 3; streams++) {
      const { data } = await execution.streamRunEvents({ params, signal })
      expect(data).toBeInstanceOf(ReadableStream)
      await finish(data as ReadableStream)
    }
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test("a stream that has begun ends by the caller's AbortSignal", async (test) => {
    const { server, execution } = await clients(test, [stream('early', hang)])
    const controller = new AbortController()
    const { data } = await execution.streamRunEvents({ params, signal: controller.signal })
    const reader = (data as ReadableStream).getReader()
    await reader.read()
    const rest = reader.read()
    controller.abort(new Error('Enough'))
    await expect(rest).rejects.toThrow('Enough')
    await until('its connection is closed', () => server.abandoned === 1)
  })

  test('the time limit of a try does not cut a stream that has begun', async (test) => {
    const rest = late(1500, (response) => response.end('late'))
    const { execution } = await clients(test, [stream('early, ', rest)], { timeoutSeconds: 1 })
    const { data } = await execution.streamRunEvents({ params })
    expect(await new Response(data).text()).toBe('early, late')
  })

  test('a call may have a time limit with all its tries and waits', async (test) => {
    const busy = problem('unavailable', { 'Retry-After': '30' })
    const { server, execution } = await clients(test, [busy, hang])
    // There is no time for the wait.
    expect((await execution.getRun({ params, totalSeconds: 20 })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(1)
    expect((await execution.getRun({ params, totalSeconds: 1 })).error?.type).toBe(problemTypes.timeout)
  })

  test('an AbortSignal ends a call at once while it waits for the answer', async (test) => {
    const { server, execution } = await clients(test, [hang])
    const controller = new AbortController()
    const answered = execution.getRun({ params, signal: controller.signal })
    await until('the request has come', () => server.requests.length === 1)
    const reason = new Error('No longer needed')
    controller.abort(reason)
    expect((await answered).error).toMatchObject({ status: 0, type: problemTypes.aborted, cause: reason })
  })

  // The wait that is cut short takes three times as long as the test may.
  test('an AbortSignal ends a call at once while it waits for its next try', { timeout: 10_000 }, async (test) => {
    let answers = 0
    const counting = async (request: Request) => {
      const { status, headers, body } = await fetch(request)
      const text = await new Response(body).text()
      // When this has been read, there is nothing left to wait for but the time.
      setTimeout(() => answers++)
      return new Response(text, { status, headers })
    }
    const acts = [problem('unavailable', { 'Retry-After': '30' })]
    const { server, execution } = await clients(test, acts, { fetch: counting })
    const controller = new AbortController()
    const answered = execution.getRun({ params, signal: controller.signal })
    await until('the answer is read', () => answers === 1)
    controller.abort()
    expect((await answered).error).toMatchObject({ status: 0, type: problemTypes.aborted })
    expect(server.requests).toHaveLength(1)
  })

  test('nothing is sent for a signal that is aborted already', async (test) => {
    const { server, execution } = await clients(test, [run])
    const { error } = await execution.getRun({ params, signal: AbortSignal.abort() })
    expect(error?.type).toBe(problemTypes.aborted)
    expect(server.requests).toHaveLength(0)
  })
})

// Alone, because all tests of this file go by the same clock.
test('the time limit of a call goes by a clock that nobody sets', async (test) => {
  const { server, execution } = await clients(test, [problem('unavailable')], { totalSeconds: 1, retries: 1000 })
  const { now } = Date
  test.onTestFinished(() => void Object.assign(Date, { now }))
  // The wall clock is set back by an hour with every look at it.
  let looks = 0
  Date.now = () => now() - 3_600_000 * looks++
  expect((await execution.getRun({ params, retryWaitSecondsMax: 0.05 })).error).toBeDefined()
  expect(server.requests.length).toBeGreaterThan(1)
  // By the wall clock there would always be time for another.
  expect(server.requests.length).toBeLessThan(1000)
})
