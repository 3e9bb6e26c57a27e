/** Registers pages on Express: security, sessions and form parsing before the handler, rendering after it. */
import { randomUUID } from 'node:crypto'
import type { Express, Request, RequestHandler, Response } from 'express'
import type { SessionData } from 'express-session'
import helmet from 'helmet'
import { compress, compresses } from '../../contract/representations.ts'
import { toActor } from '../../domain/accounts/user.ts'
import type { Dependencies } from './dependencies.ts'
import { readFormFields, readFormFile, submittedFile, submittedForm } from './form-body.ts'
import type { Html } from './html.ts'
import { renderPage } from './layout.ts'
import {
  type Page,
  PageForbidden,
  type PageHandler,
  PageNotFound,
  type PageRequest,
  type StreamHandler,
} from './page-handler.ts'
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
    get: (path: string, handler: PublicHandler) => app.get(path, handle(handler)),
    post: (path: string, handler: PublicHandler, ...limits: RequestHandler[]) =>
      app.post(path, ...readFormFields(publicFormBytesMax), ...limits, handle(handler)),
    /** @param checks precede the body, which may therefore be as large as a user's. */
    postAfter: (path: string, checks: RequestHandler[], handler: PublicHandler) =>
      app.post(path, ...checks, ...readFormFields(formBytesMax), handle(handler)),
  }
}

/** Pages of signed-in users; others are redirected to the sign-in page before their request body is read. */
export function userPages(app: Express, deps: Dependencies) {
  const requireUser = redirectToSignIn(deps)
  const handle =
    (handler: PageHandler): RequestHandler =>
    async (_request, response) => {
      const form = submittedForm(response)
      const page: PageRequest = { ...response.locals.page, form, file: submittedFile(response) }
      const result = await handler(page, deps)
      if ('location' in result) redirect(response, result.location)
      else await sendPage(response, page, result)
    }
  return {
    get: (path: string, handler: PageHandler) => app.get(path, requireUser, handle(handler)),
    post: (path: string, handler: PageHandler, ...limits: RequestHandler[]) =>
      app.post(path, requireUser, ...readFormFields(formBytesMax), ...limits, handle(handler)),
    upload: (path: string, fieldName: string, bytesMax: number, handler: PageHandler) =>
      app.post(path, requireUser, readFormFile(fieldName, bytesMax), ...readFormFields(formBytesMax), handle(handler)),
    /** For requests of the dashboard's scripts: the handler writes the response. */
    command: (path: string, handler: StreamHandler) =>
      app.post(path, requireUser, ...readFormFields(publicFormBytesMax), (request, response) =>
        handler({ ...response.locals.page, form: submittedForm(response) }, deps, request, response),
      ),
    stream: (path: string, handler: StreamHandler) =>
      app.get(path, requireUser, (request, response) => handler(response.locals.page, deps, request, response)),
  }
}

function redirectToSignIn(deps: Dependencies): RequestHandler {
  return async (request, response, next) => {
    const page = await authenticate(deps, request)
    if (page) {
      if (isUserActivity(request)) await deps.sessions.recordUse(page.session, clientOf(request))
      if (needsSetUp(page) && !isForSetUp(page, request.path)) return redirect(response, setUpPath)
      const tenant = deps.tenantLimits.begin(page.account.id, response)
      response.locals.page = { ...page, tenant, reserve: (size: number) => tenant.reserveBytes(size) }
      await tenant.reserveBytes(bodyBytes(request))
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

/** The length of the body; without a declared one, the maximum length of a form. */
function bodyBytes({ headers }: Request): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : formBytesMax
}

/** Reads the user, account and role from the store on each request; `undefined` without a signed-in user. */
export async function authenticate(
  { users, accounts }: Dependencies,
  request: Request,
): Promise<PageRequest | undefined> {
  // Requests refused early have no session yet.
  const { stored: session } = (request.session ?? {}) as Partial<SessionData>
  const user = session && (await users.get(session.userId))
  const account = user && (await accounts.get(user.accountId))
  // The credentials may have changed since the session was read. What the user proves then must not count as proven now.
  if (!user || !account || user.credentialsEpoch !== session.credentialsEpoch) return undefined
  return {
    user,
    account,
    actor: toActor(user),
    session,
    address: request.ip ?? '',
    renewSession: (user, byLink) => startSession(request, { user, byLink, proof: undefined }),
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
