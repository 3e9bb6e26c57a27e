import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { ServerSentEvent } from '../../src/contract/handler.ts'
import { key, serve } from './served.ts'

const page = (number: number): ServerSentEvent => ({ id: String(number), event: 'turned', data: { page: number } })

/** A server whose stream has the given events. */
function streaming(
  events: (request: { signal: AbortSignal }) => AsyncIterable<ServerSentEvent>,
  options: { refusesMismatches?: boolean } = {},
) {
  const readBook = async (request: object) => ({ status: 200, events: events(request as { signal: AbortSignal }) })
  return serve({ handlers: { readBook }, limits: { keepAliveTimeout: 3_600_000 }, ...options })
}

/** The response as soon as its head has arrived, on a connection that the client keeps alive. */
async function follow(port: number): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: true })
  const request = get({ port, path: '/books/a/pages', headers: Object.fromEntries([key]), agent })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response.setEncoding('utf8')
}

async function* each<T>(...items: T[]) {
  yield* items
}

describe('server-sent events', () => {
  test('have id, name and data; a heartbeat is a comment', async () => {
    const { call } = await streaming(() => each(page(1), null, page(2)))
    const received = await call('GET', '/books/a/pages')
    expect(received.headers['content-type']).toBe('text/event-stream')
    expect(received.headers['cache-control']).toBe('no-store')
    expect(received.text).toBe(
      'id: 1\nevent: turned\ndata: {"page":1}\n\n: heartbeat\n\nid: 2\nevent: turned\ndata: {"page":2}\n\n',
    )
  })

  test('that do not match the document are sent, and logged with the place', async () => {
    const { call, logged } = await streaming(() => each({ id: '1', event: 'turned', data: { page: 'i' } }, page(2)), {
      refusesMismatches: false,
    })
    const { text } = await call('GET', '/books/a/pages')
    expect(text).toBe('id: 1\nevent: turned\ndata: {"page":"i"}\n\nid: 2\nevent: turned\ndata: {"page":2}\n\n')
    expect(logged[0]).toMatchObject({ event: 'turned', pointer: '/page', detail: 'must be integer' })
  })

  test('are sent one by one after the head of the response', async () => {
    const nextEvent = Promise.withResolvers<ServerSentEvent>()
    const { port } = await streaming(async function* () {
      yield await nextEvent.promise
    })
    const response = await follow(port)
    nextEvent.resolve(page(1))
    expect(await once(response, 'data')).toEqual(['id: 1\nevent: turned\ndata: {"page":1}\n\n'])
  })

  test('are taken from the handler no faster than the client reads them', async () => {
    let yielded = 0
    const { port } = await streaming(async function* () {
      for (; yielded < 10_000; yielded++) yield { id: '1', event: 'x', data: { page: 1, text: 'x'.repeat(10_000) } }
    })
    const response = await follow(port)
    response.pause()
    let before = -1
    await expect
      .poll(
        () => {
          const hasStopped = yielded === before
          before = yielded
          return hasStopped
        },
        { interval: 100 },
      )
      .toBe(true)
    expect(yielded).toBeLessThan(10_000)
    response.resume()
    await once(response, 'end')
    expect(yielded).toBe(10_000)
  })
})

// By the service: with these limits, Node closes idle connections after an hour.
describe('a stream ends', () => {
  test('when the client disconnects: the signal is aborted and the iterator returned', async () => {
    const seen = { aborted: false, returned: false }
    const { port, logged } = await streaming(async function* ({ signal }) {
      try {
        yield page(1)
        await once(signal, 'abort')
        seen.aborted = true
      } finally {
        seen.returned = true
      }
    })
    const response = await follow(port)
    await once(response, 'data')
    response.destroy()
    await expect.poll(() => seen).toEqual({ aborted: true, returned: true })
    await expect.poll(() => logged).toMatchObject([{ operationId: 'readBook', status: 200 }])
  })

  test('when the client disconnects, even if the handler ignores the signal', async () => {
    const returned = Promise.withResolvers<void>()
    const first = [page(1)]
    const next = () =>
      first.length > 0 ? { done: false, value: first.pop() as ServerSentEvent } : new Promise(() => {})
    const finish = async () => {
      returned.resolve()
      return { done: true, value: undefined }
    }
    const { port } = await streaming(() => {
      const iterator = { next: async () => next(), return: finish } as AsyncIterator<ServerSentEvent>
      return { [Symbol.asyncIterator]: () => iterator }
    })
    const response = await follow(port)
    await once(response, 'data')
    response.destroy()
    await returned.promise
  })

  test('in order when the service stops: the signal is aborted and the connection closed', async () => {
    const aborted = Promise.withResolvers<void>()
    const { port, listener } = await streaming(async function* ({ signal }) {
      signal.addEventListener('abort', () => aborted.resolve())
      yield page(1)
      await once(signal, 'abort')
    })
    const response = await follow(port)
    await once(response, 'data')
    await Promise.all([once(response, 'end'), aborted.promise, listener.stop(60)])
    expect(response.complete).toBe(true)
  })

  test('when the service stops, even if the handler ignores the signal', async () => {
    const { port, listener } = await streaming(async function* () {
      yield page(1)
      await new Promise(() => {})
    })
    const response = await follow(port)
    await once(response, 'data')
    await Promise.all([once(response, 'end'), listener.stop(60)])
  })

  test.each([
    ['the handler fails', () => Promise.reject(new Error('no more')), 'no more'],
    [
      'an event does not match the document',
      async () => ({ ...page(2), data: { page: 'canary' } }),
      '/page must be integer',
    ],
    ['an event contains a line break', async () => ({ ...page(2), id: '1\ndata: x' }), 'line break'],
  ] as [string, () => Promise<ServerSentEvent>, string][])(
    'by cutting the connection and logging the reason when %s',
    async (_when, next, message) => {
      const { port, logged } = await streaming(async function* () {
        yield page(1)
        yield await next()
      })
      const response = await follow(port)
      await new Promise((resolve) => response.on('error', resolve).resume())
      expect(response.complete).toBe(false)
      await expect
        .poll(() => logged.slice(-2))
        .toMatchObject([{ level: 50, err: { message: expect.stringContaining(message) } }, { level: 30 }])
      expect(JSON.stringify(logged)).not.toContain('canary')
    },
  )
})
