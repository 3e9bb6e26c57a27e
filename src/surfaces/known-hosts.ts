/**
 * Checks the Host of requests for pages. A website can let its own name resolve to the service's address (DNS rebinding);
 * for a browser, the service's pages then belong to that website, which may read them.
 */
import { isIP } from 'node:net'
import type { RequestHandler } from 'express'
import type { Config } from '../config/config.ts'
import { type Surface, surfaces } from './roles.ts'

/** A year, for this host alone: other subdomains may have other operators. */
export const transportSecurity = 'max-age=31536000'

export function isSecure(config: Config, surface: Surface): boolean {
  return config[surfaces[surface].url]?.startsWith('https:') ?? false
}

/** Responds with 421 to an unknown Host. With a surface behind https, also asks browsers to use https only. */
export function checkHost(config: Config, surface?: Surface): RequestHandler {
  const isKnownHost = hostCheck(config)
  const secure = surface !== undefined && isSecure(config, surface)
  return function checkHost({ headers: { host } }, response, next) {
    if (secure) response.setHeader('Strict-Transport-Security', transportSecurity)
    if (isKnownHost(host)) return next()
    const settings = [...(surface ? [surfaces[surface].url] : []), 'ALLOWED_HOSTS'].join(' or ')
    response.status(421).set({ 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' })
    response.send(
      `This service is not known by the host name of this request. Its operator can add it to ${settings}.\n`,
    )
  }
}

/** Returns whether the service is known by the value of a Host header. */
export function hostCheck(
  config: Pick<Config, 'HOST' | 'ALLOWED_HOSTS' | (typeof surfaces)[Surface]['url']>,
): (host: string | undefined) => boolean {
  const publicUrls = Object.values(surfaces).flatMap(({ url }) => config[url] ?? [])
  const known = new Set([
    ...publicUrls.map((url) => new URL(url).hostname),
    ...(config.ALLOWED_HOSTS ?? []),
    config.HOST,
  ])
  return (host) => isKnown(host, known)
}

/**
 * Names that no website can own need no setting: addresses, which health checks use, localhost, and names without a dot,
 * such as those of containers. HTTP/1.0, which some health checks speak, has no Host; browsers always send one.
 */
function isKnown(host: string | undefined, known: ReadonlySet<string>): boolean {
  if (host === undefined) return true
  const hostname = URL.parse(`http://${host}`)?.hostname.replace(/\.$/, '')
  if (!hostname) return false
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[')
  return isAddress || !hostname.includes('.') || hostname.endsWith('.localhost') || known.has(hostname)
}
