/** Registers pages on Express: security, sessions and form parsing before the handler, rendering after it. */
import { randomUUID } from 'node:crypto'
import type { Express, Request, RequestHandler, Response } from 'express'
import type { SessionData } from 'express-session'
import helmet from 'helmet'
import { compress, compresses } from '../../contract/representations.ts'
import type { Account } from '../../domain/accounts/accounts.ts'
import { includesRole, type Role } from '../../domain/accounts/roles.ts'
import { toActor } from '../../domain/accounts/user.ts'
import type { Dependencies } from './dependencies.ts'
import { readFormFields, readFormFile, submittedFile, submittedForm } from './form-body.ts'
import { type Html, heading, html } from './html.ts'
import { renderPage } from './layout.ts'
import {
  type Page,
  PageForbidden,
  type PageHandler,
  PageNotFound,
  type PageRequest,
  RoleRequired,
  type StreamHandler,
} from './page-handler.ts'
import { neededRole, type PublicPath, type UserPath } from './page-roles.ts'
import { clientOf, sessionHandler, startSession } from './session.ts'

/** In bytes: the variables of a run as the Execution API accepts them, form-encoded. */
const formBytesMax = 4 * 1024 * 1024
const publicFormBytesMax = 64 * 1024

/** Precedes every handler that can fail, so that responses and log lines of failures share the id. */
export function assignRequestId(): RequestHandler {
  return (_request, response, next) => {
    response.set('X-Request-Id', randomUUID())
    next()
  }
}

export function protectPages({ publicUrl, sessions, sessionSecrets, port }: Dependencies): RequestHandler[] {
  const secure = publicUrl?.startsWith('https:') ?? false
  const publicOrigin = publicUrl && new URL(publicUrl).origin
  return [
    (_request, response, next) => {
      response.set('Cache-Control', 'no-store')
      next()
    },
    securityHeaders(secure),
    (request, _response, next) => {
      // PostgreSQL refuses U+0000 even in a query's parameters.
      if (request.url.includes('%00')) throw new PageNotFound()
      // The public address decides the scheme; the proxy need not send the header.
      if (secure) request.headers['x-forwarded-proto'] = 'https'
      if (isCrossSite(request, publicOrigin)) {
        throw new PageForbidden('This form was submitted from another site. No changes were made.')
      }
      next()
    },
    sessionHandler({ sessions, secrets: sessionSecrets, secure, port }),
  ]
}

export type PublicHandler = (request: Request, response: Response, deps: Dependencies) => Promise<void>

export function publicPages(app: Express, deps: Dependencies) {
  const handle =
    (handler: PublicHandler): RequestHandler =>
    (request, response) =>
      handler(request, response, deps)
  return {
    get: (path: PublicPath<'GET'>, handler: PublicHandler, ...limits: RequestHandler[]) =>
      app.get(path, ...limits, handle(handler)),
    post: (path: PublicPath<'POST'>, handler: PublicHandler, ...limits: RequestHandler[]) =>
      app.post(path, ...readFormFields(publicFormBytesMax), ...limits, handle(handler)),
    /** @param checks precede the body, which may therefore be as large as a user's. */
    postAfter: (path: PublicPath<'POST'>, checks: RequestHandler[], handler: PublicHandler) =>
      app.post(path, ...checks, ...readFormFields(formBytesMax), handle(handler)),
  }
}

/**
 * Pages of signed-in users with the role of the table; others are redirected to the sign-in page, or refused, before their
 * request body is read.
 */
