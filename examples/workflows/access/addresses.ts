/**
 * Confines the examples to public addresses, whatever URL a caller sends. Otherwise callers could reach services that
 * only the worker can reach, such as a cloud's metadata server.
 */
import dns from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import type { RequestInit, Response } from 'undici'

/** Addresses or `address:port`, separated by commas, that the examples may reach although they are not public. */
const exceptions = new Set((process.env.EXAMPLE_PRIVATE_ADDRESSES ?? '').split(',').map((text) => text.trim()))

/** A public address of Azure that serves a virtual machine's settings. */
const azureSettings = '168.63.129.16'

/**
 * Resolves the host and checks all of its addresses. Connect to the returned address: the name may resolve to another one
 * a moment later (DNS rebinding).
 *
 * @throws if an address is not public and is not in EXAMPLE_PRIVATE_ADDRESSES.
 */
export async function resolvePublic(host: string, port: number): Promise<string> {
  // An IPv6 address in a URL has brackets.
  const addresses = await dns.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
  const refused = addresses.find(({ address }) => !isPublic(address) && !isException(address, port))
  if (refused) {
    const meaning = refused.address === host ? 'is not a public address' : `resolves to ${refused.address}`
    throw new Error(
      `${host} ${meaning}: EXAMPLE_PRIVATE_ADDRESSES lists the private addresses that examples may reach.`,
    )
  }
  return addresses[0]?.address ?? ''
}

export function portOf({ port, protocol }: { port?: string; protocol: string }): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

function isPublic(text: string): boolean {
  // An IPv4 address that is mapped into IPv6 counts as itself.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast' || text === azureSettings) return false
  return address instanceof ipaddr.IPv4 || address.match(ipaddr.IPv6.parse('2000::'), 3)
}

function isException(address: string, port: number): boolean {
  return exceptions.has(address) || exceptions.has(`${address.includes(':') ? `[${address}]` : address}:${port}`)
}

/** `fetch` for public addresses. Each redirect is checked, too. */
export async function fetchPublic(url: string | URL, init?: RequestInit): Promise<Response> {
  client ??= createClient()
  const { dispatcher, fetch } = await client
  return fetch(url, { ...init, dispatcher }).catch((error: Error) => {
    // "fetch failed" says less than its cause.
    throw error.cause ?? error
  })
}

let client: ReturnType<typeof createClient> | undefined

/** Loads undici at the first use: it takes 30 MB. */
async function createClient() {
  const { Agent, buildConnector, fetch } = await import('undici')
  const connect = buildConnector({})
  const dispatcher = new Agent({
    connect(options, callback) {
      resolvePublic(options.hostname, portOf(options)).then(
        // TLS still verifies the name, which is in `host`.
        (address) => connect({ ...options, hostname: address }, callback),
        (error: Error) => callback(error, null),
      )
    },
  })
  return { dispatcher, fetch }
}
