/** An HTTP proxy between workers and the service: delays each request, and resets connections before or after the service has acted. */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from './domain.ts'
import { seededRandom } from './seeded-random.ts'

interface Faults {
  /** Added to each request: half of it before the service gets it. */
  latencyMilliseconds: number
  /** The share of requests whose connection is reset before the service gets them, and the share of those after. */
  resetShare: number
  seed: number
}

export interface FaultProxy {
  url: string
  /** Requests that were reset, before the service got them and after it had responded. */
  resets: { before: number; after: number }
}

/** @param targets addresses of the service, read before each request, so that processes may be replaced. */
export async function startFaultProxy(
  test: Test,
  targets: () => readonly string[],
  { latencyMilliseconds, resetShare, seed }: Faults,
): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true })
  const random = seededRandom(seed)
  const resets = { before: 0, after: 0 }
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await incoming.toArray()
    const fault = random()
    await delay(latencyMilliseconds / 2)
    if (fault < resetShare) {
      resets.before += 1
      throw new Error('reset before the service gets the request')
    }
    const all = targets()
    const target = all[Math.floor(random() * all.length)]
    if (!target || incoming.socket.destroyed) throw new Error('no service, or no client')
    const { method, headers, url } = incoming
    const sent = request(new URL(url ?? '/', target), { agent, method, headers })
    // A worker that is killed takes its connection with it.
    outgoing.once('close', () => sent.destroy())
    const responding = once(sent, 'response')
    sent.end(Buffer.concat(body))
    const [response] = (await responding) as [IncomingMessage]
    const content = await response.toArray()
    await delay(latencyMilliseconds / 2)
    if (fault > 1 - resetShare) {
      resets.after += 1
      throw new Error('reset after the service has responded')
    }
    outgoing.writeHead(response.statusCode ?? 502, response.headers).end(Buffer.concat(content))
  }
  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => incoming.socket.resetAndDestroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => {
    server.close()
    server.closeAllConnections()
    agent.destroy()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, resets }
}
