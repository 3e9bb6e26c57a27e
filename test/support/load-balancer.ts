/** A load balancer for tests: forwards requests to services that are ready, keeps connections alive, and never retries. */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface Backend {
  executionUrl: string
  managementUrl: string
}

export interface LoadBalancer {
  url: string
  /** One line for each request without a complete response. */
  failures: string[]
  /** Number of requests on a reused connection. */
  reused(): number
  add(backend: Backend): void
  /** Whether the backend is ready and gets requests. */
  uses(backend: Backend): boolean
  close(): Promise<void>
}

/** Much longer than a stopping service keeps an idle connection. */
const probeMilliseconds = 400

export async function startLoadBalancer(): Promise<LoadBalancer> {
  const agent = new Agent({ keepAlive: true })
  const backends = new Map<Backend, boolean>()
  const failures: string[] = []
  let count = 0
  let reused = 0

  const probe = async (backend: Backend) => {
    const isReady = await fetch(`${backend.managementUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    backends.set(backend, isReady)
  }
  // Probes run in sequence, so that an older result cannot replace a newer one.
  let timer: NodeJS.Timeout | undefined
  const schedule = () => {
    timer = setTimeout(async () => {
      await Promise.all([...backends.keys()].map(probe))
      if (timer) schedule()
    }, probeMilliseconds)
  }
  schedule()

  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const ready = [...backends].flatMap(([backend, isReady]) => (isReady ? [backend] : []))
    count += 1
    const backend = ready[count % ready.length]
    if (!backend) throw new Error('no service is ready')
    const { method, headers, url = '/' } = incoming
    const forwarded = request(`${backend.executionUrl}${url}`, { agent, method, headers })
    const received = new Promise<IncomingMessage>((resolve, reject) =>
      forwarded.on('response', resolve).on('error', reject),
    )
    const [response] = await Promise.all([received, pipeline(incoming, forwarded)])
    if (forwarded.reusedSocket) reused += 1
    // Hop-by-hop headers (RFC 9110, section 7.6.1).
    const { connection: _, 'keep-alive': __, ...kept } = response.headers
    outgoing.writeHead(response.statusCode ?? 0, kept)
    await pipeline(response, outgoing)
  }
  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch((error: NodeJS.ErrnoException) => {
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
