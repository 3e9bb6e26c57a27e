/** The client follows a run although its event stream breaks, falls silent or is refused, by a scripted server. */
import { describe, expect, type TestContext, test } from 'vitest'
import { parseEvents } from '../../src/client/event-stream.ts'
import { type ClientOptions, createExecutionClient, ProblemError, problemTypes } from '../../src/client/index.ts'
import { until } from '../support/service.ts'
import { type Act, collect, drop, end, hang, problem, respond, startScriptedServer, stream } from './scripted-server.ts'

const runId = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

/** In the format of the service. */
function event(sequence: number, message: string): string {
  const data = { type: 'log', sequence, at: '2026-11-20T09:30:00.000Z', attempt: 1, level: 'info', message }
  return `id: ${sequence}\nevent: log\ndata: ${JSON.stringify(data)}\n\n`
}

function status(sequence: number, now: string): string {
  const data = { type: 'status', sequence, at: '2026-11-20T09:30:00.000Z', status: now, attempt: 1, reason: null }
  return `id: ${sequence}\nevent: status\ndata: ${JSON.stringify(data)}\n\n`
}

async function startClient(test: TestContext, acts: Act[], options: Partial<ClientOptions> = {}) {
  const server = await startScriptedServer(test, ...acts)
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key', retryWaitSeconds: 0.01, ...options })
  return { server, client, lastIds: () => server.requests.map(({ headers }) => headers['last-event-id']) }
}

function inChunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size))
      controller.close()
    },
  })
}

async function sequences(events: AsyncIterable<{ sequence: number }>, seen: number[] = []): Promise<number[]> {
  for await (const { sequence } of events) seen.push(sequence)
  return seen
}

