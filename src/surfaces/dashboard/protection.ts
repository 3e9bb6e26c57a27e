/** What keeps other sites and their scripts away from the dashboard. */
import type { IncomingMessage } from 'node:http'
import type { Request, RequestHandler } from 'express'
import helmet from 'helmet'

/** @param secure whether readers come by https. */
export function securityHeaders(secure: boolean): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        // The style sheet has its icons within itself.
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        baseUri: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // For this host alone: what runs on others of its domain is not the dashboard's to decide.
    strictTransportSecurity: secure && { includeSubDomains: false },
    // Not `no-referrer`: browsers then send forms with `Origin: null`.
    referrerPolicy: { policy: 'same-origin' },
    xFrameOptions: { action: 'deny' },
  })
}

/**
 * Refuses what another site's page makes the browser send. Browsers say where a request comes from by
 * `Sec-Fetch-Site` (Fetch Metadata), and by `Origin` where the dashboard is reached by plain HTTP from another machine.
 * A form that says neither is not a browser's, and has no business with cookies.
 *
 * @param publicOrigin the dashboard's own, when it is behind a proxy.
 */
export function crossSiteRefusal(publicOrigin: string | undefined): (request: Request) => boolean {
  return (request) => {
    if (request.method === 'GET' || request.method === 'HEAD') return false
    const site = headerOf(request, 'sec-fetch-site')
    if (site !== undefined) return site !== 'same-origin' && site !== 'none'
    const origin = headerOf(request, 'origin')
    if (origin === undefined) return true
    if (publicOrigin !== undefined) return origin !== publicOrigin
    const from = URL.parse(origin)?.host
    return !from || from !== request.headers.host
  }
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}
