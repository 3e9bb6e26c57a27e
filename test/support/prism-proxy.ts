/**
 * Puts `prism proxy` between clients and a service, and collects the violations of the documents that it reports.
 *
 * Prism reads whole responses as text and never responds to malformed JSON. So event streams, files other than JSON,
 * malformed bodies and paths outside the documents bypass it.
 */
import type { ChildProcess } from 'node:child_process'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, expect } from 'vitest'
import { spawnPrism } from '../../src/commands/mock.ts'
import type { DocumentName } from '../../src/openapi/document.ts'
import type { Addresses } from './service.ts'

export interface Violation {
  /** Method, path and response status. */
  exchange: string
  /** Begins with `request` or `response`. */
  location: string[]
  message: string
}

export interface PrismProxy {
  url: string
  /** Returns the violations found since the last call. */
  takeViolations(): Violation[]
  stop(): void
}

export async function startPrismProxy(document: DocumentName, upstream: string): Promise<PrismProxy> {
  let child: ChildProcess | undefined
  let prism: Promise<string> | undefined
  let violations: Violation[] = []
  // Prism takes a second to start, and not every test calls every API.
  const startOnce = () => {
    child ??= spawnPrism('proxy', document, [upstream, '--port', '0', '--cors', 'false'], ['ignore', 'pipe', 'inherit'])
    prism ??= waitForAddress(child)
    return prism
  }
  const server = createServer({ keepAliveTimeout: 3_600_000 }, async (incoming, outgoing) => {
    try {
      const body = Buffer.concat(await incoming.toArray())
      const usesPrism = isForPrism(incoming, body)
      const target = usesPrism ? await startOnce() : upstream
      const newViolations = await forward(incoming, body, target, outgoing, usesPrism)
      violations.push(...newViolations)
    } catch {
      outgoing.destroy()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    takeViolations() {
      const takenViolations = violations
      violations = []
      return takenViolations
    },
    stop() {
      server.close()
      server.closeAllConnections()
      child?.kill()
    },
  }
}

/** @throws {Error} with the output of Prism if it exits before it listens. */
function waitForAddress(child: ChildProcess): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`Prism did not start:\n${output}`)))
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000)
      const [, url] = /Prism is listening on (\S+)/.exec(output) ?? []
      if (url) resolve(url)
    })
  })
}

function isForPrism({ url = '', headers }: IncomingMessage, body: Buffer): boolean {
  if (!/^\/(v1|alpha)\//.test(url) || /\/(events|artifacts\/.*(?<!\.json))$/.test(url)) return false
  if (body.length === 0 || !/json/.test(headers['content-type'] ?? '')) return true
  try {
    JSON.parse(body.toString())
    return true
  } catch {
    return false
  }
}

/** Resolves to the violations in the exchange when the response has ended, or as soon as an event stream has begun. */
function forward(
  incoming: IncomingMessage,
  body: Buffer,
  target: string,
  outgoing: ServerResponse,
  usesPrism: boolean,
): Promise<Violation[]> {
  const { hostname, port } = new URL(target)
  const { method, url = '', rawHeaders } = incoming
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path: url, headers: rawHeaders as never, agent: false }
    const forwarded = request(options, (response) => {
      const { 'sl-violations': reported = '[]', 'x-request-id': requestId } = response.headers
      // Not from the service: Prism could not reach it, which clients notice as a broken connection.
      if (usesPrism && requestId === undefined) return reject(new Error('The service closed the connection.'))
      const headers = { ...response.headers }
      delete headers['sl-violations']
      outgoing.writeHead(response.statusCode ?? 0, usesPrism ? headers : response.rawHeaders).flushHeaders()
      response.pipe(outgoing)
      const exchange = `${method} ${url} ${response.statusCode}`
      const violations = JSON.parse(String(reported)) as Violation[]
      const result = violations.map(({ location, message }) => ({ exchange, location, message }))
      if (response.headers['content-type'] === 'text/event-stream') resolve(result)
      response.once('end', () => resolve(result)).once('error', reject)
    })
    forwarded.once('error', reject)
    outgoing.once('close', () => forwarded.destroy())
    forwarded.end(body)
  })
}

const proxies = new Set<PrismProxy>()

/** With `THROUGH_PRISM` in the environment, puts a proxy in front of both APIs; every test then fails on violations. */
export async function withPrismProxies<Of extends Addresses>(addresses: Of): Promise<Of> {
  if (!process.env.THROUGH_PRISM) return addresses
  const [execution, browserContext] = await Promise.all([
    startPrismProxy('execution.v1', addresses.executionUrl),
    startPrismProxy('browser-context.alpha', addresses.browserContextUrl),
  ])
  proxies.add(execution).add(browserContext)
  return { ...addresses, executionUrl: execution.url, browserContextUrl: browserContext.url }
}

if (process.env.THROUGH_PRISM) {
  afterEach(() => {
    const violations = [...proxies].flatMap((proxy) => proxy.takeViolations())
    expect(violations, 'requests and responses that violate the documents').toEqual([])
  })
  afterAll(() => {
    for (const proxy of proxies) proxy.stop()
    proxies.clear()
  })
}
