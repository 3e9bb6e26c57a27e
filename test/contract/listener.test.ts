import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { ListenError, listen } from '../../src/contract/listener.ts'
import { until } from '../support/service.ts'
import { jsonType, key, serve } from './served.ts'

const host = 'Host: x'
const good = key.join(': ')
const getBook = `GET /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n`
const soon = { headersTimeout: 300, requestTimeout: 600, connectionsCheckingInterval: 50, keepAliveTimeout: 200 }

/** The parts of an answer in bytes. */
function parts(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { head, problem: JSON.parse(body) as Record<string, unknown> }
}

describe('what is not HTTP is answered with a problem, and its connection closed', () => {
  test.each([
    ['no request', 'nonsense\r\n\r\n', 400],
    ['a header without a name', `GET / HTTP/1.1\r\n${host}\r\n: x\r\n\r\n`, 400],
    ['a header with a line break of its own', `${getBook}a: b\n c\u0001\r\n\r\n`, 400],
    [
      'two different lengths',
      `PUT /books/a HTTP/1.1\r\n${host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
      400,
    ],
    [
      'a length and chunks',
      `PUT /books/a HTTP/1.1\r\n${host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['headers beyond 16 KiB', `${getBook}A: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
    ['a path beyond 16 KiB', `GET /${'x'.repeat(17_000)} HTTP/1.1\r\n${host}\r\n\r\n`, 431],
  ])('%s', async (_what, bytes, status) => {
    const { send } = await serve()
    const { head, problem } = parts(await send(bytes))
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} .+`))
    expect(head).toContain('Content-Type: application/problem+json')
    expect(head).toContain(`X-Request-Id: ${problem.requestId}`)
    expect(head).toContain('Connection: close')
    expect(problem).toMatchObject({ status })
  })

  test('chunks that are broken after the head of their request', async () => {
    const { send } = await serve()
    const head = `PUT /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${jsonType.join(': ')}\r\nTransfer-Encoding: chunked`
    expect(await send(`${head}\r\n\r\nnonsense\r\n`)).toMatch(/^HTTP\/1.1 400 /)
  })
})

test('a client that does not close its side cannot keep the connection', async () => {
  const sockets = () => process.getActiveResourcesInfo().filter((it) => it === 'TCPSocketWrap').length
  const { port } = await serve()
  await expect.poll(sockets).toBe(0)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write('nonsense\r\n\r\n')
  await once(socket.resume(), 'end')
  // Both sides are in this process; the client's own is still open.
  await expect.poll(sockets).toBe(1)
  socket.destroy()
})

describe('requests that Node would answer by itself', () => {
  const close = 'Connection: close\r\n\r\n'

  test.each([
    ['an absolute target', `GET http://library/books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${close}`, 200],
    ['an absolute target that is none', `GET http://a:b:c HTTP/1.1\r\n${host}\r\n${close}`, 404],
    ['an expectation that nobody knows', `${getBook}Expect: miracles\r\n${close}`, 200],
    ['an upgrade', `${getBook}Upgrade: websocket\r\n${close}`, 200],
    ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${host}\r\n${close}`, 404],
    ['HTTP/1.0 without Host', `GET /books/a HTTP/1.0\r\n${good}\r\n\r\n`, 200],
  ])('%s', async (_what, bytes, status) => {
    const { send } = await serve()
    const answer = await send(bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).toMatch(/X-Request-Id: /)
  })
})

describe('slow clients are cut off', () => {
  test.each([
    ['who send nothing', ''],
    ['who do not end their headers', 'GET / HTTP/1.1\r\n'],
    [
      'who do not end their body',
      `PUT /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${jsonType.join(': ')}\r\nContent-Length: 10\r\n\r\n{`,
    ],
  ])('%s', async (_who, bytes) => {
    const { send } = await serve({ limits: soon })
    const { head, problem } = parts(await send(bytes))
    expect(head).toMatch(/^HTTP\/1.1 408 /)
    expect(problem).toMatchObject({ status: 408, type: '/docs/errors#request-timeout' })
  })

  test('after an answer, a connection that stays idle is closed without a word', async () => {
    const { send } = await serve({ limits: { ...soon, keepAliveTimeoutBuffer: 100 } as never })
    expect((await send(`${getBook}\r\n`)).match(/HTTP\/1.1/g)).toHaveLength(1)
  })
})

test('a port that is in use is told of with what it is for', async () => {
  const { port } = await serve()
  const refused = listen(express(), { host: '127.0.0.1', port, name: 'LIBRARY_PORT' })
  await expect(refused).rejects.toThrow(ListenError)
  await expect(refused).rejects.toThrow(
    `127.0.0.1:${port} is in use by another program: set LIBRARY_PORT to another port`,
  )
})

describe('stopping', () => {
  /** A server whose answer waits until it is let go, and a request in flight. */
  async function inFlight() {
    const arrived = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const served = await serve({
      handlers: {
        getBook: async () => {
          arrived.resolve()
          await go.promise
          return { status: 200, body: { title: 'A' } }
        },
      },
    })
    const agent = new Agent({ keepAlive: true })
    const request = get({ port: served.port, path: '/books/a', headers: Object.fromEntries([key]), agent })
    const response = once(request, 'response').then(([it]) => it as IncomingMessage)
    await arrived.promise
    return { ...served, go, response }
  }

  test('waits for requests in flight, whose answers close their connections', async () => {
    const { listener, go, response, port } = await inFlight()
    const stopped = listener.stop(60)
    // Whoever has connected by then is still accepted.
    await nextTurn()
    await nextTurn()
    await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED')
    go.resolve()
    const answer = await response
    expect(answer.statusCode).toBe(200)
    expect(answer.headers.connection).toBe('close')
    expect(JSON.parse(await text(answer))).toEqual({ title: 'A' })
    await stopped
  })

  test('cuts what remains at the end of its time', async () => {
    const { listener, response } = await inFlight()
    await Promise.all([expect(response).rejects.toThrow('socket hang up'), listener.stop(0.1)])
  })

  /** A connection that has had its first answer. */
  async function used(port: number) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${getBook}\r\n`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).not.toContain('Connection: close')
    return socket
  }

  test('does not wait for connections between two requests', async () => {
    const { listener, port } = await serve()
    const socket = (await used(port)).resume()
    await Promise.all([once(socket, 'end'), listener.stop(60)])
  })

  test('answers a request that is on its way on a connection that was idle, and closes that', async () => {
    const { listener, port } = await serve()
    const socket = await used(port)
    // In the same turn: the server cannot have read it.
    socket.write(`${getBook}\r\n`)
    const stopped = listener.stop(60)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer).toContain('Connection: close')
    await stopped
  })

  test('answers the request that comes right after an answer which had begun before', async () => {
    const begun = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const app = express()
    app.get('/', async (_request, response) => {
      response.setHeader('Content-Length', 4).write('be')
      begun.resolve()
      await go.promise
      response.end('en')
    })
    app.get('/next', (_request, response) => void response.send('next'))
    const listener = await listen(app, { host: '127.0.0.1', port: 0, name: 'PORT' })
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1')
    socket.write(`GET / HTTP/1.1\r\n${host}\r\n\r\n`)
    const answers = text(socket)
    await begun.promise
    const stopped = listener.stop(60)
    go.resolve()
    await until('the first answer has arrived', () => socket.bytesRead > 0)
    socket.write(`GET /next HTTP/1.1\r\n${host}\r\n\r\n`)
    expect(await answers).toMatch(/been.*Connection: close.*next$/s)
    await stopped
  })

  test('drains: everything is answered still, and each answer closes its connection', async () => {
    const { listener, go, response, port } = await inFlight()
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    listener.drain()
    go.resolve()
    expect((await response).headers.connection).toBe('close')
    for (const connection of [socket, connect(port, '127.0.0.1')]) {
      connection.write(`${getBook}\r\n`)
      expect(await text(connection)).toMatch(/^HTTP\/1.1 200 .*Connection: close/s)
    }
    await listener.stop(60)
  })

  test('still answers the first request of a connection that was open before', async () => {
    const { listener, port } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /books/a')
    await once(socket, 'connect')
    await expect.poll(() => socket.bytesWritten).toBeGreaterThan(0)
    const stopped = listener.stop(60)
    socket.write(` HTTP/1.1\r\n${host}\r\n${good}\r\n\r\n`)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer).toContain('Connection: close')
    await stopped
  })

  test('answers whoever has connected just before', async () => {
    const { listener, port } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.write(`${getBook}\r\n`)
    const answer = text(socket)
    // The system has connected them in the next tick; the server accepts them in a later turn.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    await listener.stop(60)
    expect(await answer).toMatch(/^HTTP\/1.1 200 .*Connection: close/s)
  })

  test('answers a request that came while the process was busy', async () => {
    const { listener, port } = await serve()
    const socket = await used(port)
    const stopped = listener.stop(60)
    // The server is given no turn before its time for connections between two requests is over.
    await nextTurn()
    await nextTurn()
    socket.write(`${getBook}\r\n`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    expect(await text(socket)).toMatch(/^HTTP\/1.1 200 /)
    await stopped
  })

  test('does not wait for connections that never had a request', async () => {
    const { listener, port } = await serve()
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    await Promise.all([once(socket.resume(), 'end'), listener.stop(60)])
  })
})
