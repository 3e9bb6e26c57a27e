import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ListenError, listen } from '../../src/contract/listener.ts'
import { until } from '../support/service.ts'
import { jsonType, key, serve } from './served.ts'

const host = 'Host: x'
const good = key.join(': ')
const getBook = `GET /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n`
const soon = { headersTimeout: 300, requestTimeout: 600, connectionsCheckingInterval: 50, keepAliveTimeout: 200 }

/** The head and the problem of a raw response. */
function parts(received: string) {
  const [head = '', body = ''] = received.split('\r\n\r\n')
  return { head, problem: JSON.parse(body) as Record<string, unknown> }
}

describe('malformed HTTP gets a problem and a closed connection', () => {
  test('an invalid chunk after a valid head', async () => {
    const { send } = await serve()
    const head = `PUT /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${jsonType.join(': ')}\r\nTransfer-Encoding: chunked`
    expect(await send(`${head}\r\n\r\nnonsense\r\n`)).toMatch(/^HTTP\/1.1 400 /)
  })

  test.each(['gzip, chunked', 'chunked, chunked'])('the transfer encoding %s', async (encoding) => {
    const { send } = await serve()
    const head = `PUT /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${jsonType.join(': ')}`
    const response = await send(`${head}\r\nTransfer-Encoding: ${encoding}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`)
    expect(response).toMatch(/^HTTP\/1.1 400 /)
    expect(response).toContain('\r\nConnection: close\r\n')
  })
})

test('a client that does not close its side cannot keep the connection open', async () => {
  const { port } = await serve()
  // The service's side; the client's is in this process, too.
  const handles = (process as unknown as { _getActiveHandles(): { localPort?: number }[] })._getActiveHandles
  const served = () => handles().filter(({ localPort }) => localPort === port).length
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write('nonsense\r\n\r\n')
  await once(socket.resume(), 'end')
  await expect.poll(served).toBe(0)
  socket.destroy()
})

