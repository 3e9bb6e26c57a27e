/** The signed-in part of the example website: a form, a session cookie, and a page of orders. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Chance } from './chance.ts'
import { page } from './pages.ts'
import { type SessionOptions, Sessions } from './sessions.ts'
import { type SignInOptions, SignIns } from './sign-ins.ts'

/** The only customer, unless the options name others. */
export const customerName = 'ada'

/** What makes sessions end and signing in harder. By default, sessions last, and a password is enough. */
export interface CustomerOptions extends SessionOptions, SignInOptions {
  /** Decides by chance, the same way each time. */
  seed?: string
}

/** Counted since the site was started. */
export interface CustomerCounts {
  /** Successful sign-ins. */
  signIns: number
  /** Sessions that have ended other than by signing out. */
  endedSessions: number
  /** Requests for the page of orders. */
  orderRequests: number
}

const orders = [
  ['L-1042', '2026-03-02', 'Storm lantern', '€ 39.00'],
  ['K-0877', '2026-06-18', 'Whistling kettle', '€ 54.50'],
  ['L-1316', '2026-10-09', 'Paper lantern, set of three', '€ 18.90'],
]

export class Customers {
  readonly #sessions: Sessions
  readonly #signIns: SignIns
  /** Names of the customers, one for each successful sign-in. */
  readonly #signedIn: string[] = []
  #orderRequests = 0

  constructor(password: string, options: CustomerOptions = {}) {
    const chance = new Chance(options.seed ?? 'lanterns and kettles')
    this.#sessions = new Sessions(options, chance)
    this.#signIns = new SignIns(password, { customers: [customerName], ...options }, chance)
  }

  /** @param customer counts only theirs, apart from the requests. */
  counts(customer?: string): CustomerCounts {
    const count = (names: readonly string[]) => names.filter((name) => name === (customer ?? name)).length
    return {
      signIns: count(this.#signedIn),
      endedSessions: count(this.#sessions.ended),
      orderRequests: this.#orderRequests,
    }
  }

  /** Handles the request. Returns false if it is for another part of the site. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    switch (`${request.method} ${request.url}`) {
      case 'GET /sign-in':
        send(response, 200, signInPage())
        return true
      case 'POST /sign-in':
        await this.#begin(request, response)
        return true
      case 'GET /sign-in/proof': {
        const asked = this.#signIns.page(cookieOf(request, 'signIn'))
        if (asked === undefined) redirect(response, '/sign-in')
        else send(response, 200, asked)
        return true
      }
      case 'POST /sign-in/proof':
        await this.#prove(request, response)
        return true
      case 'GET /orders': {
        this.#orderRequests += 1
        const customer = this.#sessions.customerOf(cookieOf(request, 'session'))
        if (customer === undefined) redirect(response, '/sign-in')
        else send(response, 200, ordersPage(customer))
        return true
      }
      case 'POST /sign-out':
        this.#sessions.signOut(cookieOf(request, 'session'))
        redirect(response.setHeader('Set-Cookie', `${cookie('session', '')}; Max-Age=0`), '/')
        return true
      default:
        return false
    }
  }

  async #begin(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(request))
    const id = this.#signIns.begin(form.get('userName') ?? '', form.get('password') ?? '')
    if (id === undefined) return send(response, 403, signInPage('The user name or the password is wrong.'))
    this.#continue(response, id)
  }

  async #prove(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = cookieOf(request, 'signIn')
    const code = new URLSearchParams(await text(request)).get('code') ?? ''
    if (this.#signIns.answer(id, code)) return this.#continue(response, id)
    const asked = this.#signIns.page(id, 'This code is wrong or too old.')
    if (asked === undefined) redirect(response, '/sign-in')
    else send(response, 403, asked)
  }

  /** Asks for the next proof, or starts the session. */
  #continue(response: ServerResponse, id: string): void {
    const customer = this.#signIns.complete(id)
    if (customer === undefined) {
      return redirect(response.setHeader('Set-Cookie', cookie('signIn', id)), '/sign-in/proof')
    }
    this.#signedIn.push(customer)
    redirect(response.setHeader('Set-Cookie', cookie('session', this.#sessions.start(customer))), '/orders')
  }
}

function cookieOf({ headers }: IncomingMessage, name: 'session' | 'signIn'): string {
  const cookies = (headers.cookie ?? '').split('; ').map((each) => each.split('='))
  return cookies.find(([each]) => each === name)?.[1] ?? ''
}

function cookie(name: 'session' | 'signIn', value: string): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax`
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

function ordersPage(customer: string): string {
  const rows = orders.map((order) => `<tr>${order.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
  return page(
    'Your orders',
    `<table>
<thead><tr><th>Order</th><th>Date</th><th>Item</th><th>Total</th></tr></thead>
<tbody>${rows.join('\n')}</tbody>
</table>
<form method="post" action="/sign-out"><p>You are signed in as ${customer}. <button>Sign out</button></p></form>`,
  )
}

export function send(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' }).end(html)
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { Location: location }).end()
}
