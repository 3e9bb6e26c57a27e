/** A small website with mistakes, for the workflow check-links to find. Nothing of it is on the internet. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Site {
  url: string
  stop(): Promise<void>
}

const pages: Record<string, string> = {
  '/': page('Lanterns & Kettles', ['/products', '/news', '/team', '/members', 'mailto:shop@example.com']),
  '/products': page('Products', ['/products/lantern', '/products/kettle', '/products/teapot', '/']),
  '/products/lantern': page('Lantern', ['/products']),
  '/products/kettle': page('Kettle', ['/products?sort=price&amp;page=2', '/products']),
  '/news': page('News', ['/products/lantern', 'https://example.com/elsewhere']),
  '/about': page('About us', ['/']),
  '/members': page('Members', ['/members/offers']),
  '/members/offers': page('Offers', ['/members']),
}

const moved: Record<string, string> = { '/team': '/about' }

/**
 * Serves the site on this machine alone. The pages below `/members` answer 401 without `Authorization: Bearer` and the
 * token; `/products/teapot` is linked to and does not exist; `/news` is overloaded at every other request.
 */
export async function startSite(token: string, port = 0): Promise<Site> {
  let newsRequests = 0
  const server = createServer((request, response) => {
    const [pathname = '/'] = (request.url ?? '/').split('?')
    if (pathname.startsWith('/members') && request.headers.authorization !== `Bearer ${token}`) {
      response.setHeader('WWW-Authenticate', 'Bearer')
      return answer(response, 401, page('Members only', []))
    }
    if (pathname === '/news' && ++newsRequests % 2 === 1) {
      return answer(response, 503, page('Too busy at the moment', []))
    }
    const target = moved[pathname]
    if (target !== undefined) return answer(response.setHeader('Location', target), 301, '')
    const found = pages[pathname]
    return answer(response, found === undefined ? 404 : 200, found ?? page('No such page', []))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function page(title: string, links: string[]): string {
  const items = links.map((link) => `<li><a href="${link}">${link}</a></li>`)
  return `<!doctype html><title>${title}</title><h1>${title}</h1><ul>${items.join('')}</ul>\n`
}

function answer(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8' }).end(html)
}