describe('requests that Node handles by itself by default', () => {
  const close = 'Connection: close\r\n\r\n'

  test.each([
    ['an absolute target', `GET http://library/books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${close}`, 200],
    ['an invalid absolute target', `GET http://a:b:c HTTP/1.1\r\n${host}\r\n${close}`, 404],
    ['an unknown expectation', `${getBook}Expect: miracles\r\n${close}`, 200],
    ['an upgrade', `${getBook}Upgrade: websocket\r\n${close}`, 200],
    ['CONNECT', `CONNECT library:443 HTTP/1.1\r\n${host}\r\n\r\n`, 405],
    ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${host}\r\n${close}`, 404],
    ['HTTP/1.0 without Host', `GET /books/a HTTP/1.0\r\n${good}\r\n\r\n`, 200],
  ])('%s', async (_what, bytes, status) => {
    const { send } = await serve()
    const received = await send(bytes)
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(received).toMatch(/X-Request-Id: /)
  })
})

describe('the Host header', () => {
  test.each(['library', 'library.example:8080', '127.0.0.1:1', '[::1]:80', 'a_b', 'x:', '', '%C3%A4'])(
    'may be %j',
    async (value) => {
      const { send } = await serve()
      expect(await send(`GET /books/a HTTP/1.1\r\nHost: ${value}\r\n${good}\r\nConnection: close\r\n\r\n`)).toMatch(
        /^HTTP\/1.1 200 /,
      )
    },
  )

  test.each(['a b', 'a/b', 'user@library', 'library:port', '[::1', '::1', 'a, b', '%zz', 'a\r\nHost: a', 'a\r\nHOST:'])(
    'may not be %j',
    async (value) => {
      const { send } = await serve()
      for (const version of ['1.1', '1.0']) {
        const { head, problem } = parts(await send(`GET /books/a HTTP/${version}\r\nHost: ${value}\r\n${good}\r\n\r\n`))
        expect(head).toMatch(/^HTTP\/1.1 400 .*Connection: close/s)
        expect(problem).toMatchObject({ detail: 'The request must have exactly one Host header, and a valid one.' })
      }
    },
  )
})

describe('a client is cut off', () => {
  test.each([
    ['that sends nothing', ''],
    ['that does not end its headers', 'GET / HTTP/1.1\r\n'],
    [
      'that does not end its body',
      `PUT /books/a HTTP/1.1\r\n${host}\r\n${good}\r\n${jsonType.join(': ')}\r\nContent-Length: 10\r\n\r\n{`,
    ],
  ])('%s', async (_who, bytes) => {
    const { send } = await serve({ limits: soon })
    const { head, problem } = parts(await send(bytes))
    expect(head).toMatch(/^HTTP\/1.1 408 /)
    expect(problem).toMatchObject({ status: 408, type: '/docs/errors#request-timeout' })
  })

  const big = { id: '1', event: 'turned', data: { page: 1, text: 'x'.repeat(1_000_000) } }

  test('that reads nothing of a response', async () => {
    const cut = Promise.withResolvers<void>()
    const readBook = async () => ({
      status: 200,
      events: (async function* () {
        try {
          for (;;) yield big
        } finally {
          cut.resolve()
        }
      })(),
    })
    const { port } = await serve({ handlers: { readBook }, limits: { timeout: 100 } })
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.pause().write(`GET /books/a/pages HTTP/1.1\r\n${host}\r\n${good}\r\n\r\n`)
    await cut.promise
  })

  test('but not one that waits longer for the service than a reader may stall', async () => {
    const readBook = async () => ({
      status: 200,
      events: (async function* () {
        await new Promise((resolve) => setTimeout(resolve, 300))
        yield big
      })(),
    })
    const { call } = await serve({ handlers: { readBook }, limits: { timeout: 50 } })
    const { text } = await call('GET', '/books/a/pages')
    expect(text.length).toBeGreaterThan(big.data.text.length)
  })

  test('that stays idle after a response, without another response', async () => {
    const { send } = await serve({ limits: { ...soon, keepAliveTimeoutBuffer: 100 } as never })
    expect((await send(`${getBook}\r\n`)).match(/HTTP\/1.1/g)).toHaveLength(1)
  })
})

test('the error for a port in use names its setting', async () => {
  const { port } = await serve()
  const refused = listen(express(), { host: '127.0.0.1', port, name: 'LIBRARY_PORT' })
  await expect(refused).rejects.toThrow(ListenError)
  await expect(refused).rejects.toThrow(
    `127.0.0.1:${port} is in use by another program: set LIBRARY_PORT to another port`,
  )
})

describe('stopping', () => {
  /** A server with a request in flight, whose response waits for `go`. */
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

  test('waits for requests in flight and closes their connections', async () => {
    const { listener, go, response, port } = await inFlight()
    const stopped = listener.stop(60)
    // Clients that have connected by then are still accepted.
    await nextTurn()
    await nextTurn()
    await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED')
    go.resolve()
    const received = await response
    expect(received.statusCode).toBe(200)
    expect(received.headers.connection).toBe('close')
    expect(JSON.parse(await text(received))).toEqual({ title: 'A' })
    await stopped
  })

  test('cuts remaining connections at the end of the grace period', async () => {
    const { listener, response } = await inFlight()
    await Promise.all([expect(response).rejects.toThrow('socket hang up'), listener.stop(0.1)])
  })

  /** A connection with one completed request. */
  async function used(port: number) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${getBook}\r\n`)
    const [received] = await once(socket, 'data')
    expect(String(received)).not.toContain('Connection: close')
    return socket
  }

  test('does not wait for connections between two requests', async () => {
    const { listener, port } = await serve()
    const socket = (await used(port)).resume()
    await Promise.all([once(socket, 'end'), listener.stop(60)])
  })

  test('serves a request that is on its way on an idle connection, and closes it', async () => {
    const { listener, port } = await serve()
    const socket = await used(port)
    // In the same turn, so the server cannot have read it.
    socket.write(`${getBook}\r\n`)
    const stopped = listener.stop(60)
    const received = await text(socket)
    expect(received).toMatch(/^HTTP\/1.1 200 /)
    expect(received).toContain('Connection: close')
    await stopped
  })

  test('serves the next request on a connection whose response has begun', async () => {
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
    const received = text(socket)
    await begun.promise
    const stopped = listener.stop(60)
    go.resolve()
    await until('the first response has arrived', () => socket.bytesRead > 0)
    socket.write(`GET /next HTTP/1.1\r\n${host}\r\n\r\n`)
    expect(await received).toMatch(/been.*Connection: close.*next$/s)
    await stopped
  })

  test('draining serves every request and closes its connection', async () => {
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

  test('serves the first request of an open connection', async () => {
    const { listener, port } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /books/a')
    await once(socket, 'connect')
    await expect.poll(() => socket.bytesWritten).toBeGreaterThan(0)
    const stopped = listener.stop(60)
    socket.write(` HTTP/1.1\r\n${host}\r\n${good}\r\n\r\n`)
    const received = await text(socket)
    expect(received).toMatch(/^HTTP\/1.1 200 /)
    expect(received).toContain('Connection: close')
    await stopped
  })

  test('serves a client that has just connected', async () => {
    const { listener, port } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.write(`${getBook}\r\n`)
    const received = text(socket)
    // The system connects in the next tick; the server accepts in a later turn.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    await listener.stop(60)
    expect(await received).toMatch(/^HTTP\/1.1 200 .*Connection: close/s)
  })

  test('serves a request that arrived while the process was busy', async () => {
    const { listener, port } = await serve()
    const socket = await used(port)
    const stopped = listener.stop(60)
    // The server gets no turn before its time for idle connections is over.
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