describe.concurrent('run events', () => {
  test('resume after the last event received, however the connection ended', async (test) => {
    const { client, lastIds } = await startClient(test, [
      stream(event(1, 'a') + event(2, 'b'), drop),
      drop,
      stream(event(3, 'c'), end),
      problem('unavailable'),
      stream(event(4, 'd') + event(5, 'half').slice(0, 40), drop),
      stream(event(5, 'e') + status(6, 'succeeded'), hang),
    ])
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2, 3, 4, 5, 6])
    expect(lastIds()).toEqual([undefined, '2', '2', '3', '3', '4'])
  })

  test.for(['succeeded', 'failed', 'timedOut', 'cancelled', 'expired'])(
    'end with the final status %s',
    async (now, test) => {
      const { client, server } = await startClient(test, [stream(status(1, 'running') + status(2, now), hang)])
      expect(await sequences(client.runs.events(runId))).toEqual([1, 2])
      await until('the connection is closed', () => server.abandoned === 1)
    },
  )

  test('continue past statuses and events of a later version of the service, until it responds 204', async (test) => {
    const unknown = 'id: 2\nevent: note\ndata: {"type":"note","sequence":2}\n\n'
    const { client, lastIds } = await startClient(test, [stream(status(1, 'paused') + unknown, end), respond(204)])
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2])
    expect(lastIds()).toEqual([undefined, '2'])
  })

  test('end at once with 204 when nothing follows the last known event', async (test) => {
    const { client, lastIds } = await startClient(test, [respond(204)])
    expect(await sequences(client.runs.events(runId, { after: 7 }))).toEqual([])
    expect(lastIds()).toEqual(['7'])
  })

  test('are parsed with any line ending, skipping comments and unknown fields', async (test) => {
    const [first, second] = [event(1, 'ä€😀').replaceAll('\n', '\r\n'), event(2, 'b').replaceAll('\n', '\r')]
    const text = `\uFEFF: hello\r\nretry: 5\r\n${first}${second}id\n\n: bye\n\n${status(3, 'failed')}`
    const { client } = await startClient(test, [stream(text, hang)])
    const messages: string[] = []
    for await (const each of client.runs.events(runId)) messages.push(each.type === 'log' ? each.message : each.type)
    expect(messages).toEqual(['ä€😀', 'b', 'status'])
  })

  test.for([1, 2, 3, 7, 1000])('are parsed from chunks of %i bytes', async (size) => {
    const bytes = new TextEncoder().encode(
      'id: 1\r\ndata: ä€\r\ndata: 😀\r\n\r\nid: 2\rdata:b\r\rdata: c\n\nid: 3\ndata: cut',
    )
    expect(await collect(parseEvents(inChunks(bytes, size)))).toEqual(['ä€\n😀', 'b', 'c'])
  })

  test('are complete when the stream ends with CR', async () => {
    const bytes = new TextEncoder().encode('data: a\r\rdata: b\r\r')
    expect(await collect(parseEvents(inChunks(bytes, 9)))).toEqual(['a', 'b'])
  })

  test('are parsed in linear time: a line of 2 MB in chunks of 1 kB', async (test) => {
    const { split } = String.prototype
    test.onTestFinished(() => void Object.assign(String.prototype, { split }))
    let searched = 0
    const counting = function (this: string, ...given: Parameters<typeof split>) {
      searched += this.length
      return split.apply(this, given)
    }
    const bytes = new TextEncoder().encode(`data: ${'x'.repeat(2e6)}\n\n`)
    Object.assign(String.prototype, { split: counting })
    expect((await collect(parseEvents(inChunks(bytes, 1000))))[0]).toHaveLength(2e6)
    // Concatenating each chunk to the line so far would search a thousand times as many characters.
    expect(searched).toBeGreaterThanOrEqual(2e6)
    expect(searched).toBeLessThan(3e6)
  })

  test.for<[status: number, act: Act]>([
    [401, respond(401, 'Unauthorized', { 'Content-Type': 'text/plain' })],
    [403, respond(403, 'Forbidden', { 'Content-Type': 'text/plain' })],
    [404, problem('not-found')],
    [500, problem('internal-error')],
  ])('throw when the service refuses the stream permanently: %i', async ([status, act], test) => {
    const { client, server } = await startClient(test, [stream(event(1, 'a'), end), act])
    const seen: number[] = []
    const thrown = await sequences(client.runs.events(runId), seen).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(ProblemError)
    expect(thrown).toMatchObject({ status })
    expect(seen).toEqual([1])
    expect(server.requests).toHaveLength(2)
  })

  test('throw after too many connection failures in a row, counted from the last event', async (test) => {
    const acts = [1, 2, 3, 4].flatMap((sequence) => [stream(event(sequence, ''), drop), drop])
    const { client, server } = await startClient(test, acts)
    const seen: number[] = []
    await expect(sequences(client.runs.events(runId, { retries: 2 }), seen)).rejects.toMatchObject({
      type: problemTypes.networkFailure,
    })
    expect(seen).toEqual([1, 2, 3, 4])
    expect(server.requests).toHaveLength(acts.length + 1)
  })

  test('heartbeats reset the count of connection failures', async (test) => {
    const heartbeats = Array<Act>(5).fill(stream(': heartbeat\n\n', end))
    const { client, server } = await startClient(test, [...heartbeats, stream(status(1, 'succeeded'), end)])
    expect(await sequences(client.runs.events(runId, { retries: 2 }))).toEqual([1])
    expect(server.requests).toHaveLength(6)
  })

  test('arrive once each even if a proxy drops Last-Event-ID', async (test) => {
    const [first, second] = [event(1, 'a'), event(2, 'b')]
    const acts = [stream(first, end), stream(first + second, end), stream(first + second + status(3, 'failed'), hang)]
    const { client } = await startClient(test, acts)
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2, 3])
    expect(await sequences(client.runs.events(runId, { after: 3 }))).toEqual([])
  })

  test.for<[what: string, act: Act]>([
    ['a sign-in page', respond(200, '<h1>Sign in', { 'Content-Type': 'text/html' })],
    ['an event that is not JSON', stream('data: {\n\n', end)],
    ['an event without a sequence', stream('data: null\n\n', end)],
  ])('throw when the response is not an event stream of the service: %s', async ([, act], test) => {
    const { client, server } = await startClient(test, [act])
    await expect(sequences(client.runs.events(runId, { retries: 2 }))).rejects.toMatchObject({
      type: problemTypes.unexpectedResponse,
      status: 200,
    })
    expect(server.requests).toHaveLength(1)
  })

  test('arrive over a new connection when one is silent for too long', async (test) => {
    const silent = [stream('', hang), stream(event(1, 'a'), hang)]
    const { client, server } = await startClient(test, [...silent, stream(status(2, 'succeeded'), end)])
    expect(await sequences(client.runs.events(runId, { silenceSeconds: 1 }))).toEqual([1, 2])
    await until('the silent connections are closed', () => server.abandoned >= 2)
  })

  test('heartbeats keep a quiet connection open', async (test) => {
    const sendHeartbeats: Act = async (response) => {
      for (let beats = 0; beats < 7; beats++) {
        await new Promise((resolve) => setTimeout(resolve, 500))
        response.write(': heartbeat\n\n')
      }
      response.end(status(1, 'succeeded'))
    }
    const { client, server } = await startClient(test, [stream('', sendHeartbeats)])
    expect(await sequences(client.runs.events(runId, { silenceSeconds: 2.5 }))).toEqual([1])
    expect(server.requests).toHaveLength(1)
  })

  test('keep their connection while the caller handles an event for long', async (test) => {
    const { client, server } = await startClient(test, [stream(event(1, 'a') + status(2, 'succeeded'), hang)])
    for await (const { sequence } of client.runs.events(runId, { silenceSeconds: 1 })) {
      if (sequence === 1) await new Promise((resolve) => setTimeout(resolve, 1500))
      if (sequence === 1) expect(server.abandoned).toBe(0)
    }
    expect(server.requests).toHaveLength(1)
  })

  test('close the connection when the loop is left', async (test) => {
    const { client, server } = await startClient(test, [stream(event(1, 'a') + event(2, 'b'), hang)])
    for await (const _ of client.runs.events(runId)) break
    await until('the connection is closed', () => server.abandoned === 1)
  })

  test.for<[when: string, acts: Act[]]>([
    ['while connected', [stream(event(1, 'a'), hang)]],
    ['while waiting to reconnect', [stream(event(1, 'a'), end), problem('unavailable', { 'Retry-After': '30' })]],
  ])('throw at once when an AbortSignal aborts them %s', { timeout: 10_000 }, async ([, acts], test) => {
    const { client, server } = await startClient(test, acts)
    const controller = new AbortController()
    const seen: number[] = []
    const ended = sequences(client.runs.events(runId, { signal: controller.signal }), seen)
    await until('all requests have arrived', () => seen.length === 1 && server.requests.length === acts.length)
    controller.abort()
    await expect(ended).rejects.toMatchObject({ type: problemTypes.aborted })
  })
})
