/** The tab "Runs": the account's runs, one run in detail, cancelling and deleting it. */

import { isFinal } from '../../../domain/runs/run-state.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Dependencies } from '../dependencies.ts'
import { copyable, emptyState, type Html, heading, html, labelledField, nothing, notice, selectField } from '../html.ts'
import { orNotFound, type PageHandler } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { renderCallTree, shownWaitsMax } from '../waits/wait-pages.ts'
import { queueCommand } from '../workflows/curl-commands.ts'
import { renderBulkLinks, renderBulkSummary } from './bulk-action-pages.ts'
import { parseAttempts } from './run-attempts.ts'
import { readBrowserReport } from './run-evidence.ts'
import { isEmptyFilter, parseRunFilter, type RunFilter, toListRequest, toRunQuery } from './run-filter.ts'
import { renderFollowing, renderFollowNotice } from './run-following.ts'
import { describeStatus, readQueuerLabels, runLink, shortId, statusOptions } from './run-labels.ts'
import { renderRunTable } from './run-table.ts'
import { renderCancellation, renderRun, renderRunDeletion } from './run-template.ts'

const runsPerPage = 50
const logLinesMax = 200

export const listRuns: PageHandler = async ({ account, user, query }, deps) => {
  const filter = parseRunFilter(query)
  const { search, parent } = filter
  const byId = search === '' ? undefined : await deps.runs.find(account.id, search)
  if (byId) return { location: `/runs/${byId.id}` }
  const cursor = query.get('cursor') ?? undefined
  const list = await deps.runs.list(account.id, { ...toListRequest(filter), limit: runsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!list) return { location: `/runs?${toRunQuery(filter)}` }
  const workflows = deps.workflows.current(account.id).list()
  const named = await findNamedWorkflows(deps, account.id, search, workflows)
  if (named[0] && named.length === 1 && list.runs.length === 0) {
    return { location: `/runs?${toRunQuery({ ...filter, search: '', workflow: named[0].id })}` }
  }
  const { runs, nextCursor } = list
  const isFirstPage = cursor === undefined
  const bulkActions = await deps.bulkActions.unfinished(account.id)
  const queuerLabel = await readQueuerLabels(deps, account.id)
  const isEmpty = runs.length === 0 && isFirstPage && isEmptyFilter(filter)
  // Bulk actions have no such filter.
  const bulkLinks = parent === '' && (runs.length > 0 || !isFirstPage) ? renderBulkLinks(user, filter) : nothing
  const run = may(user, 'POST /workflows/:id') ? html`<a class="button" href="/workflows">Run a workflow</a>` : nothing
  const actions = html`${bulkLinks}${run}`
  const newest = html`<a href="/runs?${toRunQuery(filter)}">← Newest runs</a>`
  const older = nextCursor && html`<a href="/runs?${toRunQuery(filter, nextCursor)}">Older runs →</a>`
  const found = runs.length === 0 ? noResults : renderRunTable({ runs, workflows, queuerLabel })
  const body = html`${heading('Runs', isEmpty ? {} : { actions })}
    ${query.get('done') === 'deleted' ? notice('good', 'Run deleted. Its data was erased.') : nothing}
    ${isEmpty ? nothing : renderFilters(filter, workflows)}
    <div id="runs" data-live="/runs/changes">
      ${bulkActions.map((action) => notice('quiet', renderBulkSummary(action)))}
      ${renderNamedWorkflows(named, filter)}
      ${parent === '' ? nothing : html`<p>Runs that ${runLink(parent)} has called. <a href="/runs">Show all runs</a></p>`}
      ${isEmpty ? renderNoRuns(workflows, deps.addresses().executionUrl) : found}
      <p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>
    </div>`
  return { title: 'Runs', tab: 'runs', body }
}

type NamedWorkflow = Pick<Workflow, 'id' | 'title'>

/** Workflows whose title or id is the text or else has it; one that is no longer deployed, by its id. */
async function findNamedWorkflows(
  { runs }: Dependencies,
  accountId: string,
  search: string,
  deployed: readonly Workflow[],
): Promise<NamedWorkflow[]> {
  if (search === '') return []
  const text = search.toLowerCase()
  const withName = (matches: (name: string) => boolean) =>
    deployed.filter(({ id, title }) => matches(id.toLowerCase()) || matches(title.toLowerCase()))
  const exact = withName((name) => name === text)
  const named = exact.length > 0 ? exact : withName((name) => name.includes(text))
  if (named.length > 0 || !/^[\w.-]+$/.test(search)) return named
  const removed = await runs.list(accountId, { workflowId: search, limit: 1 })
  return removed?.runs.map(({ workflowId }) => ({ id: workflowId, title: workflowId })) ?? []
}

export const showRun: PageHandler = async (request, deps) => {
  const { account, user, query, params } = request
  const [found, queuerLabel, workers] = await Promise.all([
    deps.runs.getWithHistory(account.id, params.id ?? '', { logsMax: logLinesMax }),
    readQueuerLabels(deps, account.id),
    deps.workers.alive(account.id),
  ])
  const { run, history } = orNotFound(found)
  const { browserContextId, cancelledBy } = run
  const isCancellerKnown = cancelledBy.apiKeyId !== null || cancelledBy.userId !== null
  const workflow = deps.workflows.current(account.id).get(run.workflowId)
  const body = renderRun({
    run,
    waits: await deps.waits.latestOfRun(run, shownWaitsMax),
    calls: renderCallTree(await deps.waits.callTree(run), run.id, deps.workflows.current(account.id)),
    context: browserContextId === null ? undefined : await deps.browserContexts.get(account.id, browserContextId),
    history,
    attempts: parseAttempts(history.events),
    report: await readBrowserReport(run, request, deps),
    workflow,
    queuerLabel,
    canceller: isCancellerKnown ? queuerLabel(run.cancelledBy) : undefined,
    workers: workers.length,
    files: await deps.files.ofRun(run.id),
    user,
    executionUrl: deps.addresses().executionUrl,
    done: query.get('done') ?? '',
    following: await renderFollowing(run, request, deps),
    followNotice: renderFollowNotice(query.get('done') ?? '', request),
  })
  const { tone, label } = describeStatus(run)
  return { title: `${label} · ${workflow?.title ?? run.workflowId} ${shortId(run.id)}`, icon: tone, tab: 'runs', body }
}

export const confirmCancellation: PageHandler = async ({ account, params }, { runs, workflows }) => {
  const run = orNotFound(await runs.get(account.id, params.id ?? ''))
  if (isFinal(run.status)) return { location: `/runs/${run.id}?done=finished` }
  const workflow = workflows.current(account.id).get(run.workflowId)
  return { title: 'Cancel run', tab: 'runs', body: renderCancellation(run, workflow) }
}

export const cancelRun: PageHandler = async ({ account, user, params }, { runs }) => {
  const run = orNotFound(await runs.cancel(account.id, params.id ?? '', { userId: user.id }))
  const wasFinished = isFinal(run.status) && run.status !== 'cancelled'
  return { location: `/runs/${run.id}${wasFinished ? '?done=finished' : ''}` }
}

export const confirmRunDeletion: PageHandler = async ({ account, params }, { runs, workflows }) => {
  const run = orNotFound(await runs.get(account.id, params.id ?? ''))
  if (!isFinal(run.status)) return { location: `/runs/${run.id}?done=unfinished` }
  const workflow = workflows.current(account.id).get(run.workflowId)
  return { title: 'Delete run', tab: 'runs', body: renderRunDeletion(run, workflow) }
}

export const deleteRun: PageHandler = async ({ account, params, actor }, { runs }) => {
  const deleted = orNotFound(await runs.delete(account.id, params.id ?? '', actor))
  return { location: deleted === 'deleted' ? '/runs?done=deleted' : `/runs/${deleted.id}?done=unfinished` }
}

// Template of the list of runs.

function renderNamedWorkflows(named: readonly NamedWorkflow[], filter: RunFilter): Html | '' {
  if (named.length === 0) return nothing
  const links = named.map(
    ({ id, title }) => html`<a href="/runs?${toRunQuery({ ...filter, search: '', workflow: id })}">${title}</a> `,
  )
  return html`<p>Runs of workflows that the search names: ${links}</p>`
}

const noResults = emptyState('No results', html`<p>No runs match these filters. <a href="/runs">Clear filters</a></p>`)

function renderNoRuns([workflow]: readonly Workflow[], executionUrl: string): Html {
  if (!workflow) {
    return emptyState('No runs yet', html`<p>No workflows are deployed. <a href="/workflows">Add a workflow</a></p>`)
  }
  const command = queueCommand(executionUrl, workflow.id, exampleVariables(workflow.variables))
  return emptyState(
    'No runs yet',
    html`<p>Run a workflow from its page, or queue a run from your program with an <a href="/api-keys">API key</a>.</p>
      <p><a class="button" href="/workflows">Choose a workflow</a></p>
      ${copyable('first-command', command, { label: 'Copy command' })}`,
  )
}

// Template of the filters of the list of runs: a search, a workflow, a period, and a link for each status.

function renderFilters(filter: RunFilter, workflows: Workflow[]): Html {
  const { search, workflow, statuses, parent } = filter
  const options = [{ value: '', title: 'All workflows' }, ...workflows.map(({ id, title }) => ({ value: id, title }))]
  // A workflow that is no longer installed can still be filtered for.
  if (!options.some(({ value }) => value === workflow)) options.push({ value: workflow, title: workflow })
  const searchField = { name: 'search', label: 'Run ID, workflow, tag or error' }
  const searchInput = labelledField(searchField, (common) => {
    return html`<input type="search" ${common} value="${search}" autocomplete="off" spellcheck="false" placeholder="Run ID, workflow, tag or error" />`
  })
  return html`<form method="get" action="/runs" class="filters" data-submit-on-change>
      ${parent === '' ? html`${searchInput} ${selectField({ name: 'workflow', label: 'Workflow', value: workflow, options })}` : html`<input type="hidden" name="parent" value="${parent}" />`}
      ${statuses.map((status) => html`<input type="hidden" name="status" value="${status}" />`)}
      ${renderPeriod(filter)}
      <button class="secondary">Apply</button>
      ${isEmptyFilter(filter) ? nothing : html`<a href="/runs">Clear filters</a>`}
    </form>
    <nav class="chips" aria-label="Status"><ul>${renderChips(filter)}</ul></nav>`
}

/** Each link adds its status to the filter or removes it, so that filters apply without a script. */
function renderChips(filter: RunFilter): Html[] {
  const { statuses } = filter
  const chip = (title: string, isChosen: boolean, chosen: RunFilter['statuses']) => {
    const query = toRunQuery({ ...filter, statuses: chosen })
    return html`<li><a href="/runs${query && '?'}${query}" ${isChosen ? html`aria-current="true"` : nothing}>${title}</a></li>`
  }
  const ofStatus = statusOptions.map(({ value, title }) => {
    const isChosen = statuses.includes(value)
    return chip(title, isChosen, isChosen ? statuses.filter((each) => each !== value) : [...statuses, value])
  })
  return [chip('All', statuses.length === 0, []), ...ofStatus]
}

/** The script puts the user's time zone into the field `zone`, unless a period was chosen in another. */
function renderPeriod({ from, until, zone }: RunFilter): Html {
  const isSet = from !== '' || until !== ''
  const field = (name: string, label: string, value: string) =>
    labelledField({ name, label }, (common) => html`<input type="datetime-local" ${common} value="${value}" />`)
  return html`<details class="period">
    <summary>${isSet ? html`<strong>Period set</strong>` : 'Any time'}</summary>
    <div class="fields">
      ${field('from', 'Queued from', from)} ${field('until', 'Queued before', until)}
      <small>Time zone: <span id="zone-name">${zone}</span></small>
      <input type="hidden" name="zone" value="${zone}" ${isSet ? nothing : html`data-zone="#zone-name"`} />
    </div>
  </details>`
}
