/** How pages are served: protection, who is signed in, forms in, documents out, and what is said when something fails. */
import { randomUUID } from 'node:crypto'
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express'
import type { SessionData } from 'express-session'
import type { Parts } from './dependencies.ts'
import { notice } from './elements.ts'
import { fileOf, formOf, readFile, readForm } from './forms.ts'
import { type Html, html } from './html.ts'
import { crossSiteRefusal, securityHeaders } from './protection.ts'
import { sessionHandler, signIn, signOut } from './session.ts'
import { pageDocument, plainDocument } from './shell.ts'
import { type Handler, type Page, PageForbidden, PageNotFound, type Visit, visitOf } from './visit.ts'

/** Bounds the fields of a form: variables of a run as the Execution API takes them, and what encoding adds. */
const formBytesMax = 4 * 1024 * 1024
/** Whoever is not signed in has less to say. */
const openFormBytesMax = 64 * 1024

/** Stands before whatever can fail, so that the log's line about it can be found. */
export function requestId(): RequestHandler {
  return (_request, response, next) => {
    response.set('X-Request-Id', randomUUID())
    next()
  }
}

export function protect(parts: Parts): RequestHandler[] {
  const { publicUrl, sessions, sessionSecrets, port } = parts
  const secure = publicUrl?.startsWith('https:') ?? false
  const isCrossSite = crossSiteRefusal(publicUrl && new URL(publicUrl).origin)
  return [
    (_request, response, next) => {
      response.set('Cache-Control', 'no-store')
      next()
    },
    securityHeaders(secure),
    (request, _response, next) => {
      // PostgreSQL takes no text with it, not even to look for it.
      if (request.url.includes('%00')) throw new PageNotFound()
      // The public address says how readers come here; a proxy need not repeat it.
      if (secure) request.headers['x-forwarded-proto'] = 'https'
      next(isCrossSite(request) ? new CrossSite() : undefined)
    },
    sessionHandler({ sessions, secrets: sessionSecrets, secure, port }),
  ]
}

/** A form that another site's page has sent. */
class CrossSite extends Error {}

/** Pages for whoever comes. */
export function openPages(app: Express) {
  return {
    get: (path: string, ...handlers: RequestHandler[]) => app.get(path, ...handlers),
    post: (path: string, ...handlers: RequestHandler[]) => app.post(path, ...readForm(openFormBytesMax), ...handlers),
  }
}

/** Pages for whoever is signed in; others are asked to sign in first. */
export function signedInPages(app: Express, parts: Parts) {
  const visitor = requireVisitor(parts)
  return {
    get: (path: string, handler: Handler) => app.get(path, visitor, answered(handler)),
    // Nothing is read for whoever is not signed in.
    post: (path: string, handler: Handler, ...before: RequestHandler[]) =>
      app.post(path, visitor, ...readForm(formBytesMax), ...before, answered(handler)),
    /** For a form with a file. */
    upload: (path: string, name: string, bytesMax: number, handler: Handler) =>
      app.post(path, visitor, readFile(name, bytesMax), ...readForm(formBytesMax), answered(handler)),
    /** For answers that are no pages. */
    stream: (path: string, handler: (visit: Visit, request: Request, response: Response) => Promise<void>) =>
      app.get(path, visitor, (request, response) => handler(response.locals.visit, request, response)),
  }
}

function requireVisitor(parts: Parts): RequestHandler {
  return async (request, response, next) => {
    const visit = await readVisit(parts, request, response)
    if (visit) {
      response.locals.visit = visit
      return next()
    }
    // A session of a user who was removed while signing in; the sign-in page would send it back here.
    if (request.session.userId !== undefined) await signOut(request)
    const wantsPage = request.method === 'GET' && request.accepts('html') === 'html'
    const goal = wantsPage && request.path !== '/' ? `?next=${encodeURIComponent(request.originalUrl)}` : ''
    redirect(response, `/sign-in${goal}`)
  }
}

