/** Templates of bulk actions: links from the list of runs, the preview, and the progress. */

import { v7 as uuid } from 'uuid'
import type { User } from '../../../domain/accounts/user.ts'
import {
  type BulkAction,
  type BulkActionKind,
  type BulkFilter,
  changeableStatuses,
  runsPerSecond,
  unfinishedMax,
} from '../../../domain/bulk-actions/bulk-actions.ts'
import { runsMax } from '../../../domain/bulk-actions/bulk-worker.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { backLink, badge, emptyState, type Fact, facts, type Html, heading, html, nothing, notice } from '../html.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { parseRunFilter, type RunFilter, toListRequest, toRunQuery } from './run-filter.ts'
import { runLink, statusOptions } from './run-labels.ts'

/** Runs that a preview counts. */
const countedMax = 10_000

const titles: Record<BulkActionKind, string> = { cancel: 'Cancel runs', rerun: 'Run again' }

const format = (count: number) => count.toLocaleString('en')

const formatProgress = (matched: number, total: number | null) =>
  total === null ? `${format(matched)} so far` : `${format(matched)} of ${format(total)}`

const bulkPath = (kind: BulkActionKind, filter: RunFilter) => `/runs/bulk-${kind}?${toRunQuery(filter)}`

export function renderBulkLinks(user: User, filter: RunFilter): Html[] {
  const kinds = Object.keys(titles) as BulkActionKind[]
  const fits = (kind: BulkActionKind) =>
    filter.statuses.length === 0 || filter.statuses.some((status) => changeableStatuses(kind).includes(status))
  return kinds
    .filter((kind) => fits(kind) && may(user, `POST /runs/bulk-${kind}`))
    .map((kind) => html`<a class="button secondary" href="${bulkPath(kind, filter)}">${titles[kind]}…</a>`)
}

/** One line about an unfinished action. */
export function renderBulkSummary({ id, kind, matched, total }: BulkAction): Html {
  const doing = kind === 'cancel' ? 'Runs are being cancelled' : 'Runs are being queued again'
  return html`${doing}: ${formatProgress(matched, total)}. <a href="/runs/bulk-actions/${id}">See progress</a>`
}

const texts: Record<BulkActionKind, { question: string; consequence: string; button: string; none: string }> = {
  cancel: {
    question: 'Cancel these runs?',
    consequence: 'Queued runs will not start. Running ones are asked to stop. This cannot be undone.',
    button: 'Cancel',
    none: 'No runs to cancel',
  },
  rerun: {
    question: 'Run these runs again?',
    consequence:
      'Each is queued again as a new run, with the same variables and secrets, for the current version of its workflow.',
    button: 'Run again:',
    none: 'No runs to run again',
  },
}

function statusTitles(statuses: readonly RunStatus[]): string {
  const chosen = statusOptions.filter(({ value }) => statuses.includes(value))
  return chosen.map(({ title }) => title).join(', ')
}

function periodFacts({ from, until, zone }: RunFilter): Fact[] {
  const fact = (term: string, local: string): Fact[] => (local ? [[term, `${local.replace('T', ' ')} ${zone}`]] : [])
  return [...fact('Queued from', from), ...fact('Queued before', until)]
}

const statusBadges = {
  working: badge('busy', 'Working'),
  waiting: badge('waiting', 'Waiting'),
  finished: badge('good', 'Finished'),
}

const waits = {
  queuedRunsLimit: 'Waiting: the account has as many queued runs as it may have. It continues when runs have started.',
  storageQuota: 'Waiting: the account’s storage is full. It continues when runs or browser contexts were deleted.',
}

/** @param workflow the title of the filter's workflow; empty for all. */
function renderBulkAction(action: BulkAction, workflow: string): Html {
  const { kind, status, waitsFor, total, matched, done, skipped, failed, firstFailure, limitReached, filter } = action
  const rate = `${format(runsPerSecond(action))} per second`
  const progress = status === 'finished' ? nothing : ` ${formatProgress(matched, total)}, ${rate}`
  const doneLabel = kind === 'cancel' ? 'Cancelled' : 'Queued again'
  const skippedLabel = kind === 'cancel' ? 'Ended before' : 'Not ended'
  return html`${backLink('/runs', 'Runs')} ${heading(titles[kind])}
    <div id="bulk-action" data-live="/runs/bulk-actions/${action.id}/changes">
      <p aria-live="polite">${statusBadges[status]}${progress}</p>
      ${total === null || status === 'finished' ? nothing : html`<progress max="${total}" value="${matched}" aria-label="Runs"></progress>`}
      ${waitsFor === null ? nothing : notice('warning', waits[waitsFor])}
      ${limitReached ? notice('warning', `Only the first ${format(runsMax)} runs were changed. Start again for the others.`) : nothing}
      ${firstFailure ? notice('bad', html`${format(failed)} could not be run again, the first of them ${runLink(firstFailure.runId)}: ${firstFailure.detail}`) : nothing}
      <div class="card">${facts([
        [doneLabel, format(done)],
        [skippedLabel, format(skipped)],
        ...(kind === 'rerun' ? [['Could not be run again', format(failed)] satisfies Fact] : []),
        ['Workflow', workflow || 'All workflows'],
        ['Status', statusTitles([filter.status ?? changeableStatuses(kind)].flat())],
        ['Started', time(action.createdAt, 'exact')],
        ['Finished', time(action.finishedAt, 'exact', '–')],
      ])}</div>
    </div>`
}

