/** A receiver of webhooks on 127.0.0.1, which verifies the signature of each request before it answers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { verifyWebhook, type WebhookEvent } from '../../src/client/index.ts'
import type { Test } from './domain.ts'

export interface ReceivedWebhook {
  /** The `webhook-id`. */
  id: string
  event: WebhookEvent
  receivedAt: number
  /** The status of the response; 0 when the connection was closed instead. */
  status: number
}

export interface ReceivingPath {
  secret: string
  /** The status to respond with, or 0 to close the connection; default 204. */
  respond?: (id: string) => number | Promise<number>
}

export interface WebhookReceiver {
  url(path: string): string
  /** Starts accepting requests at the path. Others are refused with 404. */
  accept(path: string, options: ReceivingPath): void
  /** Requests of the path whose signature is right, in the order of their responses. */
  received(path: string): ReceivedWebhook[]
  /** Requests without a right signature, and requests to other paths. */
  refused: string[]
}

/** The receiver is closed with the test. */
export async function startWebhookReceiver(test: Test): Promise<WebhookReceiver> {
  const paths = new Map<string, ReceivingPath & { requests: ReceivedWebhook[] }>()
  const refused: string[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const path = paths.get(request.url ?? '')
    if (!path) {
      refused.push(`no path ${request.url}`)
      return void response.writeHead(404).end()
    }
    const receivedAt = Date.now()
    const body = await text(request)
    const event = await verifyWebhook(body, request.headers, path.secret)
    const id = String(request.headers['webhook-id'])
    const wanted = (await path.respond?.(id)) ?? 204
    // A sender that did not wait got no response.
    const status = response.destroyed ? 0 : wanted
    path.requests.push({ id, event, receivedAt, status })
    if (status === 0) request.destroy()
    else response.writeHead(status).end()
  }
  const server = createServer((request, response) => {
    receive(request, response).catch((error: NodeJS.ErrnoException) => {
      // A sender that was killed closes its connection.
      if (error.code !== 'ECONNRESET') refused.push(String(error))
      response.writeHead(400).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    accept: (path, options) => void paths.set(path, { ...options, requests: [] }),
    received: (path) => paths.get(path)?.requests ?? [],
    refused,
  }
}
