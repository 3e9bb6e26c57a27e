/** The page "Go to": links to pages, actions, workflows and runs that match a text. The command menu shows them, too. */
import type { Dependencies } from './dependencies.ts'
import { emptyState, type Html, heading, html, nothing } from './html.ts'
import { tabPath, tabs } from './layout.ts'
import type { PageHandler, PageRequest } from './page-handler.ts'
import { describeStatus, shortId } from './runs/run-labels.ts'

interface Destination {
  group: 'Page' | 'Action' | 'Workflow' | 'Run'
  title: string
  path: string
}

const pages: Destination[] = [
  ...tabs.map(([tab, title]) => ({ title, path: tabPath(tab) })),
  { title: 'Members', path: '/settings/members' },
  { title: 'Profile', path: '/profile' },
  { title: 'Two-factor authentication', path: '/profile/two-factor' },
  { title: 'Sessions', path: '/profile#sessions' },
  { title: 'Failed runs', path: '/runs?status=failed&status=timedOut' },
  { title: 'Docs', path: '/docs/' },
].map((page) => ({ group: 'Page', ...page }))

const actions: Destination[] = [
  { title: 'Create API key', path: '/api-keys/new' },
  { title: 'Create browser context', path: '/browser-contexts/new' },
  { title: 'Create schedule', path: '/schedules/new' },
  { title: 'Create webhook endpoint', path: '/webhooks/new' },
  { title: 'Change password', path: '/profile' },
].map((action) => ({ group: 'Action', ...action }))

const ownersActions: Destination[] = [
  { title: 'Invite a member', path: '/settings/members/invite' },
  { title: 'View the audit log', path: '/settings/audit-log' },
].map((action) => ({ group: 'Action', ...action }))

const lastRuns = 5

export const showDestinations: PageHandler = async (request, deps) => {
  const search = (request.query.get('search') ?? '').trim()
  const words = search.toLowerCase().split(/\s+/)
  const known = [
    ...pages,
    ...actions,
    ...(request.user.role === 'owner' ? ownersActions : []),
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

/** The run with this id; without a text, the last runs. */
async function runs({ account }: PageRequest, deps: Dependencies, search: string): Promise<Destination[]> {
  const found =
    search === ''
      ? (await deps.runs.list(account.id, { limit: lastRuns }))?.runs
      : [await deps.runs.get(account.id, search)].filter((run) => run !== undefined)
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
