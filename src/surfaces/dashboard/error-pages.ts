/** Turns errors into pages that do not reveal internals. */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import { Problem, problemType } from '../../contract/problem.ts'
import { NotAdminError } from '../../domain/accounts/accounts.sql.ts'
import { CredentialsChangedError } from '../../domain/accounts/sessions.ts'
import { problemTypes } from '../../domain/problems.ts'
import type { Dependencies } from './dependencies.ts'
import { emptyState, type Html, heading, html, nothing, notice } from './html.ts'
import { renderPlainPage, tabPath, tabs } from './layout.ts'
import { PageForbidden, type PageHandler, PageNotFound, type PageRequest, RoleRequired } from './page-handler.ts'
import { may } from './page-roles.ts'
import { authenticate, sendHtml, sendPage } from './page-routes.ts'
import { describeStatus, shortId } from './runs/run-labels.ts'

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
    const errors = (error.problem.errors ?? []).map(
      (each) => ` ${'pointer' in each ? each.pointer : ''} ${each.detail}.`,
    )
    return { status, title, message: error.message + errors.join('') }
  }
  if (error instanceof NotAdminError) return toFailure(deps, new RoleRequired('admin'))
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

// The page "Go to": links to pages, actions, workflows and runs that match a text. The command menu shows them, too.

interface Destination {
  group: 'Page' | 'Action' | 'Workflow' | 'Run'
  title: string
  path: string
}

const pages: Destination[] = [
  ...tabs.map(([tab, title]) => ({ title, path: tabPath(tab) })),
  { title: 'Members', path: '/settings/members' },
  { title: 'Notifications', path: '/settings/notifications' },
  { title: 'Profile', path: '/profile' },
  { title: 'Two-factor authentication', path: '/profile/two-factor' },
  { title: 'Sessions', path: '/profile#sessions' },
  { title: 'Failed runs', path: '/runs?status=failed&status=timedOut' },
  { title: 'Docs', path: '/docs/' },
].map((page) => ({ group: 'Page', ...page }))

const actions = [
  { title: 'Create API key', path: '/api-keys/new' },
  { title: 'Create browser context', path: '/browser-contexts/new' },
  { title: 'Create schedule', path: '/schedules/new' },
  { title: 'Create webhook endpoint', path: '/webhooks/new' },
  { title: 'Change password', path: '/profile' },
  { title: 'Invite a member', path: '/settings/members/invite' },
  { title: 'View the audit log', path: '/settings/audit-log' },
] as const

/** Only for accounts that have several. */
const environments = { group: 'Page', title: 'Environments', path: '/settings/environments' } as const

const lastRuns = 5

export const showDestinations: PageHandler = async (request, deps) => {
  const search = (request.query.get('search') ?? '').trim()
  const words = search.toLowerCase().split(/\s+/)
  const known = [
    ...pages,
    ...(request.environments.length > 1 && may(request.user, `GET ${environments.path}`) ? [environments] : []),
    ...actions
      .filter(({ path }) => may(request.user, `GET ${path}`))
      .map((action) => ({ group: 'Action', ...action }) as const),
    ...workflows(request, deps),
  ]
  const matching = known.filter(({ title, path, group }) =>
    words.every((word) => `${group} ${title} ${path}`.toLowerCase().includes(word)),
  )
  const found = [...(await runs(request, deps, search)), ...matching]
  return { title: 'Go to', tab: 'go-to', body: renderDestinations(search, found) }
}

function workflows({ account }: PageRequest, deps: Dependencies): Destination[] {
  const list = deps.workflows.current(account.id).list()
  return list.map(({ id, title }) => ({ group: 'Workflow', title, path: `/workflows/${encodeURIComponent(id)}` }))
}

/** The run with this id or end of it; without a text, the last runs. */
async function runs({ account }: PageRequest, deps: Dependencies, search: string): Promise<Destination[]> {
  const found =
    search === ''
      ? (await deps.runs.list(account.id, { limit: lastRuns }))?.runs
      : [await deps.runs.find(account.id, search)].filter((run) => run !== undefined)
  return (found ?? []).map((run) => {
    const workflow = deps.workflows.current(account.id).get(run.workflowId)
    const title = `${workflow?.title ?? run.workflowId} ${shortId(run.id)}, ${describeStatus(run).label.toLowerCase()}`
    return { group: 'Run', title, path: `/runs/${run.id}` }
  })
}

function renderDestinations(search: string, found: Destination[]): Html {
  const groups = [...Map.groupBy(found, ({ group }) => group)]
  return html`${heading('Go to')}
    <form method="get" action="/go-to" class="filters">
      <div class="field">
        <label for="search">Search</label>
        <input type="search" id="search" name="search" value="${search}" autocomplete="off" placeholder="Page, workflow, action or run ID" />
      </div>
      <button class="secondary">Search</button>
    </form>
    <div id="destinations">
      ${groups.map(
        ([group, members]) => html`<section data-group="${group}">
          <h2>${group}s</h2>
          <ul>${members.map(({ title, path }) => html`<li><a href="${path}">${title}</a></li>`)}</ul>
        </section>`,
      )}
      ${found.length === 0 ? emptyState('No results', html`<p><a href="/go-to">All destinations</a></p>`) : nothing}
    </div>`
}
