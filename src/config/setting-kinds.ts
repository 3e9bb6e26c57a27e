/** Kinds of settings: each reads the text of an environment variable, or refuses it in one sentence. */
import { type BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'

/** An invalid configuration. The message is one sentence that names the setting and says what to set. */
export class ConfigError extends Error {}

export interface Setting<Value> {
  /** For the table in docs/configuration.md. */
  description: string
  /** As text, as it would be set in the environment. */
  default: string | undefined
  /** @throws {ConfigError} */
  read(text: string, name: string): Value
}

/** A setting without a default. */
export const optional = <Value>(
  description: string,
  read: (text: string, name: string) => Value,
): Setting<Value | undefined> => ({ description, default: undefined, read })

export const text = (description: string, value: string) => ({
  description,
  default: value,
  read: (text: string) => text,
})

export const port = (description: string, value: string): Setting<number> => ({
  description,
  default: value,
  read: (text, name) => {
    // Kubernetes sets such a variable for each Service, in every pod of its namespace.
    if (!/^(tcp|udp|sctp):\/\//.test(text)) return readInteger(text, name, 0, 65535)
    const service = name
      .replace(/_PORT$/, '')
      .toLowerCase()
      .replaceAll('_', '-')
    throw new ConfigError(
      `${name} is "${text}", which Kubernetes sets for its Service ${service}: set enableServiceLinks to false in the pod, or ${name} to a port.`,
    )
  },
})

export const integer = (description: string, value: string, min: number, max: number): Setting<number> => ({
  description: `${description} From ${min} to ${max}.`,
  default: value,
  read: (text, name) => readInteger(text, name, min, max),
})

export const directory = (description: string, value: string): Setting<string> => ({
  description,
  default: value,
  read: (text) => resolve(text),
})

export const publicUrl = (surface: string, more = '') =>
  optional(`Public URL of the ${surface} when it is behind a proxy, without a path.${more}`, (text, name) => {
    const url = URL.parse(text)
    if (!url || !/^https?:$/.test(url.protocol))
      throw new ConfigError(`${name} is "${text}": set it to a URL that starts with http:// or https://.`)
    // Links and cookies are for the whole host.
    if (url.href === `${url.origin}/`) return text.replace(/\/$/, '')
    throw new ConfigError(`${name} is "${text}": give the ${surface} a host name of its own, such as ${url.origin}.`)
  })

/** A URL that may contain a password or token, so that errors do not repeat it. */
export const secretUrl = (description: string, pattern: RegExp, format: string) =>
  optional(description, (text, name) => {
    if (URL.canParse(text) && pattern.test(text)) return text
    throw new ConfigError(`${name} is invalid: set it to a URL ${format}.`)
  })

/** The texts between commas. */
export function splitList(text: string): string[] {
  return text.split(',').flatMap((item) => item.trim() || [])
}

export function readList(
  text: string,
  name: string,
  isValid: (item: string) => boolean,
  advice: string,
): readonly string[] {
  const invalid = splitList(text).find((item) => !isValid(item))
  if (invalid === undefined) return splitList(text)
  throw new ConfigError(`${name} contains "${invalid}": set it to ${advice}.`)
}

export function readInteger(text: string, name: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new ConfigError(`${name} is "${text}": set it to a whole number from ${min} to ${max}.`)
}

export function addRange(ranges: BlockList, range: string, name: string): void {
  const [address = '', prefix] = range.split('/')
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
  const bitsMax = family === 'ipv4' ? 32 : 128
  const bits = Number(prefix ?? bitsMax)
  if (isIP(address) === 0 || !/^\d{1,3}$/.test(prefix ?? '0') || bits > bitsMax) {
    throw new ConfigError(`${name} contains "${range}": set it to IP addresses or ranges such as 10.1.0.0/16.`)
  }
  ranges.addSubnet(address, bits, family)
}
