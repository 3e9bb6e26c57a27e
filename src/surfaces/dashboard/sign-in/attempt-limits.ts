/** Limits failed attempts at passwords, codes and links, counted across all processes. */
import type { Request, RequestHandler, Response } from 'express'
import {
  type ClientRateLimitInfo,
  ipKeyGenerator,
  MemoryStore,
  type Options,
  rateLimit,
  type Store,
} from 'express-rate-limit'
import type { User } from '../../../domain/accounts/user.ts'
import type { Action } from '../../../domain/audit-log/audit-log.ts'
import type { RefusalMessage } from '../../../domain/audit-log/refusals.ts'
import type { Counters } from '../../../storage/store.ts'
import type { Dependencies } from '../dependencies.ts'
import { submittedForm } from '../form-body.ts'
import { html, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { sendHtml } from '../page-routes.ts'

const windowMinutes = 15

/** Failed attempts per window. */
const attemptsMax = {
  address: 30,
  userFromAddress: 5,
  user: 50,
  linkFromAddress: 30,
  /** Of all links: many people may share an address. */
  linksFromAddress: 300,
  providerFromAddress: 30,
  secondFactor: 5,
  /** Guesses of a signed-in user at the current password. */
  signedIn: 10,
}

/** Longer input is truncated: no user has a longer email address. */
const emailLengthMax = 254
/** No link is longer. */
const linkLengthMax = 254

const tooManyRequests = 429

export const tooManyAttempts = `Too many attempts. Try again in ${windowMinutes} minutes.`

type Refuse = (response: Response) => Promise<void>

/** Finds the user whom a limit protects, for the audit log. */
type FindUser = (response: Response) => User | undefined | Promise<User | undefined>

/** Limits failed attempts to sign in; successful ones are not counted. */
export function signInLimits(deps: Dependencies, refuse: Refuse): RequestHandler[] {
  const submittedEmail = (response: Response) =>
    (submittedForm(response).get('email') ?? '').trim().toLowerCase().slice(0, emailLengthMax)
  const findUser: FindUser = (response) => deps.users.findByEmail(submittedEmail(response))
  const emailFromAddress = (request: Request, response: Response) =>
    `${addressKey(request)} ${submittedEmail(response)}`
  return [
    // First, so that one address cannot create any number of counters for email addresses.
    limit(deps, 'address', addressKey, findUser, refuse),
    limit(deps, 'userFromAddress', emailFromAddress, findUser, refuse),
    limit(deps, 'user', (_request, response) => submittedEmail(response), findUser, refuse),
  ]
}

/** Limits wrong codes. By user over all addresses, because they were preceded by the user's password or link. */
export function codeLimits(deps: Dependencies, findUser: (response: Response) => User): RequestHandler[] {
  return [
    limit(deps, 'address', addressKey, findUser),
    limit(deps, 'secondFactor', (_request, response) => findUser(response).id, findUser),
  ]
}

/** Limits sign-ins by the identity provider that fail: for each, the service may wait for the provider. */
export function providerLimit(deps: Dependencies): RequestHandler {
  return limit(deps, 'providerFromAddress', addressKey, () => undefined)
}

/** Limits failed requests with links, for each link and address: failures with one link do not block others. */
export function linkLimits(deps: Dependencies): RequestHandler[] {
  const linkFromAddress = (request: Request) => `${addressKey(request)} ${request.path.slice(0, linkLengthMax)}`
  return [
    // First, so that one address cannot create any number of counters.
    limit(deps, 'linksFromAddress', addressKey, () => undefined),
    limit(deps, 'linkFromAddress', linkFromAddress, () => undefined),
  ]
}

/** Limits guesses of a signed-in user at the current password. */
export function passwordLimit(deps: Dependencies): RequestHandler {
  const findUser = ({ locals }: Response): User => locals.page.user
  return limit(deps, 'signedIn', (_request, response) => findUser(response).id, findUser)
}

function addressKey(request: Request): string {
  return ipKeyGenerator(request.ip ?? '')
}

function limit(
  deps: Dependencies,
  name: keyof typeof attemptsMax,
  keyGenerator: (request: Request, response: Response) => string,
  findUser: FindUser,
  refuse: Refuse = sendTooManyAttempts,
): RequestHandler {
  return rateLimit({
    windowMs: windowMinutes * 60 * 1000,
    limit: attemptsMax[name],
    store: new SharedAttempts(`attempts-${name}`, deps.attempts),
    keyGenerator,
    skipSuccessfulRequests: true,
    // An attempt that one limit refuses tests no password. If the others counted it, attempts at one user would keep
    // other users from signing in at the same address.
    requestWasSuccessful: (_request, { statusCode }) => statusCode < 400 || statusCode === tooManyRequests,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: async (request, response) => {
      recordRefusal(deps, 'sign-in rate limited', request.ip, await findUser(response), 'user.rateLimited')
      await refuse(response)
    },
  })
}

/** @param user whose account's audit log records the action. */
export function recordRefusal(
  { refusals }: Dependencies,
  message: RefusalMessage,
  client = '',
  user?: User | undefined,
  action?: Action,
): void {
  const audit = user && action && { action, accountId: user.accountId, subject: { id: user.id, name: user.name } }
  refusals.record({ message, client, audit })
}

async function sendTooManyAttempts(response: Response): Promise<void> {
  const title = 'Too many attempts'
  const body = html`<h1>${title}</h1> ${notice('warning', `${tooManyAttempts} No changes were made.`)}`
  await sendHtml(response, tooManyRequests, renderPlainPage(title, body))
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
