/** A TCP proxy between the service and its database that simulates network failures. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from './domain.ts'

export interface TcpProxy {
  port: number
  /** Resets all connections, and new ones at once. */
  cut(): void
  /** Forwards nothing. Connections stay open, and new ones are accepted. */
  stall(): void
  /** Forwards nothing on current connections, and everything on new ones. */
  stallCurrent(): void
  /** Forwards the next bytes that contain `text`, and resets their connection instead of forwarding the response. */
  loseResponseTo(text: string): void
  /** Forwards everything again, and resets stalled connections. */
  restore(): void
}

export async function startTcpProxy(test: Test, target: number): Promise<TcpProxy> {
  let state: 'normal' | 'cut' | 'stalled' = 'normal'
  let requestToLose: string | undefined
  const sockets = new Set<Socket>()
  const lost = new WeakSet<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    return socket
  }
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const forward = (from: Socket, to: Socket) => {
    from.on('data', (bytes) => {
      if (requestToLose !== undefined && bytes.includes(requestToLose)) {
        requestToLose = undefined
        to.removeAllListeners('data').once('data', () => from.resetAndDestroy())
      }
      if (state === 'normal' && !lost.has(from)) to.write(bytes)
    })
    from.once('close', () => to.destroy())
  }
  const server = createServer((near) => {
    keep(near)
    if (state === 'cut') return void near.resetAndDestroy()
    const far = keep(connect(target, '127.0.0.1'))
    forward(near, far)
    forward(far, near)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => {
    reset()
    server.close()
  })
  const setState = (next: typeof state) => {
    state = next
  }
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      setState('cut')
      reset()
    },
    stall: () => setState('stalled'),
    stallCurrent() {
      for (const socket of sockets) lost.add(socket)
    },
    loseResponseTo(text) {
      requestToLose = text
    },
    restore() {
      reset()
      setState('normal')
    },
  }
}
