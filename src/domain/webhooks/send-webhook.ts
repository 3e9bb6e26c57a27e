/**
 * Sends one webhook request. Every connection goes to an address that was resolved for it and checked, so that a name
 * that resolves to another address a moment later (DNS rebinding) reaches nothing private. Redirects are not followed.
 */
import dns from 'node:dns/promises'
import { type BlockList, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Agent } from 'undici'

export interface WebhookRequest {
  url: string
  headers: Record<string, string>
  body: string
}

export interface WebhookResult {
  /** `null` without a response. */
  status: number | null
  /** The beginning of the response's body. */
  body: string | null
  /** `null` after a 2xx response. */
  error: string | null
}

/** Public, but serves the settings of a virtual machine on Azure. */
const azureSettings = '168.63.129.16'

const bodyBytesMax = 4096
const bodyCharactersMax = 1024
const errorCharactersMax = 500

/** An address that webhooks must not reach. */
class AddressRefused extends Error {}

export class WebhookSender {
  readonly #allowed: BlockList | undefined
  readonly #timeoutMilliseconds: number
  #agent: Promise<Agent> | undefined

  /** @param allowed addresses that may be reached although they are private. */
  constructor(allowed: BlockList | undefined, timeoutMilliseconds = 10_000) {
    this.#allowed = allowed
    this.#timeoutMilliseconds = timeoutMilliseconds
  }

  /** Never rejects. `signal` ends the request. */
  async send({ url, headers, body }: WebhookRequest, signal: AbortSignal): Promise<WebhookResult> {
    try {
      this.#agent ??= this.#createAgent()
      const dispatcher = await this.#agent
      const limited = AbortSignal.any([signal, AbortSignal.timeout(this.#timeoutMilliseconds)])
      const { origin, pathname, search } = new URL(url)
      const options = { origin, path: pathname + search, method: 'POST', headers, body, signal: limited } as const
      const response = await dispatcher.request(options)
      const text = await readBeginning(response.body)
      const isAccepted = response.statusCode >= 200 && response.statusCode < 300
      const error = isAccepted ? null : `The response had the status ${response.statusCode}.`
      return { status: response.statusCode, body: text, error }
    } catch (error) {
      return { status: null, body: null, error: this.#explain(error).slice(0, errorCharactersMax) }
    }
  }

  async close(): Promise<void> {
    await (await this.#agent)?.destroy()
  }

  /** Loads undici with the first request: it takes 30 MB. */
  async #createAgent(): Promise<Agent> {
    const { Agent, buildConnector } = await import('undici')
    const connect = buildConnector({ timeout: this.#timeoutMilliseconds })
    return new Agent({
      connect: (options, callback) => {
        this.#resolve(options.hostname, options.protocol).then(
          // TLS still verifies the name, which is in `host`.
          (address) => connect({ ...options, hostname: address }, callback),
          (error: Error) => callback(error, null),
        )
      },
    })
  }

  /** @throws {AddressRefused} if any address of the host is refused. */
  async #resolve(host: string, protocol: string): Promise<string> {
    // An IPv6 address in a URL has brackets.
    const addresses = await dns.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
    for (const { address } of addresses) {
      if (isAllowed(address, this.#allowed)) continue
      if (!isPublic(address))
        throw new AddressRefused(`${host} is or resolves to the address ${address}, which is not public.`)
      if (protocol !== 'https:') throw new AddressRefused('Public addresses need https.')
    }
    return addresses[0]?.address ?? ''
  }

  #explain(error: unknown): string {
    if (error instanceof AddressRefused) return error.message
    const { name, code, message } = error as NodeJS.ErrnoException
    if (name === 'TimeoutError') return `No response within ${this.#timeoutMilliseconds / 1000} seconds.`
    return code === undefined ? message : `The request failed: ${code}.`
  }
}

/** The first 1,024 characters. The rest of a long body is not read. */
async function readBeginning(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= bodyBytesMax) break
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks).subarray(0, bodyBytesMax))
  // PostgreSQL stores no U+0000. A surrogate pair is not divided.
  return text.replaceAll('\0', '\uFFFD').slice(0, bodyCharactersMax).toWellFormed()
}

function isAllowed(address: string, allowed: BlockList | undefined): boolean {
  return allowed?.check(address, isIPv6(address) ? 'ipv6' : 'ipv4') ?? false
}

/** Refuses private, loopback, link-local, unique-local, shared (CGNAT), multicast and reserved addresses. */
export function isPublic(text: string): boolean {
  // An IPv4 address that is mapped into IPv6 counts as itself.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast' || text === azureSettings) return false
  return address instanceof ipaddr.IPv4 || address.match(ipaddr.IPv6.parse('2000::'), 3)
}

/** Why the URL cannot be an endpoint's; `undefined` if it can. Names are resolved for each request. */
export function findUrlError(text: string, allowed: BlockList | undefined): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be an absolute URL with https'
  if (url.username !== '' || url.password !== '') return 'must not contain credentials'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!ipaddr.isValid(host) || isAllowed(host, allowed)) return undefined
  if (!isPublic(host)) return 'must not have an address that is not public'
  return url.protocol === 'https:' ? undefined : 'must start with https: for a public address'
}
