/**
 * Sends one webhook request. Every connection goes to an address that was resolved for it and checked, so that a name
 * that resolves to another address a moment later (DNS rebinding) reaches nothing private. Redirects are not followed.
 */
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { type BlockList, isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Agent } from 'undici'
import { describeConnectionFailure } from '../../storage/error-causes.ts'

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

/** An address that webhooks must not reach. The message is for the account, and contains no address of a name. */
class AddressRefused extends Error {}

interface SenderOptions {
  /** Of a whole attempt. */
  timeoutMilliseconds?: number
  /** Name servers; default those of the system. */
  servers?: readonly string[] | undefined
  /** The path of hosts(5). */
  hosts?: string
}

export class WebhookSender {
  readonly #allowed: BlockList | undefined
  readonly #options: Required<SenderOptions>
  #agent: Promise<Agent> | undefined

  /** @param allowed addresses that may be reached although they are private. */
  constructor(allowed: BlockList | undefined, options: SenderOptions = {}) {
    this.#allowed = allowed
    this.#options = { timeoutMilliseconds: 10_000, servers: undefined, hosts: '/etc/hosts', ...options }
  }

  /** Never rejects. `signal` ends the request. */
  async send({ url, headers, body }: WebhookRequest, signal: AbortSignal): Promise<WebhookResult> {
    try {
      this.#agent ??= this.#createAgent()
      const dispatcher = await this.#agent
      const limited = AbortSignal.any([signal, AbortSignal.timeout(this.#options.timeoutMilliseconds)])
      const { origin, pathname, search } = new URL(url)
      const options = { origin, path: pathname + search, method: 'POST', headers, body, signal: limited } as const
      // The signal ends a request only once it has a connection.
      const response = await Promise.race([dispatcher.request(options), rejectOnAbort(limited)])
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
    const connect = buildConnector({ timeout: this.#options.timeoutMilliseconds })
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
    const name = host.replace(/^\[|\]$/g, '')
    const addresses = isIP(name) ? [name] : await resolveName(name, this.#options)
    for (const address of addresses) {
      if (isAllowed(address, this.#allowed)) continue
      if (!isPublic(address))
        throw new AddressRefused(`${host} is not at a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows.`)
      if (protocol !== 'https:') throw new AddressRefused('Public addresses need https.')
    }
    return addresses[0] ?? ''
  }

  #explain(error: unknown): string {
    if (error instanceof AddressRefused) return error.message
    const { name, code, message } = error as NodeJS.ErrnoException
    if (name === 'TimeoutError') return `No response within ${this.#options.timeoutMilliseconds / 1000} seconds.`
    const failure = describeConnectionFailure('The host', error)
    return failure ?? (code === undefined ? message : `The request failed (${code}).`)
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Domains that are appended to names, as resolv.conf(5) says. */
const searchedMax = 6

/**
 * The addresses of a name, IPv4 first: of the hosts file, or from the name servers. Not with `dns.lookup`, which waits in
 * one of libuv's four threads: with a name server that does not reply, names of one account would stop all other look-ups
 * and file operations of the process.
 *
 * @throws {Error} with the code `ENOTFOUND`, or that of c-ares.
 */
async function resolveName(name: string, options: Required<SenderOptions>): Promise<string[]> {
  const { timeoutMilliseconds: milliseconds, servers, hosts } = options
  // RFC 6761, section 6.3.
  if (/(^|\.)localhost\.?$/i.test(name)) return ['127.0.0.1', '::1']
  const listed = await readHosts(hosts, name)
  if (listed.length > 0) return listed
  const resolver = new Resolver({ timeout: milliseconds / 4, tries: 2 })
  if (servers) resolver.setServers(servers)
  const timer = setTimeout(() => resolver.cancel(), milliseconds)
  try {
    const found = await resolveOnce(resolver, name)
    if (found.length > 0) return found
    for (const domain of name.endsWith('.') ? [] : await readSearchDomains()) {
      const inDomain = await resolveOnce(resolver, `${name}.${domain}`)
      if (inDomain.length > 0) return inDomain
    }
    throw Object.assign(new Error('The name has no address.'), { code: 'ENOTFOUND' })
  } finally {
    clearTimeout(timer)
  }
}

const missing = ['ENOTFOUND', 'ENODATA']

/** None if the name does not exist. */
async function resolveOnce(resolver: Resolver, name: string): Promise<string[]> {
  const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  const failed = results.find((result) => result.status === 'rejected' && !missing.includes(result.reason.code))
  if (found.length === 0 && failed?.status === 'rejected') throw failed.reason
  return found
}

/** The addresses of a name in hosts(5). */
async function readHosts(path: string, name: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const wanted = name.toLowerCase()
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    return isIP(address) && names.includes(wanted) ? address : []
  })
}

async function readSearchDomains(): Promise<string[]> {
  const text = await readFile('/etc/resolv.conf', 'utf8').catch(() => '')
  const lines = text.split('\n').map((line) => line.split(/[ \t]/).filter(Boolean))
  const last = lines.findLast(([name = '']) => name === 'search' || name === 'domain') ?? []
  return last.slice(1, 1 + searchedMax).filter((domain) => domain !== '.')
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

/** Special-purpose ranges within 2000::/3 (IANA's registry, RFC 6890); ipaddr.js knows only some of them. */
const specialRanges = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map((range) =>
  ipaddr.IPv6.parseCIDR(range),
)

/** Refuses private, loopback, link-local, unique-local, shared (CGNAT), multicast and reserved addresses. */
export function isPublic(text: string): boolean {
  // An IPv4 address that is mapped into IPv6 counts as itself.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast' || text === azureSettings) return false
  if (address instanceof ipaddr.IPv4) return true
  return address.match(ipaddr.IPv6.parse('2000::'), 3) && !specialRanges.some((range) => address.match(range))
}

/** RFC 1035, section 2.3.4; names outside of ASCII in their encoded form. */
const hostLengthMax = 253

/** Why the URL cannot be an endpoint's; `undefined` if it can. Names are resolved for each request. */
export function findUrlError(text: string, allowed: BlockList | undefined): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be an absolute URL with https'
  if (url.username !== '' || url.password !== '') return 'must not contain credentials'
  if (url.hostname.length > hostLengthMax) return `must not have a host name of more than ${hostLengthMax} characters`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // A name may resolve to an address that the operator allows.
  if (!ipaddr.isValid(host) && (url.protocol === 'https:' || allowed)) return undefined
  if (!ipaddr.isValid(host)) return 'must start with https:, since WEBHOOK_PRIVATE_ADDRESSES allows no address'
  if (isAllowed(host, allowed)) return undefined
  if (!isPublic(host)) return 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows'
  return url.protocol === 'https:' ? undefined : 'must start with https: for a public address'
}
