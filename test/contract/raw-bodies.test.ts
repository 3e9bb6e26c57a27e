/** Bodies of any media type are read while they arrive, and responses of bytes are sent while they are read. */
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ClientGone } from '../../src/contract/body.ts'
import type { RawBody } from '../../src/contract/handler.ts'
import { library, operation } from './library.ts'
import { key, serve } from './served.ts'

const binary = { type: 'string', format: 'binary' }
const head = (length: number) =>
  `POST /covers HTTP/1.1\r\nHost: x\r\n${key.join(': ')}\r\nContent-Length: ${length}\r\n\r\n`

/** The library with covers, whose maximum size is 1000 bytes. */
async function serveCovers(
  createCover: (body: RawBody) => Promise<object>,
  { limits = {}, chunks }: { limits?: object; chunks?: () => AsyncIterable<Uint8Array> } = {},
) {
  const document = library() as unknown as { paths: Record<string, object> }
  const requestBody = { required: true, 'x-body-bytes-max': 1000, content: { '*/*': { schema: binary } } }
  const content = { 'application/octet-stream': { schema: binary } }
  document.paths['/covers'] = {
    get: operation('getCover', { 200: { description: 'A cover.', content } }),
    post: operation('createCover', { 204: { description: 'Stored.' } }, { requestBody }),
  }
  const mediaType = 'application/octet-stream'
  return serve({
    document,
    limits,
    handlers: {
      createCover: async (request) => createCover((request as { body: RawBody }).body) as never,
      getCover: async () => ({ status: 200, stream: { bytes: 6, chunks: chunks?.() ?? twice() }, mediaType }),
    },
  })
}

async function* twice() {
  yield Buffer.from('abc')
  yield Buffer.from('def')
}

async function read(body: RawBody): Promise<Buffer> {
  return buffer(body)
}

test('a handler gets the pieces of the body, and its media type', async () => {
  const received: unknown[] = []
  const { call } = await serveCovers(async (body) => {
    received.push(body.mediaType, body.declaredBytes, (await read(body)).toString())
    return { status: 204 }
  })
  const type = ['Content-Type', 'text/plain; charset=iso-8859-1'] as [string, string]
  const length = ['Content-Length', '5'] as [string, string]
  expect((await call('POST', '/covers', { headers: [key, type, length], body: 'Hello' })).status).toBe(204)
  expect((await call('POST', '/covers', { headers: [key, ['Content-Length', '0']] })).status).toBe(204)
  const plain = ['text/plain;charset=iso-8859-1', 5, 'Hello']
  expect(received).toEqual([...plain, 'application/octet-stream', 0, ''])
})

test('a response before the end of the body closes the connection, after what the client still sends', async () => {
  const { send } = await serveCovers(async () => {
    const problem = { kind: 'not-found', detail: 'No.' }
    return { status: 404, problem }
  })
  const received = await send(`${head(900)}${'x'.repeat(900)}`)
  expect(received).toMatch(/^HTTP\/1.1 404 /)
  expect(received).toContain('Connection: close')
})

test('a client that goes ends the body with an error', async () => {
  const failed = Promise.withResolvers<unknown>()
  const { port } = await serveCovers(async (body) => {
    await read(body).catch(failed.resolve)
    return { status: 204 }
  })
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(`${head(900)}${'x'.repeat(10)}`)
  await delay(50)
  socket.destroy()
  expect(await failed.promise).toBeInstanceOf(ClientGone)
})

const soon = { requestTimeout: 300, connectionsCheckingInterval: 50 }

test('a body that stops arriving is cut off, and one for which the handler waits is not', async () => {
  const { send } = await serveCovers(
    async (body) => {
      await read(body)
      return { status: 204 }
    },
    { limits: soon },
  )
  expect(await send(`${head(900)}${'x'.repeat(10)}`)).toMatch(/^HTTP\/1.1 408 /)
  const slow = await serveCovers(
    async (body) => {
      await delay(600)
      await read(body)
      return { status: 204 }
    },
    { limits: soon },
  )
  const socket = connect(slow.port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(`${head(900)}${'x'.repeat(10)}`)
  await delay(500)
  socket.write('x'.repeat(890))
  const [response] = (await Promise.race([
    new Promise((resolve) => socket.once('data', (data) => resolve([String(data)]))),
    delay(5000).then(() => ['nothing']),
  ])) as string[]
  expect(response).toMatch(/^HTTP\/1.1 204 /)
})

test('a response is sent while it is read, and broken off when bytes are missing', async () => {
  const { call } = await serveCovers(async () => ({ status: 204 }))
  const { headers, text } = await call('GET', '/covers')
  expect([headers['content-length'], text]).toEqual(['6', 'abcdef'])
  expect((await call('HEAD', '/covers')).headers['content-length']).toBe('6')
  const short = await serveCovers(async () => ({ status: 204 }), {
    chunks: async function* () {
      yield Buffer.from('abc')
    },
  })
  await expect(short.call('GET', '/covers')).rejects.toThrow()
  expect(short.logged.find(({ msg }) => msg === 'response of bytes failed')).toMatchObject({
    err: { message: '3 of 6 bytes were read.' },
  })
})
