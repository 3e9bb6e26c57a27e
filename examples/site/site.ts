/** A small website for the examples: pages with broken links, and a part for customers who sign in. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CustomerCounts, type CustomerOptions, Customers, send } from './customers.ts'
import { linkList, page } from './pages.ts'

export interface Site {
  url: string
  /** Of one customer, or of all. */
  counts(customer?: string): CustomerCounts
  stop(): Promise<void>
}

export interface SiteSecrets {
  /** Required by the pages below `/members`, as `Authorization: Bearer`. */
  token: string
  /** Password of the customer `ada`, for the form at `/sign-in`. */
  password: string
}

const pages: Record<string, string> = {
  '/': page(
    'Lanterns &amp; Kettles',
    linkList(['/products', '/news', '/team', '/members', '/orders', 'mailto:shop@example.com']),
  ),
  '/products': page('Products', linkList(['/products/lantern', '/products/kettle', '/products/teapot', '/'])),
  '/products/lantern': page('Lantern', linkList(['/products'])),
  '/products/kettle': page('Kettle', linkList(['/products?sort=price&amp;page=2', '/products'])),
  '/news': page('News', linkList(['/products/lantern', 'https://example.com/elsewhere'])),
  '/about': page('About us', linkList(['/'])),
  '/members': page('Members', linkList(['/members/offers'])),
  '/members/offers': page('Offers', linkList(['/members'])),
}

const moved: Record<string, string> = { '/team': '/about' }

/**
 * Serves the site on localhost. `/products/teapot` is linked but does not exist; `/news` responds with 503 to every other
 * request.
 *
 * @param port 0 for any free port.
 */
export async function startSite(
  { token, password }: SiteSecrets,
  port = 0,
  options: CustomerOptions = {},
): Promise<Site> {
  const customers = new Customers(password, options)
  let newsRequests = 0
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (await customers.handle(request, response)) return
    const [pathname = '/'] = (request.url ?? '/').split('?')
    if (pathname.startsWith('/members') && request.headers.authorization !== `Bearer ${token}`) {
      response.setHeader('WWW-Authenticate', 'Bearer')
      return send(response, 401, page('Members only', ''))
    }
    if (pathname === '/news' && ++newsRequests % 2 === 1) {
      return send(response, 503, page('Too busy at the moment', ''))
    }
    const target = moved[pathname]
    if (target !== undefined) return send(response.setHeader('Location', target), 301, '')
    const found = pages[pathname]
    return send(response, found === undefined ? 404 : 200, found ?? page('No such page', ''))
  }
  // Errors of aborted requests are ignored.
  const server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts: (customer) => customers.counts(customer),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
