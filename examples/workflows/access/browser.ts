/**
 * Confines the browser of an example to public addresses. All of its requests, also those of redirects, scripts and
 * frames, go through a proxy in the process of the run.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import { portOf, resolvePublic } from './addresses.ts'

/**
 * Opens the browser of a run that is about to visit `url`.
 *
 * @throws if the address of `url` is not public. The browser's own error would only say that the proxy refused it.
 */
export async function openPublicBrowser(
  browser: (options: BrowserContextOptions) => Promise<BrowserContext>,
  url: string,
): Promise<BrowserContext> {
  await requirePublic(url)
  const proxy = await startProxy()
  const context = await browser({ proxy: { server: proxy.url } }).catch((error: unknown) => {
    proxy.stop()
    throw error
  })
  context.once('close', proxy.stop)
  return context
}

/** @throws if the address of `url` is not public. Redirects from there need a browser that `openPublicBrowser` has opened. */
export async function requirePublic(url: string): Promise<void> {
  const target = new URL(url)
  await resolvePublic(target.hostname, portOf(target))
}

async function startProxy() {
  const server = createServer((incoming, response) => void forward(incoming, response))
  const tunnels = new Set<Socket>()
  server.on('connect', (incoming, client: Socket) => {
    tunnels.add(client)
    client.once('close', () => tunnels.delete(client))
    void tunnel(incoming, client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = () => {
    server.close().closeAllConnections()
    for (const client of tunnels) client.destroy()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
}

/** A request for an http: URL, which the browser sends to a proxy with the whole URL. */
async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, headers, url = '' } = incoming
  const refuse = (status: number, { message }: Error) => {
    if (response.headersSent) response.destroy()
    else response.writeHead(status, { 'Content-Type': 'text/plain' }).end(message)
  }
  try {
    const target = new URL(url)
    const port = portOf(target)
    const host = await resolvePublic(target.hostname, port)
    const outgoing = request({ host, port, method, headers, path: target.pathname + target.search })
    outgoing.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders)
      pipeline(answer, response, () => {})
    })
    pipeline(incoming, outgoing, (error) => error && refuse(502, error))
    outgoing.on('error', (error) => refuse(502, error))
  } catch (error) {
    refuse(403, error as Error)
  }
}

/** A connection for https: and WebSockets. */
async function tunnel({ url = '' }: IncomingMessage, client: Socket): Promise<void> {
  // A client that disconnects has nothing more to hear.
  client.on('error', () => {})
  try {
    const { hostname, port } = new URL(`https://${url}`)
    const server = connect(Number(port) || 443, await resolvePublic(hostname, Number(port) || 443))
    server.once('connect', () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'))
    pipeline(client, server, client, () => {})
  } catch {
    client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  }
}
