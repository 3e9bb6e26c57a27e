/**
 * Imitates a pooler in transaction mode with one connection to the server, which its clients use alternately: each sees the
 * session state that the others have set.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from './domain.ts'

/** Returns the URL of the database through the pooler. */
export async function startTransactionPooler(test: Test, url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const far = connect(Number(port || 5432), hostname)
  let near: Socket | undefined
  far.on('data', (bytes) => near?.write(bytes))
  // The first client authenticates with the server; the others get a copy of the server's response.
  let greeting: Promise<Buffer> | undefined
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    clients.add(client.on('error', () => {}))
    const forward = (bytes: Buffer) => {
      near = client
      if (!isTerminate(bytes)) far.write(bytes)
    }
    client.once('data', async (bytes) => {
      client.on('data', forward)
      if (greeting) return void client.write(await greeting)
      greeting = untilReady(far)
      forward(bytes)
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
const authenticationOk = Buffer.from([...Buffer.from('R'), 0, 0, 0, 8, 0, 0, 0, 0])

/** Returns the messages from AuthenticationOk to the first ReadyForQuery, which has six bytes. */
async function untilReady(socket: Socket): Promise<Buffer> {
  let received = Buffer.alloc(0)
  while (!received.includes(authenticationOk) || received.at(-6) !== 'Z'.charCodeAt(0)) {
    const [bytes] = await once(socket, 'data')
    received = Buffer.concat([received, bytes])
  }
  return received.subarray(received.indexOf(authenticationOk))
}

/** A client's Terminate message must not end the shared connection. */
function isTerminate(bytes: Buffer): boolean {
  return bytes[0] === 'X'.charCodeAt(0) && bytes.length === 5
}
