/** How the client follows a run over an event stream that breaks, stays silent, or is refused: on a server that does so. */
import { describe, expect, type TestContext, test } from 'vitest'
import { eventsOf } from '../../src/client/event-stream.ts'
import { type ClientOptions, createExecutionClient, ProblemError, problemTypes } from '../../src/client/index.ts'
import { until } from '../support/service.ts'
import { allOf } from './all-of.ts'
import { type Act, answer, drop, end, hang, problem, scripted, stream } from './scripted-server.ts'

const runId = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'

/** As the service writes it. */
function event(sequence: number, message: string): string {
  const data = { type: 'log', sequence, at: '2026-11-20T09:30:00.000Z', attempt: 1, level: 'info', message }
  return `id: ${sequence}\nevent: log\ndata: ${JSON.stringify(data)}\n\n`
}

function status(sequence: number, now: string): string {
  const data = { type: 'status', sequence, at: '2026-11-20T09:30:00.000Z', status: now, attempt: 1, reason: null }
  return `id: ${sequence}\nevent: status\ndata: ${JSON.stringify(data)}\n\n`
}

async function follower(test: TestContext, acts: Act[], options: Partial<ClientOptions> = {}) {
  const server = await scripted(test, ...acts)
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key', retryWaitSeconds: 0.01, ...options })
  return { server, client, lastIds: () => server.requests.map(({ headers }) => headers['last-event-id']) }
}

