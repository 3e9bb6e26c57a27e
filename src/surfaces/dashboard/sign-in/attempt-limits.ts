/** Limits failed attempts at passwords and links, counted across all processes. */
import type { Request, RequestHandler, Response } from 'express'
import {
  type ClientRateLimitInfo,
  ipKeyGenerator,
  MemoryStore,
  type Options,
  rateLimit,
  type Store,
} from 'express-rate-limit'
import type { Counters } from '../../../storage/store.ts'
import { submittedForm } from '../form-body.ts'
import { html, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { sendHtml } from '../page-routes.ts'

const windowMinutes = 15

/** Failed attempts per window: sign-in by address, by user and address, and by user; links; current passwords. */
const attemptsMax = { address: 30, userFromAddress: 5, user: 50, linkFromAddress: 30, signedIn: 10 }

/** Longer input is truncated: no user has a longer email address. */
const emailLengthMax = 254

export const tooManyAttempts = `Too many attempts. Try again in ${windowMinutes} minutes.`

type Refuse = (response: Response) => Promise<void>

/** Limits failed attempts to sign in; successful ones are not counted. */
export function signInLimits(counts: AttemptCounts, refuse: Refuse): RequestHandler[] {
  const submittedEmail = (response: Response) =>
    (submittedForm(response).get('email') ?? '').trim().toLowerCase().slice(0, emailLengthMax)
  return [
    // First, so that one address cannot create any number of counters for email addresses.
    limit('address', counts, addressKey, refuse),
    limit(
      'userFromAddress',
      counts,
      (request, response) => `${addressKey(request)} ${submittedEmail(response)}`,
      refuse,
    ),
    limit('user', counts, (_request, response) => submittedEmail(response), refuse),
  ]
}

export function linkLimit(counts: AttemptCounts): RequestHandler {
  return limit('linkFromAddress', counts, addressKey, sendTooManyAttempts)
}

export function passwordLimit(counts: AttemptCounts): RequestHandler {
  return limit('signedIn', counts, (_request, response) => response.locals.page.user.id, sendTooManyAttempts)
}

function addressKey(request: Request): string {
  return ipKeyGenerator(request.ip ?? '')
}

function limit(
  name: keyof typeof attemptsMax,
  counts: AttemptCounts,
  keyGenerator: (request: Request, response: Response) => string,
  refuse: Refuse,
): RequestHandler {
  return rateLimit({
    windowMs: windowMinutes * 60 * 1000,
    limit: attemptsMax[name],
    store: new SharedAttempts(`attempts-${name}`, counts),
    keyGenerator,
    skipSuccessfulRequests: true,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: (_request, response) => refuse(response),
  })
}

async function sendTooManyAttempts(response: Response): Promise<void> {
  const title = 'Too many attempts'
  const body = html`<h1>${title}</h1> ${notice('warning', `${tooManyAttempts} No changes were made.`)}`
  await sendHtml(response, 429, renderPlainPage(title, body))
}

export interface AttemptCounts {
  counters: Counters
  /** Hides from the store's readers whose attempts a counter counts. */
  pseudonym(text: string): string
}

/** Counts in the store for all processes; in this process's memory while the store fails. */
class SharedAttempts implements Store {
  readonly localKeys = false
  readonly prefix: string
  readonly #counts: AttemptCounts
  readonly #memory = new MemoryStore()
  #windowMilliseconds = 0

  /** @param prefix separates the counters of different limits. */
  constructor(prefix: string, counts: AttemptCounts) {
    this.prefix = prefix
    this.#counts = counts
  }

  init(options: Options): void {
    this.#windowMilliseconds = options.windowMs
    this.#memory.init(options)
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    try {
      const { count, millisecondsLeft } = await this.#add(key, 1)
      return { totalHits: count, resetTime: new Date(Date.now() + millisecondsLeft) }
    } catch {
      return this.#memory.increment(key)
    }
  }

  async decrement(key: string): Promise<void> {
    await this.#add(key, -1).catch(() => this.#memory.decrement(key))
  }

  async resetKey(key: string): Promise<void> {
    await this.#add(key, -(2 ** 31)).catch(() => this.#memory.resetKey(key))
  }

  #add(key: string, amount: number) {
    const { counters, pseudonym } = this.#counts
    return counters.add(`${this.prefix}:${pseudonym(key)}`, amount, this.#windowMilliseconds)
  }
}
