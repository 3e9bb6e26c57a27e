/** Free ports, for servers that must know their port in advance. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Returns a port below Linux's ephemeral range, so that it stays free until the server starts, and during restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    const server = createServer()
    const isFree = await new Promise((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}