/** Whoever is signed in, as the store has them now: one who was removed is not. */
export async function readVisit(parts: Parts, request: Request, response: Response): Promise<Visit | undefined> {
  // There is no session yet when a request is refused before it is looked for.
  const { userId, byLink = false }: Partial<SessionData> = request.session ?? {}
  const user = userId === undefined ? undefined : await parts.users.get(userId)
  const account = user && (await parts.accounts.get(user.accountId))
  if (!user || !account) return undefined
  return visitOf({
    user,
    account,
    byLink,
    signInAnew: () => signIn(request, user, false),
    sessionId: request.sessionID,
    params: request.params as Record<string, string>,
    query: new URLSearchParams(request.originalUrl.split('?')[1]),
    form: formOf(response),
    file: fileOf(response),
  })
}

function answered(handler: Handler): RequestHandler {
  return async (_request, response) => {
    const visit: Visit = { ...response.locals.visit, form: formOf(response), file: fileOf(response) }
    const reply = await handler(visit)
    if ('location' in reply) return redirect(response, reply.location)
    await sendPage(response, visit, reply)
  }
}

/** Leads the reader on to another page, with nothing to read on the way. */
export function redirect(response: Response, location: string): void {
  response.status(303).location(location).end()
}

async function sendPage(response: Response, visit: Visit, page: Page): Promise<void> {
  await sendDocument(response, page.status ?? 200, pageDocument(visit, page))
}

export async function sendDocument(response: Response, status: number, document: Html): Promise<void> {
  response
    .status(status)
    .type('html')
    .send(String(await document))
}

export function notFound(parts: Parts): RequestHandler {
  return async (request, response) => {
    await sendFailure(parts, request, response, {
      status: 404,
      title: 'Not found',
      words: 'There is no such page, or what it showed is gone.',
    })
  }
}

interface Failure {
  status: number
  title: string
  words: string
}

/** Says what went wrong to whoever reads, and nothing of the inside. */
export function failures(parts: Parts): ErrorRequestHandler {
  return async (error: unknown, request, response, _next) => {
    const requestId = response.get('X-Request-Id')
    if (response.headersSent) {
      parts.log.error({ err: error, requestId }, 'an answer of the dashboard failed on its way')
      // Not ended properly, so that the reader sees that something is missing.
      response.destroy()
      return
    }
    const failure = failureOf(parts, error)
    if (failure.status >= 500) {
      parts.log.error({ err: error, requestId }, 'a page of the dashboard failed')
    }
    await sendFailure(parts, request, response, failure)
  }
}

function failureOf(parts: Parts, error: unknown): Failure {
  if (error instanceof PageNotFound) {
    return { status: 404, title: 'Not found', words: 'There is no such thing in this account, or it is gone.' }
  }
  if (error instanceof PageForbidden) {
    return { status: 403, title: 'Not permitted', words: error.message || 'Only an owner may see or do this.' }
  }
  if (error instanceof CrossSite) {
    return { status: 403, title: 'Refused', words: 'This form was sent from another site. Nothing was done.' }
  }
  if (parts.isUnavailable(error)) {
    return { status: 503, title: 'Try again in a moment', words: 'The store does not answer. Nothing was changed.' }
  }
  const { status } = error as { status?: unknown }
  if (status === 413) return { status, title: 'Too large', words: 'What was sent is too large. Nothing was done.' }
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status, title: 'Not understood', words: 'This request cannot be understood. Nothing was done.' }
  }
  return { status: 500, title: 'Something went wrong', words: 'The log of the service says more.' }
}

async function sendFailure(parts: Parts, request: Request, response: Response, { status, title, words }: Failure) {
  const id = response.get('X-Request-Id')
  const body = html`<h1>${title}</h1>
    ${notice('warning', words)}
    ${status >= 500 ? html`<p class="muted">Request <code>${id}</code></p>` : ''}
    <p><a href="/">To the overview</a></p>`
  // Without tabs when they cannot be drawn: the store may be what has failed.
  const isDown = status === 500 || status === 503
  const visit = isDown ? undefined : await readVisit(parts, request, response).catch(() => undefined)
  if (visit) return sendPage(response, visit, { title, tab: 'overview', body, status })
  await sendDocument(response, status, plainDocument(title, body))
}
