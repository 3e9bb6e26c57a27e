/** Which calls the client retries after which failures, how long it waits, and what stops it, against a scripted server. */
import { getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, type TestContext, test } from 'vitest'
import {
  type ClientOptions,
  createBrowserContextClient,
  createExecutionClient,
  problemTypes,
} from '../../src/client/index.ts'
import { retryDelay } from '../../src/client/time-limit.ts'
import { until } from '../support/service.ts'
import { type Act, delayed, drop, hang, problem, respond, startScriptedServer, stream } from './scripted-server.ts'

async function startClients(test: TestContext, acts: Act[], options: Partial<ClientOptions> = {}) {
  const server = await startScriptedServer(test, ...acts)
  const all = { baseUrl: server.url, apiKey: 'a-key', retryWaitSeconds: 0.01, ...options }
  return { server, execution: createExecutionClient(all), browserContext: createBrowserContextClient(all) }
}

const params = { path: { runId: '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07' } }
const queueing = { params: { path: { workflowId: 'greet' } }, body: { variableData: { name: 'Ada' } } }
const run = respond(200, { id: 'a run' })

// Concurrent because the tests mostly wait.
describe.concurrent('retries', () => {
  test.for<[what: string, failure: Act]>([
    ['a broken connection', drop],
    ['a truncated body', (response) => response.writeHead(200).write('{"id":', () => response.destroy())],
    ['a 408', problem('request-timeout')],
    ['a 429', problem('rate-limited')],
    ['a 502', respond(502, 'Bad Gateway')],
    ['a 503', problem('unavailable')],
    ['a 504', respond(504)],
  ])('an idempotent call is retried after %s', async ([, failure], test) => {
    const { server, execution } = await startClients(test, [failure, failure, run, failure, run])
    expect((await execution.getRun({ params })).data).toEqual({ id: 'a run' })
    // Not idempotent by its method, but by its document (`x-idempotent`).
    expect((await execution.cancelRun({ params })).data).toEqual({ id: 'a run' })
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET', 'POST', 'POST'])
  })

  test('all tries of a call share an Idempotency-Key, and the next call has another', async (test) => {
    const { server, execution } = await startClients(test, [drop, respond(504), run])
    for (let calls = 0; calls < 2; calls++) expect((await execution.queueRemoteRun(queueing)).error).toBeUndefined()
    const keys = server.requests.map(({ headers }) => headers['idempotency-key'])
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys).toEqual([keys[0], keys[0], keys[0], expect.not.stringContaining(String(keys[0]))])
    expect(server.requests[2]).toMatchObject({ method: 'PUT', body: '{"variableData":{"name":"Ada"}}' })
  })

  test('a call with If-Match is not retried, because a lost success would be refused', async (test) => {
    const { server, browserContext } = await startClients(test, [
      drop,
      respond(204),
      problem('rate-limited'),
      respond(204),
    ])
    const path = { browserContextId: params.path.runId }
    const replace = (header: { 'If-Match'?: string }) =>
      browserContext.putStorageState({ params: { path, header }, body: { cookies: [], origins: [] } })
    expect((await replace({ 'If-Match': '"one"' })).error?.type).toBe(problemTypes.networkFailure)
    expect(server.requests).toHaveLength(1)
    expect((await replace({})).error).toBeUndefined()
    // Refused before anything was stored.
    expect((await replace({ 'If-Match': '"one"' })).error).toBeUndefined()
    expect(server.requests).toHaveLength(4)
  })

  test('an Idempotency-Key of the caller is used', async (test) => {
    const { server, execution } = await startClients(test, [drop, run])
    const header = { 'Idempotency-Key': 'invoice-42' }
    await execution.queueRemoteRun({ ...queueing, params: { ...queueing.params, header } })
    await execution.queueRemoteRun({ ...queueing, headers: header })
    expect(server.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(3).fill('invoice-42'))
  })

  test.for<[what: string, failure: Act, tries: number]>([
    ['a broken connection', drop, 1],
    ['a timeout', hang, 1],
    ['a 502', respond(502, 'Bad Gateway'), 1],
    ['a 504', respond(504), 1],
    ['a 503 of a gateway', respond(503, 'No upstream'), 1],
    ['a 408', problem('request-timeout'), 1],
    ['a 503, which may follow a commit', problem('unavailable'), 1],
    ['a 429 of a gateway', respond(429, 'Slow down'), 1],
    ['a 429, before which nothing was stored', problem('rate-limited'), 2],
  ])('a creation is retried only if nothing can have been stored: after %s', async ([, failure, tries], test) => {
    const limits = failure === hang ? { timeoutSeconds: 1 } : {}
    const { server, browserContext } = await startClients(test, [failure, respond(201, { id: 'new' })], limits)
    const { data, error } = await browserContext.createBrowserContext({ body: { name: 'Shop' } })
    expect([data?.id, error === undefined]).toEqual(tries === 2 ? ['new', true] : [undefined, false])
    expect(server.requests).toHaveLength(tries)
  })

  test.for(['invalid-request', 'not-found', 'idempotency-conflict', 'internal-error'] as const)(
    'a permanent failure is not retried: %s',
    async (kind, test) => {
      const { server, execution } = await startClients(test, [problem(kind)])
      expect((await execution.getRun({ params })).error?.type).toBe(`/docs/errors#${kind}`)
      expect(server.requests).toHaveLength(1)
    },
  )

  test('the number of retries can be set for a client and for a call', async (test) => {
    const { server, execution } = await startClients(test, [problem('unavailable')], { retries: 1 })
    expect((await execution.getRun({ params })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(2)
    expect((await execution.getRun({ params, retries: 0 })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(3)
  })

  /** Reads the clock once, so that both dates are exactly one second apart. */
  const inOneSecond = () => {
    const now = Date.now()
    return { 'Retry-After': new Date(now + 1000).toUTCString(), Date: new Date(now).toUTCString() }
  }

  test.for<[form: string, headers: () => Record<string, string>, seconds: number]>([
    ['in seconds', () => ({ 'Retry-After': '1' }), 1],
    ['as a date', inOneSecond, 1],
  ])('Retry-After is honoured %s', async ([, headers, seconds], test) => {
    const { execution } = await startClients(test, [(response) => problem('rate-limited', headers())(response), run])
    const startedAt = performance.now()
    expect((await execution.getRun({ params })).error).toBeUndefined()
    expect((performance.now() - startedAt) / 1000).toBeGreaterThan(seconds * 0.95)
  })

  test('a Retry-After above the longest wait fails the call, and the error contains it', async (test) => {
    const { server, execution } = await startClients(test, [problem('rate-limited', { 'Retry-After': '120' })])
    const { error } = await execution.getRun({ params })
    expect(error).toMatchObject({ status: 429, retryAfterSeconds: 120 })
    expect(server.requests).toHaveLength(1)
  })

  test('waits double up to the longest wait, and jitter shortens them by up to half', () => {
    const limits = { retries: 9, retryWaitSeconds: 1, retryWaitSecondsMax: 5, timeoutSeconds: 1, totalSeconds: 1 }
    const failure = { status: 503, type: '', title: '', detail: '' }
    const longest = [1, 2, 4, 5, 5]
    for (const [index, most] of longest.entries()) {
      const waits = Array.from({ length: 200 }, () => retryDelay(index + 1, failure, limits) ?? 0)
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(most / 2)
      expect(Math.max(...waits)).toBeLessThanOrEqual(most)
      expect(new Set(waits).size).toBeGreaterThan(100)
    }
  })

  test('a try that times out is aborted and retried', async (test) => {
    const { server, execution } = await startClients(test, [hang, run], { timeoutSeconds: 1 })
    expect((await execution.getRun({ params })).data).toEqual({ id: 'a run' })
    await until('the first connection is closed', () => server.abandoned >= 1)
  })

  test('Prefer: wait extends the time limit', async (test) => {
    const { server, execution } = await startClients(test, [delayed(1500, run)], { timeoutSeconds: 1, retries: 0 })
    const header = { Prefer: 'respond-async, wait=5' }
    expect(
      (await execution.queueRemoteRun({ ...queueing, params: { ...queueing.params, header } })).error,
    ).toBeUndefined()
    expect((await execution.queueRemoteRun(queueing)).error?.type).toBe(problemTypes.timeout)
    expect(server.requests).toHaveLength(2)
  })

  test('Prefer: wait extends the time limit by at most 30 seconds', async (test) => {
    // Subtracts the 30 s, so that the test need not wait for them.
    const { execution } = await startClients(test, [hang], { timeoutSeconds: -29.8, retries: 0 })
    const { error } = await execution.queueRemoteRun({ ...queueing, headers: { Prefer: 'wait=999999' } })
    expect(error).toMatchObject({ type: problemTypes.timeout })
  })

  test('the time limit applies even if a custom fetch ignores its AbortSignal', async (test) => {
    const ignoring = () => new Promise<Response>(() => {})
    const { execution } = await startClients(test, [run], { fetch: ignoring, timeoutSeconds: 0.1, retries: 0 })
    expect((await execution.getRun({ params })).error?.type).toBe(problemTypes.timeout)
    const endless = async () => new Response(new ReadableStream())
    expect((await execution.getRun({ params, fetch: endless })).error?.type).toBe(problemTypes.timeout)
  })

  test.for<[how: string, finish: (stream: ReadableStream) => Promise<unknown>]>([
    ['read to its end', (stream) => new Response(stream).text()],
    ['cancelled', (stream) => stream.cancel()],
  ])("a stream removes its listener from the caller's AbortSignal when it is %s", async ([, finish], test) => {
    const { execution } = await startClients(test, [stream('early', (response) => response.end())])
    const { signal } = new AbortController()
    for (let streams = 0; streams < 3; streams++) {
      const { data } = await execution.streamRunEvents({ params, signal })
      expect(data).toBeInstanceOf(ReadableStream)
      await finish(data as ReadableStream)
    }
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test("the caller's AbortSignal ends a stream that has started", async (test) => {
    const { server, execution } = await startClients(test, [stream('early', hang)])
    const controller = new AbortController()
    const { data } = await execution.streamRunEvents({ params, signal: controller.signal })
    const reader = (data as ReadableStream).getReader()
    await reader.read()
    const rest = reader.read()
    controller.abort(new Error('Enough'))
    await expect(rest).rejects.toThrow('Enough')
    await until('the connection is closed', () => server.abandoned === 1)
  })

  test('an AbortSignal ends a stream after the Request was garbage-collected', { timeout: 10_000 }, async (test) => {
    const { execution } = await startClients(test, [stream('early', hang)])
    const controller = new AbortController()
    const { data } = await execution.streamRunEvents({ params, signal: controller.signal })
    const reader = (data as ReadableStream).getReader()
    await reader.read()
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    for (let rounds = 0; rounds < 3; rounds++) {
      collectGarbage()
      await new Promise((resolve) => setImmediate(resolve))
    }
    controller.abort(new Error('Enough'))
    await expect(reader.read()).rejects.toThrow('Enough')
  })

  test('the time limit of a try does not end a stream that has started', async (test) => {
    const rest = delayed(1500, (response) => response.end('late'))
    const { execution } = await startClients(test, [stream('early, ', rest)], { timeoutSeconds: 1 })
    const { data } = await execution.streamRunEvents({ params })
    expect(await new Response(data).text()).toBe('early, late')
  })

  test('totalSeconds limits a call including its retries and waits', async (test) => {
    const busy = problem('unavailable', { 'Retry-After': '30' })
    const { server, execution } = await startClients(test, [busy, hang])
    // The requested wait exceeds the limit.
    expect((await execution.getRun({ params, totalSeconds: 20 })).error?.status).toBe(503)
    expect(server.requests).toHaveLength(1)
    expect((await execution.getRun({ params, totalSeconds: 1 })).error?.type).toBe(problemTypes.timeout)
  })

  test('an AbortSignal ends a call while it waits for the response', async (test) => {
    const { server, execution } = await startClients(test, [hang])
    const controller = new AbortController()
    const result = execution.getRun({ params, signal: controller.signal })
    await until('the request has arrived', () => server.requests.length === 1)
    const reason = new Error('No longer needed')
    controller.abort(reason)
    expect((await result).error).toMatchObject({ status: 0, type: problemTypes.aborted, cause: reason })
  })

  // Without the abort, the wait would take three times the test's time limit.
  test('an AbortSignal ends a call while it waits for its next try', { timeout: 10_000 }, async (test) => {
    let responses = 0
    const counting = async (request: Request) => {
      const { status, headers, body } = await fetch(request)
      const text = await new Response(body).text()
      // Once the client has read the body, it only waits.
      setTimeout(() => responses++)
      return new Response(text, { status, headers })
    }
    const acts = [problem('unavailable', { 'Retry-After': '30' })]
    const { server, execution } = await startClients(test, acts, { fetch: counting })
    const controller = new AbortController()
    const result = execution.getRun({ params, signal: controller.signal })
    await until('the response is read', () => responses === 1)
    controller.abort()
    expect((await result).error).toMatchObject({ status: 0, type: problemTypes.aborted })
    expect(server.requests).toHaveLength(1)
  })

  test('nothing is sent if the AbortSignal is already aborted', async (test) => {
    const { server, execution } = await startClients(test, [run])
    const { error } = await execution.getRun({ params, signal: AbortSignal.abort() })
    expect(error?.type).toBe(problemTypes.aborted)
    expect(server.requests).toHaveLength(0)
  })
})

// Not concurrent, because it replaces Date.now for the whole process.
test('the time limit of a call does not depend on the wall clock', async (test) => {
  const { server, execution } = await startClients(test, [problem('unavailable')], { totalSeconds: 1, retries: 1000 })
  const { now } = Date
  test.onTestFinished(() => void Object.assign(Date, { now }))
  // Each reading is an hour earlier than the one before.
  let readings = 0
  Date.now = () => now() - 3_600_000 * readings++
  expect((await execution.getRun({ params, retryWaitSecondsMax: 0.05 })).error).toBeDefined()
  expect(server.requests.length).toBeGreaterThan(1)
  // By the wall clock the limit would never be reached.
  expect(server.requests.length).toBeLessThan(1000)
})
