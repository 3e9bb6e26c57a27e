/** Security headers and the protection against cross-site request forgery. */
import type { Request, RequestHandler } from 'express'
import helmet from 'helmet'

export function securityHeaders(secure: boolean): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        // Pico's style sheet embeds its icons as data URLs.
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        baseUri: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // For this host alone: other subdomains may have other operators.
    strictTransportSecurity: secure && { includeSubDomains: false },
    // Not `no-referrer`, with which browsers submit forms with `Origin: null`.
    referrerPolicy: { policy: 'same-origin' },
    xFrameOptions: { action: 'deny' },
  })
}

/**
 * Whether another site's page made the browser send the request. Browsers state the initiator in `Sec-Fetch-Site` (Fetch
 * Metadata), and in `Origin` where the dashboard is reached over plain HTTP from another machine. A form submission with
 * neither header does not come from a browser and is treated as cross-site.
 *
 * @param publicOrigin the dashboard's origin behind a proxy.
 */
export function isCrossSite({ method, headers }: Request, publicOrigin: string | undefined): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  const site = [headers['sec-fetch-site']].flat()[0]
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const { origin } = headers
  if (origin === undefined) return true
  if (publicOrigin !== undefined) return origin !== publicOrigin
  const host = URL.parse(origin)?.host
  return !host || host !== headers.host
}
