/**
 * A pooler in transaction mode with one connection to the server, as far as clients that take turns can tell: what one
 * has said on the connection, the next one finds there.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from './domain.ts'

/** Returns the URL by which the database is reached through it. */
export async function startTransactionPooler(test: Test, url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const far = connect(Number(port || 5432), hostname)
  let near: Socket | undefined
  far.on('data', (bytes) => near?.write(bytes))
  // The first client signs in to the server itself, by whatever that asks of it; others are told what that was told.
  let welcome: Promise<Buffer> | undefined
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    clients.add(client.on('error', () => {}))
    const pass = (bytes: Buffer) => {
      near = client
      if (!isFarewell(bytes)) far.write(bytes)
    }
    client.once('data', async (bytes) => {
      client.on('data', pass)
      if (welcome) return void client.write(await welcome)
      welcome = untilReady(far)
      pass(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.onTestFinished(() => {
    for (const socket of [far, ...clients]) socket.destroy()
    server.close()
  })
  const pooled = new URL(url)
  pooled.hostname = '127.0.0.1'
  pooled.port = String((server.address() as AddressInfo).port)
  return pooled.href
}

/** AuthenticationOk (PostgreSQL, "Message Formats"). */
const signedIn = Buffer.from([...Buffer.from('R'), 0, 0, 0, 8, 0, 0, 0, 0])

/** From AuthenticationOk to the first ReadyForQuery, which is six bytes and comes last. */
async function untilReady(socket: Socket): Promise<Buffer> {
  let received = Buffer.alloc(0)
  while (!received.includes(signedIn) || received.at(-6) !== 'Z'.charCodeAt(0)) {
    const [bytes] = await once(socket, 'data')
    received = Buffer.concat([received, bytes])
  }
  return received.subarray(received.indexOf(signedIn))
}

/** Terminate: of the client, not of the connection that it was lent. */
function isFarewell(bytes: Buffer): boolean {
  return bytes[0] === 'X'.charCodeAt(0) && bytes.length === 5
}