export function userPages(app: Express, deps: Dependencies) {
  const requireUser = <Method extends 'GET' | 'POST'>(method: Method, path: UserPath<Method>, bytesMax?: number) =>
    requireRole(deps, neededRole(method, path), bytesMax)
  const handle =
    (handler: PageHandler): RequestHandler =>
    async (_request, response) => {
      const form = submittedForm(response)
      const page: PageRequest = { ...response.locals.page, form, file: submittedFile(response) }
      requireShownEnvironment(page)
      const result = await handler(page, deps)
      if ('location' in result) redirect(response, result.location)
      else await sendPage(response, page, result)
    }
  return {
    get: (path: UserPath<'GET'>, handler: PageHandler) => app.get(path, requireUser('GET', path), handle(handler)),
    post: (path: UserPath<'POST'>, handler: PageHandler, ...limits: RequestHandler[]) =>
      app.post(path, requireUser('POST', path), ...readFormFields(formBytesMax), ...limits, handle(handler)),
    upload: (path: UserPath<'POST'>, fieldName: string, bytesMax: number, handler: PageHandler) => {
      const readBody = [readFormFile(fieldName, bytesMax), ...readFormFields(formBytesMax)]
      app.post(path, requireUser('POST', path), ...readBody, handle(handler))
    },
    /** For requests of the dashboard's scripts: the handler writes the response. */
    command: (path: UserPath<'POST'>, handler: StreamHandler) =>
      app.post(path, requireUser('POST', path), ...readFormFields(publicFormBytesMax), (request, response) =>
        handler({ ...response.locals.page, form: submittedForm(response) }, deps, request, response),
      ),
    /** The same for a body that the handler reads while it arrives. @param bytesMax of it in memory. */
    transfer: (path: UserPath<'POST'>, bytesMax: number, handler: StreamHandler) =>
      app.post(path, requireUser('POST', path, bytesMax), (request, response) =>
        handler(response.locals.page, deps, request, response),
      ),
    stream: (path: UserPath<'GET'>, handler: StreamHandler) =>
      app.get(path, requireUser('GET', path), (request, response) =>
        handler(response.locals.page, deps, request, response),
      ),
  }
}

/** Redirects to the sign-in page without a session. @throws {RoleRequired} */
function requireRole(deps: Dependencies, needed: Role, bytesMax = Number.POSITIVE_INFINITY): RequestHandler {
  return async (request, response, next) => {
    const page = await authenticate(deps, request)
    if (page) {
      if (isUserActivity(request)) await deps.sessions.recordUse(page.session, clientOf(request))
      if (needsSetUp(page) && !isForSetUp(page, request.path)) return redirect(response, setUpPath)
      if (!includesRole(page.user.role, needed)) throw new RoleRequired(needed, page.user.role)
      if (page.session.environmentId !== environmentIdOf(page)) await leaveRemovedEnvironment(deps, page, request)
      const linked = findLinkedEnvironment(page, request)
      if (linked) return sendPage(response, page, environmentQuestion(request.originalUrl, linked))
      const tenant = deps.tenantLimits.begin(page.account.id, response)
      response.locals.page = { ...page, tenant, reserve: (size: number) => tenant.reserveBytes(size) }
      await tenant.reserveBytes(Math.min(bytesMax, bodyBytes(request)))
      return next()
    }
    const isPage = request.method === 'GET' && request.accepts('html') === 'html'
    const query = isPage && request.path !== '/' ? `?next=${encodeURIComponent(request.originalUrl)}` : ''
    redirect(response, `/sign-in${query}`)
  }
}

/** False for requests that the dashboard's script sends: an open page must not keep a session from ending. */
function isUserActivity({ headers }: Request): boolean {
  return headers.accept !== 'text/event-stream' && headers['x-background'] === undefined
}

export const setUpPath = '/profile/two-factor/set-up'

/** Setting up needs the password, which a user who has signed in with a link may have to set. */
function isForSetUp({ session }: PageRequest, path: string): boolean {
  return path === setUpPath || (session.byLink && path === '/profile/password')
}

/** Whether the account requires a second factor that the user lacks. They can only set it up, and sign out. */
function needsSetUp({ account, user }: PageRequest): boolean {
  return account.secondFactorRequired && !user.hasSecondFactor
}

// The environment that the session shows.

/** As a session has it: `null` for the first one. */
function environmentIdOf({ account }: PageRequest): string | null {
  return account.id === account.ownerId ? null : account.id
}

/**
 * The environment of the session was removed: its pages show the first one from now on. What was submitted before is refused.
 *
 * @throws {PageForbidden}
 */
async function leaveRemovedEnvironment({ sessions }: Dependencies, page: PageRequest, { method, path }: Request) {
  if (method === 'POST' && path !== '/environment')
    throw new PageForbidden('The environment that this page showed was removed. No changes were made.')
  await sessions.enterEnvironment(page.session, null)
}

