/** A receiver of webhooks in a process of its own, so that it takes no CPU time of the sender's event loop. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(204).end())
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
