/** Turns errors into pages that do not reveal internals. */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import { Problem, problemType } from '../../contract/problem.ts'
import { NotOwnerError } from '../../domain/accounts/accounts.sql.ts'
import { CredentialsChangedError } from '../../domain/accounts/sessions.ts'
import { problemTypes } from '../../domain/problems.ts'
import type { Dependencies } from './dependencies.ts'
import { html, notice } from './html.ts'
import { renderPlainPage } from './layout.ts'
import { PageForbidden, PageNotFound } from './page-handler.ts'
import { authenticate, sendHtml, sendPage } from './page-routes.ts'

export function unknownPage(): RequestHandler {
  return () => {
    throw new PageNotFound('This page doesn’t exist, or what it showed was deleted.')
  }
}

export function errorPages(deps: Dependencies): ErrorRequestHandler {
  return async (error: unknown, request, response, _next) => {
    const requestId = response.get('X-Request-Id')
    if (response.headersSent) {
      deps.log.error({ err: error, requestId }, 'dashboard response failed')
      // Aborts the connection, so that the browser does not take the partial response for a complete one.
      response.destroy()
      return
    }
    const failure = toFailure(deps, error)
    if (failure.status >= 500 && !(error instanceof Problem))
      deps.log.error({ err: error, requestId }, 'dashboard page failed')
    await sendFailure(deps, request, response, failure)
  }
}

interface Failure {
  status: number
  title: string
  message: string
}

function toFailure(deps: Dependencies, error: unknown): Failure {
  if (error instanceof PageNotFound) return { status: 404, title: 'Not found', message: error.message }
  if (error instanceof PageForbidden) return { status: 403, title: 'Access denied', message: error.message }
  if (error instanceof Problem) {
    const { status, title } = problemType(problemTypes, error.problem.kind)
    return { status, title, message: error.message }
  }
  if (error instanceof NotOwnerError) return toFailure(deps, new PageForbidden())
  if (deps.isUnavailable(error)) {
    const message = 'The service is temporarily unavailable. Check whether your change was saved, then try again.'
    return { status: 503, title: 'Try again in a moment', message }
  }
  if (error instanceof CredentialsChangedError) {
    const message = 'Your password or second factor was just changed. Sign in with the new one.'
    return { status: 401, title: 'Sign in again', message }
  }
  const { status } = error as { status?: unknown }
  if (status === 413) return { status, title: 'Too large', message: 'The request is too large. No changes were made.' }
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return { status, title: 'Bad request', message: 'The request is invalid. No changes were made.' }
  }
  return { status: 500, title: 'Something went wrong', message: 'The service log has the details.' }
}

async function sendFailure(deps: Dependencies, request: Request, response: Response, failure: Failure) {
  const { status, title, message } = failure
  const body = html`<h1>${title}</h1>
    ${notice('warning', message)}
    ${status >= 500 ? html`<p class="muted">Request ID <code>${response.get('X-Request-Id')}</code></p>` : ''}
    <p><a href="/">Go to overview</a></p>`
  // Without navigation when the store may be down: it names the user and the account.
  const isDown = status === 500 || status === 503
  const page = isDown ? undefined : await authenticate(deps, request).catch(() => undefined)
  if (page) return sendPage(response, page, { title, tab: 'overview', body, status })
  await sendHtml(response, status, renderPlainPage(title, body))
}