// Bulk actions on the runs of a filter: a preview with their number, the start, and the progress.

export const previewCancel: PageHandler = (request, deps) => preview('cancel', request, deps)
export const previewRerun: PageHandler = (request, deps) => preview('rerun', request, deps)
export const startCancel: PageHandler = (request, deps) => start('cancel', request, deps)
export const startRerun: PageHandler = (request, deps) => start('rerun', request, deps)

export const showBulkAction: PageHandler = async ({ account, params }, { bulkActions, workflows }) => {
  const action = orNotFound(await bulkActions.get(account.id, params.id ?? ''))
  const { workflowId = '' } = action.filter
  const workflow = workflows.current(account.id).get(workflowId)?.title ?? workflowId
  return { title: titles[action.kind], tab: 'runs', body: renderBulkAction(action, workflow) }
}

async function preview(
  kind: BulkActionKind,
  { account, query }: PageRequest,
  { bulkActions, workflows }: Dependencies,
  { id = uuid(), error = '', status = 200 } = {},
): Promise<Page> {
  const filter = parseRunFilter(query)
  const given = toBulkFilter(kind, filter)
  const count = given && (await bulkActions.count(account.id, kind, given, countedMax + 1))
  const workflow = workflows.current(account.id).get(filter.workflow)?.title ?? filter.workflow
  const { question, consequence, button, none } = texts[kind]
  const list = `/runs?${toRunQuery(filter)}`
  const top = html`${backLink(list, 'Runs')} ${heading(question)} ${error ? notice('bad', error) : nothing}`
  const page = (body: Html): Page => ({ title: titles[kind], tab: 'runs', body, status })
  if (filter.search !== '') {
    const link = bulkPath(kind, { ...filter, search: '' })
    return page(
      html`${top} ${emptyState('Not with a search', html`<p>Bulk actions use the workflow, the status and the period. <a href="${link}">Continue without the search</a></p>`)}`,
    )
  }
  // Also when the filter cannot be used.
  if (!count) return page(html`${top} ${emptyState(none, html`<p><a href="${list}">Back to the runs</a></p>`)}`)
  const isMore = count > countedMax
  const number = `${format(Math.min(count, countedMax))}${isMore ? ' or more' : ''} ${count === 1 ? 'run' : 'runs'}`
  const chosen = filter.statuses.length === 0 ? changeableStatuses(kind) : filter.statuses
  const statuses = chosen.filter((status) => changeableStatuses(kind).includes(status))
  return page(html`${top}
    <form method="post" class="card">
      <p>${consequence} Runs that are queued later are not affected.</p>
      ${facts([
        ['Runs', html`<strong>${number}</strong>${isMore ? ` At most ${format(runsMax)} are changed.` : nothing}`],
        ['Workflow', workflow || 'All workflows'],
        ['Status', statusTitles(statuses)],
        ...periodFacts(filter),
      ])}
      <input type="hidden" name="id" value="${id}" />
      <div class="buttons">
        <button class="${kind === 'cancel' ? 'danger' : ''}">${button} ${number}</button><a href="${list}">Back to the runs</a>
      </div>
    </form>`)
}

/** The filter is in the form's address, so that what is started is what the preview has shown. */
async function start(kind: BulkActionKind, request: PageRequest, deps: Dependencies) {
  const { account, user, actor, query, form } = request
  const id = formId(form)
  const filter = toBulkFilter(kind, parseRunFilter(query))
  if (!filter) return preview(kind, request, deps, { id, status: 400 })
  const by = { apiKeyId: null, userId: user.id, usesBrowserContexts: true }
  // Submitting the form twice starts one action.
  const created = await deps.bulkActions.create(
    account.id,
    { kind, filter, ...by, idempotencyKey: `form ${id}` },
    actor,
  )
  if (created.kind === 'created') return { location: `/runs/bulk-actions/${created.action.id}` }
  const error = created.kind === 'tooManyBulkActions' ? tooMany : 'This form was submitted with other filters.'
  return preview(kind, request, deps, { error, status: 409 })
}

const tooMany = `The account has ${unfinishedMax} bulk actions that are not finished. Try again when one has finished.`

/** Returns `undefined` if no runs can match: a search cannot be used, or no chosen status fits the action. */
function toBulkFilter(kind: BulkActionKind, filter: RunFilter): BulkFilter | undefined {
  const { workflowId, createdAfter, createdBefore } = toListRequest(filter)
  const changeable = changeableStatuses(kind)
  const status = filter.statuses.length === 0 ? changeable : filter.statuses.filter((each) => changeable.includes(each))
  if (filter.search !== '' || status.length === 0) return undefined
  return {
    status,
    ...(workflowId !== undefined && { workflowId }),
    ...(createdAfter !== undefined && { createdAfter: new Date(createdAfter).toISOString() }),
    ...(createdBefore !== undefined && { createdBefore: new Date(createdBefore).toISOString() }),
  }
}
