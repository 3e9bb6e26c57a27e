import { once } from 'node:events'
import { createServer } from 'node:http'
import { inspect } from 'node:util'
import { defineWorkflow } from 'execution-service/workflow'

/**
 * A workflow whose run must return `expected`: the service checks outputs.
 *
 * @param {string} id the name of the package without its scope.
 * @param {string} title what the run does with the package.
 */
export function use(id, title, expected, run) {
  return defineWorkflow({
    id,
    version: '1.0.0',
    title,
    variables: { type: 'object' },
    output: { const: expected },
    run,
  })
}

/** Calls `act` with the address of a server that answers each request with `body`. */
export async function withServer(body, act) {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', body.startsWith('<') ? 'application/xml' : 'application/json').end(body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  try {
    return await act(`http://127.0.0.1:${port}`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

/** The code of the error of a connection to a port that nothing listens on. */
export async function refusal(connect) {
  try {
    await connect()
    return 'connected'
  } catch (error) {
    return /ECONNREFUSED/.exec(inspect(error))?.[0] ?? String(error)
  }
}
