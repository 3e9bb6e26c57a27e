/** Compiles the validation of operations before the first request, which would wait for 50 to 130 ms of CPU. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type { ServedOperation } from './exchange.ts'

const millisecondsMax = 10_000

/** One request of the operation. Its result does not matter. */
const body = { mediaType: 'application/json', value: {}, bytes: 2 }

/**
 * express-openapi-validator compiles at its first request, so each operation validates a real one, from this process on
 * a port of its own. No handler is called.
 */
export async function warmUp(operations: readonly ServedOperation[]): Promise<void> {
  if (operations.length === 0) return
  const app = express().enable('strict routing').enable('case sensitive routing')
  app.use(async (request, response) => {
    const served = operations.find(({ operation }) => operation.path === decodeURI(request.url))
    if (served) {
      const { operation, readParameters, validateRequest } = served
      const values = operation.path.split('/').filter((segment) => segment.startsWith('{'))
      const invalid = validateRequest(request, response, readParameters(values, ''), operation.body && body)
      await invalid.catch(() => {})
    }
    response.end()
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const { operation } of operations) {
      const signal = AbortSignal.timeout(millisecondsMax)
      const request = { method: operation.method, headers: { connection: 'close' }, signal }
      // Best effort, for example where a proxy of the environment takes the request: the first caller then waits longer.
      await fetch(`http://127.0.0.1:${port}${operation.path}`, request).catch(() => {})
    }
  } finally {
    server.close()
  }
}
