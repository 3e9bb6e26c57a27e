/** The signed-in part of the example website: a form, a session cookie, and a page of orders. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { page } from './pages.ts'

/** The only customer. */
export const customerName = 'ada'

const orders = [
  ['L-1042', '2026-03-02', 'Storm lantern', '€ 39.00'],
  ['K-0877', '2026-06-18', 'Whistling kettle', '€ 54.50'],
  ['L-1316', '2026-10-09', 'Paper lantern, set of three', '€ 18.90'],
]

export class Customers {
  readonly #password: string
  /** Open sessions, by cookie value. */
  readonly #sessions = new Set<string>()
  #signIns = 0

  constructor(password: string) {
    this.#password = password
  }

  /** Number of successful sign-ins. */
  get signIns(): number {
    return this.#signIns
  }

  /** Handles the request. Returns false if it is for another part of the site. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    switch (`${request.method} ${request.url}`) {
      case 'GET /sign-in':
        send(response, 200, signInPage())
        return true
      case 'POST /sign-in':
        await this.#signIn(request, response)
        return true
      case 'GET /orders':
        if (this.#sessions.has(sessionOf(request))) send(response, 200, ordersPage())
        else redirect(response, '/sign-in')
        return true
      case 'POST /sign-out':
        this.#sessions.delete(sessionOf(request))
        redirect(response.setHeader('Set-Cookie', `${cookie('')}; Max-Age=0`), '/')
        return true
      default:
        return false
    }
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(request))
    if (form.get('userName') !== customerName || form.get('password') !== this.#password) {
      return send(response, 403, signInPage('The user name or the password is wrong.'))
    }
    const session = randomBytes(16).toString('hex')
    this.#sessions.add(session)
    this.#signIns += 1
    redirect(response.setHeader('Set-Cookie', cookie(session)), '/orders')
  }
}

function sessionOf({ headers }: IncomingMessage): string {
  return /(?:^|; )session=([^;]*)/.exec(headers.cookie ?? '')?.[1] ?? ''
}

function cookie(session: string): string {
  return `session=${session}; Path=/; HttpOnly; SameSite=Lax`
}

function signInPage(refusal?: string): string {
  return page(
    'Sign in',
    `${refusal === undefined ? '' : `<p role="alert">${refusal}</p>`}
<form method="post" action="/sign-in">
<label>User name <input name="userName" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form>`,
  )
}

function ordersPage(): string {
  const rows = orders.map((order) => `<tr>${order.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
  return page(
    'Your orders',
    `<table>
<thead><tr><th>Order</th><th>Date</th><th>Item</th><th>Total</th></tr></thead>
<tbody>${rows.join('\n')}</tbody>
</table>
<form method="post" action="/sign-out"><p>You are signed in as ${customerName}. <button>Sign out</button></p></form>`,
  )
}

export function send(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' }).end(html)
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { Location: location }).end()
}
