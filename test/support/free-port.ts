import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port that is free, for a server that has to know it beforehand. It is below those that Linux gives to whoever wants
 * any: it stays free until the server starts, and while it is restarted.
 */
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
