/** Limits of failed attempts at passwords and links, counted over all processes. */
import type { Request, RequestHandler, Response } from 'express'
import { ipKeyGenerator, rateLimit } from 'express-rate-limit'
import { notice } from './elements.ts'
import { formOf } from './forms.ts'
import { html } from './html.ts'
import { sendDocument } from './serve.ts'
import { type AttemptCounts, SharedAttempts } from './shared-attempts.ts'
import { plainDocument } from './shell.ts'

const limitMinutes = 15

/** Failed attempts within 15 minutes: to sign in from one address, from one for one user, and for one user; others. */
const attemptsMax = { address: 30, userFromAddress: 5, user: 50, linkFromAddress: 30, signedIn: 10 }

/** What is sent as an e-mail address is remembered this far: a longer one is nobody's. */
const emailLengthMax = 254

export const tooMany = `Too many attempts. Try again in ${limitMinutes} minutes.`

type Refuse = (response: Response) => Promise<void>

/** Refuse attempts to sign in beyond the limits; those that succeed are not counted. */
export function signInLimits(counts: AttemptCounts, refuse: Refuse): RequestHandler[] {
  const userOf = (response: Response) =>
    (formOf(response).get('email') ?? '').trim().toLowerCase().slice(0, emailLengthMax)
  return [
    // The first, so that one address cannot have any number of e-mail addresses remembered.
    limit('address', counts, addressOf, refuse),
    limit('userFromAddress', counts, (request, response) => `${addressOf(request)} ${userOf(response)}`, refuse),
    limit('user', counts, (_request, response) => userOf(response), refuse),
  ]
}

/** Refuses whoever tries too many links from one address. */
export function linkLimit(counts: AttemptCounts): RequestHandler {
  return limit('linkFromAddress', counts, addressOf, refusePlainly)
}

/** Refuses whoever guesses at the present password of the user who is signed in. */
export function passwordLimit(counts: AttemptCounts): RequestHandler {
  return limit('signedIn', counts, (_request, response) => response.locals.visit.user.id, refusePlainly)
}

function addressOf(request: Request): string {
  return ipKeyGenerator(request.ip ?? '')
}

function limit(
  name: keyof typeof attemptsMax,
  counts: AttemptCounts,
  keyGenerator: (request: Request, response: Response) => string,
  refuse: Refuse,
): RequestHandler {
  return rateLimit({
    windowMs: limitMinutes * 60 * 1000,
    limit: attemptsMax[name],
    store: new SharedAttempts(`attempts-${name}`, counts),
    keyGenerator,
    skipSuccessfulRequests: true,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: (_request, response) => refuse(response),
  })
}

async function refusePlainly(response: Response): Promise<void> {
  const title = 'Too many attempts'
  const body = html`<h1>${title}</h1> ${notice('warning', `${tooMany} Nothing was changed.`)}`
  await sendDocument(response, 429, plainDocument(title, body))
}
