/**
 * A pooler in transaction mode with one connection to the server, as far as clients that take turns can tell: what one
 * has said on the connection, the next one finds there.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from './store.ts'

/** Returns the URL by which the database is reached through it. */
export async function startTransactionPooler(test: Test, url: string): Promise<string> {
  const { hostname, port, pathname, username } = new URL(url)
  const far = connect(Number(port), hostname)
  far.write(startup({ user: username, database: pathname.slice(1) }))
  const welcome = await untilReady(far)
  let near: Socket | undefined
  far.on('data', (bytes) => near?.write(bytes))
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    clients.add(client.on('error', () => {}))
    client.once('data', () => {
      client.write(welcome)
      client.on('data', (bytes) => {
        near = client
        if (!isFarewell(bytes)) far.write(bytes)
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.onTestFinished(() => {
    for (const socket of [far, ...clients]) socket.destroy()
    server.close()
  })
  const pooled = new URL(url)
  pooled.port = String((server.address() as AddressInfo).port)
  return pooled.href
}

/** The first message of a client (PostgreSQL, "Message Formats": StartupMessage). */
function startup(parameters: Record<string, string>): Buffer {
  const text = Object.entries(parameters).flat().concat('', '').join('\0')
  const message = Buffer.alloc(8 + Buffer.byteLength(text))
  message.writeInt32BE(message.length, 0)
  message.writeInt32BE(3 << 16, 4)
  message.write(text, 8)
  return message
}

/** Everything up to the first ReadyForQuery, which is six bytes and comes last. */
async function untilReady(socket: Socket): Promise<Buffer> {
  let received = Buffer.alloc(0)
  while (received.at(-6) !== 'Z'.charCodeAt(0)) {
    const [bytes] = await once(socket, 'data')
    received = Buffer.concat([received, bytes])
  }
  return received
}

/** Terminate: of the client, not of the connection that it was lent. */
function isFarewell(bytes: Buffer): boolean {
  return bytes[0] === 'X'.charCodeAt(0) && bytes.length === 5
}
