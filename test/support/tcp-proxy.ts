/** Stands between the service and its database, and breaks the connections as networks do. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from './domain.ts'

export interface TcpProxy {
  port: number
  /** Resets every connection, and refuses new ones. */
  cut(): void
  /** Passes nothing on any more; connections stay open, and new ones are accepted. */
  stall(): void
  /** Passes nothing on any more of the connections that are there, and everything of new ones. */
  stallCurrent(): void
  /** Passes everything on again; what was stalled is reset. */
  restore(): void
}

export async function startTcpProxy(test: Test, target: number): Promise<TcpProxy> {
  let state: 'whole' | 'cut' | 'stalled' = 'whole'
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
  const pass = (from: Socket, to: Socket) => {
    from.on('data', (bytes) => {
      if (state === 'whole' && !lost.has(from)) to.write(bytes)
    })
    from.once('close', () => to.destroy())
  }
  const server = createServer((near) => {
    keep(near)
    if (state === 'cut') return void near.resetAndDestroy()
    const far = keep(connect(target, '127.0.0.1'))
    pass(near, far)
    pass(far, near)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => {
    reset()
    server.close()
  })
  const become = (next: typeof state) => {
    state = next
  }
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      become('cut')
      reset()
    },
    stall: () => become('stalled'),
    stallCurrent() {
      for (const socket of sockets) lost.add(socket)
    },
    restore() {
      reset()
      become('whole')
    },
  }
}
