/**
 * What stands in front of several services: a proxy that asks each whether it is ready, sends requests to those that
 * are, keeps its connections to them, and tries nothing twice.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface Backend {
  executionUrl: string
  managementUrl: string
}

export interface Front {
  url: string
  /** Each request that a service has not answered whole: what became of it. */
  failures: string[]
  /** How many requests went over a connection that had had one before. */
  reused(): number
  add(backend: Backend): void
  /** Whether requests are sent there. */
  uses(backend: Backend): boolean
  close(): Promise<void>
}

/** Much longer than a connection that is not used again is kept by a service that stops. */
const lookMilliseconds = 400

export async function startFront(): Promise<Front> {
  const agent = new Agent({ keepAlive: true })
  const backends = new Map<Backend, boolean>()
  const failures: string[] = []
  let turn = 0
  let reused = 0

  const look = async () => {
    const ask = async (backend: Backend) => {
      const ready = await fetch(`${backend.managementUrl}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
      backends.set(backend, ready)
    }
    await Promise.all([...backends.keys()].map(ask))
  }
  // One after the other: an older answer must not come in the place of a newer one.
  let timer: NodeJS.Timeout | undefined
  const lookOn = () => {
    timer = setTimeout(async () => {
      await look()
      if (timer) lookOn()
    }, lookMilliseconds)
  }
  lookOn()

  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const ready = [...backends].flatMap(([backend, isReady]) => (isReady ? [backend] : []))
    turn += 1
    const backend = ready[turn % ready.length]
    if (!backend) throw new Error('no service is ready')
    const { method, headers, url = '/' } = incoming
    const onward = request(`${backend.executionUrl}${url}`, { agent, method, headers })
    const answer = new Promise<IncomingMessage>((resolve, reject) => onward.on('response', resolve).on('error', reject))
    const [response] = await Promise.all([answer, pipeline(incoming, onward)])
    const { statusCode = 0, headers: answered } = response
    if (onward.reusedSocket) reused += 1
    // Of this hop alone (RFC 9110, section 7.6.1).
    const { connection: _, 'keep-alive': __, ...kept } = answered
    outgoing.writeHead(statusCode, kept)
    await pipeline(response, outgoing)
  }
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch((error: NodeJS.ErrnoException) => {
      failures.push(`${incoming.method} ${incoming.url}: ${error.code ?? error.message}`)
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(502).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failures,
    reused: () => reused,
    add: (backend) => void backends.set(backend, false),
    uses: (backend) => backends.get(backend) ?? false,
    async close() {
      clearTimeout(timer)
      timer = undefined
      agent.destroy()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
