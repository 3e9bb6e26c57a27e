/** A registry of npm on the loopback interface that passes requests on, and counts them and the bytes that it sends. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { AddressInfo } from 'node:net'

/** The registry that npm uses here. */
const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim().replace(/\/*$/, '/')

export interface Transfer {
  path: string
  bytes: number
}

export interface RegistryProxy {
  url: string
  /** Since the last call. */
  takeTransfers(): Transfer[]
  close(): void
}

export async function startRegistryProxy(): Promise<RegistryProxy> {
  let transfers: Transfer[] = []
  const server = createServer((incoming, response) => {
    const path = decodeURIComponent(incoming.url ?? '/')
    const transfer = { path, bytes: 0 }
    transfers.push(transfer)
    const address = new URL(`.${incoming.url}`, upstream)
    const { host, connection, ...headers } = incoming.headers
    const request = address.protocol === 'http:' ? requestHttp : requestHttps
    const outgoing = request(address, { method: incoming.method, headers }, (received) => {
      response.writeHead(received.statusCode ?? 502, received.headers)
      received.on('data', (part: Buffer) => {
        transfer.bytes += part.length
      })
      received.pipe(response)
    })
    outgoing.once('error', () => response.destroy())
    incoming.pipe(outgoing)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    takeTransfers() {
      const taken = transfers
      transfers = []
      return taken
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