/** The script adds the environment that a page shows to its forms: the user may have switched in another tab since. */
function requireShownEnvironment({ form, account, environments }: PageRequest): void {
  const shown = form.get('shownEnvironment')
  if (shown === null || shown === account.id) return
  const name = environments.find(({ id }) => id === shown)?.environment ?? 'an environment that was removed'
  const now = account.environment ?? 'the first one'
  throw new PageForbidden(
    `This form was for ${name}, and you have switched to ${now} since. No changes were made. Switch back, and submit it again.`,
  )
}

/** The environment that the address of a link names, unless it is shown. Links of messages name theirs. */
function findLinkedEnvironment(
  { query, account, environments }: PageRequest,
  { method }: Request,
): Account | undefined {
  const name = method === 'GET' && environments.length > 1 ? query.get('environment') : null
  return environments.find(({ environment, id }) => environment === name && id !== account.id)
}

/** A link alone switches nothing: the next form would be submitted for another environment than the user thinks. */
function environmentQuestion(originalUrl: string, { id, environment }: Account): Page {
  const [path = '/', search] = originalUrl.split('?')
  const query = new URLSearchParams(search)
  query.delete('environment')
  const body = html`${heading(`This link is to ${environment}`)}
    <form method="post" action="/environment" class="card">
      <p>The dashboard shows another environment now.</p>
      <input type="hidden" name="environmentId" value="${id}" />
      <input type="hidden" name="next" value="${query.size > 0 ? `${path}?${query}` : path}" />
      <div class="buttons"><button>Switch to ${environment}</button></div>
    </form>`
  return { title: `Switch to ${environment}`, tab: 'overview', body }
}

/** The length of the body; without a declared one, the maximum length of a form. */
function bodyBytes({ headers }: Request): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : formBytesMax
}

/** Reads the user, account and role from the store on each request; `undefined` without a signed-in user. */
export async function authenticate(
  { users, environments: all }: Dependencies,
  request: Request,
): Promise<PageRequest | undefined> {
  // Requests refused early have no session yet.
  const { stored: session } = (request.session ?? {}) as Partial<SessionData>
  const user = session && (await users.get(session.userId))
  const environments = user ? await all.list(user.accountId) : []
  const account = environments.find(({ id }) => id === session?.environmentId) ?? environments[0]
  // The credentials may have changed since the session was read. What the user proves then must not count as proven now.
  if (
    !session ||
    !user?.role ||
    account?.ownerId !== user.accountId ||
    user.credentialsEpoch !== session.credentialsEpoch
  )
    return undefined
  return {
    user: { ...user, role: user.role },
    account,
    environments,
    actor: toActor(user),
    session,
    address: request.ip ?? '',
    renewSession: (user, byLink) => startSession(request, { user, byLink, proof: undefined, continued: session }),
    params: request.params as Record<string, string>,
    query: new URLSearchParams(request.originalUrl.split('?')[1]),
    form: new URLSearchParams(),
    file: 'none',
    // Replaced once the request counts towards the account's limits.
    reserve: () => undefined,
    tenant: undefined,
  }
}

/** 303: the browser requests the location with GET. */
export function redirect(response: Response, location: string): void {
  response.status(303).location(location).end()
}

export async function sendPage(response: Response, request: PageRequest, page: Page): Promise<void> {
  await sendHtml(response, page.status ?? 200, renderPage(request, page))
}

export async function sendHtml(response: Response, status: number, document: Html): Promise<void> {
  const text = String(await document)
  response.status(status).type('html')
  // Responses to forms may contain a new secret beside what was submitted, which compression would let others guess.
  if (response.req.method !== 'GET' || !compresses(response, text.length)) return void response.send(text)
  response.send(await compress(text, { level: 3 }))
}

// Security headers and the protection against cross-site request forgery.

function securityHeaders(secure: boolean): RequestHandler {
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
function isCrossSite({ method, headers }: Request, publicOrigin: string | undefined): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  const site = [headers['sec-fetch-site']].flat()[0]
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const { origin } = headers
  if (origin === undefined) return true
  if (publicOrigin !== undefined) return origin !== publicOrigin
  const host = URL.parse(origin)?.host
  return !host || host !== headers.host
}