function inParts(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
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

describe.concurrent('the events of a run', () => {
  test('go on after the last one that came, however the connection ended, and end with the run', async (test) => {
    const { client, lastIds } = await follower(test, [
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

  test.for(['succeeded', 'failed', 'timedOut', 'cancelled', 'expired'])('end with the status %s', async (now, test) => {
    const { client, server } = await follower(test, [stream(status(1, 'running') + status(2, now), hang)])
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2])
    await until('the connection is closed', () => server.abandoned === 1)
  })

  test('go on after a status and an event that only a later service has, and end when it says so', async (test) => {
    const unknown = 'id: 2\nevent: note\ndata: {"type":"note","sequence":2}\n\n'
    const { client, lastIds } = await follower(test, [stream(status(1, 'paused') + unknown, end), answer(204)])
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2])
    expect(lastIds()).toEqual([undefined, '2'])
  })

  test('are none when the run has finished, and nothing has come after the last known one', async (test) => {
    const { client, lastIds } = await follower(test, [answer(204)])
    expect(await sequences(client.runs.events(runId, { after: 7 }))).toEqual([])
    expect(lastIds()).toEqual(['7'])
  })

  test('are read whatever ends their lines, past comments and members unknown', async (test) => {
    const [first, second] = [event(1, 'ä€😀').replaceAll('\n', '\r\n'), event(2, 'b').replaceAll('\n', '\r')]
    const text = `\uFEFF: hello\r\nretry: 5\r\n${first}${second}id\n\n: bye\n\n${status(3, 'failed')}`
    const { client } = await follower(test, [stream(text, hang)])
    const messages: string[] = []
    for await (const each of client.runs.events(runId)) messages.push(each.type === 'log' ? each.message : each.type)
    expect(messages).toEqual(['ä€😀', 'b', 'status'])
  })

  test.for([1, 2, 3, 7, 1000])('are read however they are cut: into parts of %i bytes', async (size) => {
    const bytes = new TextEncoder().encode(
      'id: 1\r\ndata: ä€\r\ndata: 😀\r\n\r\nid: 2\rdata:b\r\rdata: c\n\nid: 3\ndata: cut',
    )
    expect(await allOf(eventsOf(inParts(bytes, size)))).toEqual(['ä€\n😀', 'b', 'c'])
  })

  test('are there when the stream ends with them, although their lines end with CR', async () => {
    const bytes = new TextEncoder().encode('data: a\r\rdata: b\r\r')
    expect(await allOf(eventsOf(inParts(bytes, 9)))).toEqual(['a', 'b'])
  })

  test('are read in a time that grows as they do: one of two megabytes in parts of a kilobyte', async (test) => {
    const { split } = String.prototype
    test.onTestFinished(() => void Object.assign(String.prototype, { split }))
    let searched = 0
    const counting = function (this: string, ...given: Parameters<typeof split>) {
      searched += this.length
      return split.apply(this, given)
    }
    const bytes = new TextEncoder().encode(`data: ${'x'.repeat(2e6)}\n\n`)
    Object.assign(String.prototype, { split: counting })
    expect((await allOf(eventsOf(inParts(bytes, 1000))))[0]).toHaveLength(2e6)
    // A thousand times as many when each part is read together with all before it.
    expect(searched).toBeGreaterThanOrEqual(2e6)
    expect(searched).toBeLessThan(3e6)
  })

  test.for<[status: number, act: Act]>([
    [401, answer(401, 'Unauthorized', { 'Content-Type': 'text/plain' })],
    [403, answer(403, 'Forbidden', { 'Content-Type': 'text/plain' })],
    [404, problem('not-found')],
    [500, problem('internal-error')],
  ])('end with an error when they may not be followed any more: %i', async ([status, act], test) => {
    const { client, server } = await follower(test, [stream(event(1, 'a'), end), act])
    const seen: number[] = []
    const thrown = await sequences(client.runs.events(runId), seen).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(ProblemError)
    expect(thrown).toMatchObject({ status })
    expect(seen).toEqual([1])
    expect(server.requests).toHaveLength(2)
  })

  test('end with an error when they cannot be reached again and again, but not for as long as some come', async (test) => {
    const acts = [1, 2, 3, 4].flatMap((sequence) => [stream(event(sequence, ''), drop), drop])
    const { client, server } = await follower(test, acts)
    const seen: number[] = []
    await expect(sequences(client.runs.events(runId, { retries: 2 }), seen)).rejects.toMatchObject({
      type: problemTypes.networkFailure,
    })
    expect(seen).toEqual([1, 2, 3, 4])
    expect(server.requests).toHaveLength(acts.length + 1)
  })

  test('are waited for as long as connections say that they are alive, however often they end', async (test) => {
    const quiet = Array<Act>(5).fill(stream(': heartbeat\n\n', end))
    const { client, server } = await follower(test, [...quiet, stream(status(1, 'succeeded'), end)])
    expect(await sequences(client.runs.events(runId, { retries: 2 }))).toEqual([1])
    expect(server.requests).toHaveLength(6)
  })

  test('come once each, although something on the way drops Last-Event-ID', async (test) => {
    const [first, second] = [event(1, 'a'), event(2, 'b')]
    const acts = [stream(first, end), stream(first + second, end), stream(first + second + status(3, 'failed'), hang)]
    const { client } = await follower(test, acts)
    expect(await sequences(client.runs.events(runId))).toEqual([1, 2, 3])
    expect(await sequences(client.runs.events(runId, { after: 3 }))).toEqual([])
  })

  test.for<[what: string, act: Act]>([
    ['a page to sign in', answer(200, '<h1>Sign in', { 'Content-Type': 'text/html' })],
    ['an event that is no JSON', stream('data: {\n\n', end)],
    ['an event without its number', stream('data: null\n\n', end)],
  ])('end with an error at what is not the service: %s', async ([, act], test) => {
    const { client, server } = await follower(test, [act])
    await expect(sequences(client.runs.events(runId, { retries: 2 }))).rejects.toMatchObject({
      type: problemTypes.unexpectedAnswer,
      status: 200,
    })
    expect(server.requests).toHaveLength(1)
  })

  test('come by another connection when one has been silent for too long, at its start or later', async (test) => {
    const silent = [stream('', hang), stream(event(1, 'a'), hang)]
    const { client, server } = await follower(test, [...silent, stream(status(2, 'succeeded'), end)])
    expect(await sequences(client.runs.events(runId, { silenceSeconds: 1 }))).toEqual([1, 2])
    await until('the silent ones are closed', () => server.abandoned >= 2)
  })

  test('keep a connection that says nothing but that it is alive', async (test) => {
    const beating: Act = async (response) => {
      for (let beats = 0; beats < 7; beats++) {
        await new Promise((resolve) => setTimeout(resolve, 500))
        response.write(': heartbeat\n\n')
      }
      response.end(status(1, 'succeeded'))
    }
    const { client, server } = await follower(test, [stream('', beating)])
    expect(await sequences(client.runs.events(runId, { silenceSeconds: 2.5 }))).toEqual([1])
    expect(server.requests).toHaveLength(1)
  })

  test('keep their connection while the caller takes long over one of them', async (test) => {
    const { client, server } = await follower(test, [stream(event(1, 'a') + status(2, 'succeeded'), hang)])
    for await (const { sequence } of client.runs.events(runId, { silenceSeconds: 1 })) {
      if (sequence === 1) await new Promise((resolve) => setTimeout(resolve, 1500))
      if (sequence === 1) expect(server.abandoned).toBe(0)
    }
    expect(server.requests).toHaveLength(1)
  })

  test('close their connection when the loop is left', async (test) => {
    const { client, server } = await follower(test, [stream(event(1, 'a') + event(2, 'b'), hang)])
    for await (const _ of client.runs.events(runId)) break
    await until('the connection is closed', () => server.abandoned === 1)
  })

  test.for<[when: string, acts: Act[]]>([
    ['while they come', [stream(event(1, 'a'), hang)]],
    ['between two connections', [stream(event(1, 'a'), end), problem('unavailable', { 'Retry-After': '30' })]],
  ])('end at once by an AbortSignal %s, which is an error', { timeout: 10_000 }, async ([, acts], test) => {
    const { client, server } = await follower(test, acts)
    const controller = new AbortController()
    const seen: number[] = []
    const ended = sequences(client.runs.events(runId, { signal: controller.signal }), seen)
    await until('all requests have come', () => seen.length === 1 && server.requests.length === acts.length)
    controller.abort()
    await expect(ended).rejects.toMatchObject({ type: problemTypes.aborted })
  })
})
